use std::io::{self, Write};

use api::models::Places;
use api::{Engine, EngineOptions};
use serde::Serialize;
use wire::{Backend, Description, Failure, FilePath};

use crate::args::Doctor;
use crate::ended::Ended;
use crate::models::{self, Listed};
use crate::outputs::print;

/// All that a bug report needs.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    system: String,
    engine_path: Option<FilePath>,
    engine: Option<Description>,
    /// Why the CUDA engine does not serve, where it might.
    backend_note: Option<String>,
    /// Why there is no engine.
    failure: Option<Failure>,
    /// Where models are looked for, first to last; not all of them need exist.
    model_folders: Vec<FilePath>,
    models: Vec<Listed>,
}

pub async fn run(args: &Doctor) -> Ended {
    let report = report().await;
    let printed = print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            return writeln!(out);
        }
        write(&report, out)
    });
    match (printed, report.failure) {
        (Err(ended), _) => ended,
        // It stands in the report where that is for people; a program sees the exit code.
        (Ok(()), Some(_)) => Ended::SomeFailed,
        (Ok(()), None) => Ended::Done,
    }
}

async fn report() -> Report {
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        engine_path: api::find_engine().ok().map(FilePath::from),
        engine: None,
        backend_note: None,
        failure: None,
        model_folders: Places::of_this_process().folders().into_iter().map(FilePath::from).collect(),
        models: models::listed(),
    };
    match Engine::start(&EngineOptions::default()).await {
        Ok(engine) => {
            report.engine_path = Some(engine.program().into());
            report.backend_note = engine.backend_note().map(String::from);
            match engine.describe().await {
                Ok(description) => report.engine = Some(description),
                Err(failure) => report.failure = Some(failure),
            }
            engine.shutdown().await;
        }
        Err(failure) => report.failure = Some(failure),
    }
    report
}

fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, value: &str| writeln!(out, "{name:<14}{value}");
    line("steno", report.version)?;
    line("system", &report.system)?;
    if let Some(path) = &report.engine_path {
        line("engine at", &path.to_string())?;
    }
    if let Some(failure) = &report.failure {
        line("engine", &format!("does not work. {failure}"))?;
    }
    if let Some(engine) = &report.engine {
        let backend = match engine.backend {
            Backend::Cpu => "cpu",
            Backend::Cuda => "cuda",
        };
        line("engine", &format!("{}, backend {backend}, {} threads", engine.engine, engine.threads))?;
        if let Some(reason) = report.backend_note.as_ref().or(engine.cpu_reason.as_ref()) {
            line("why the CPU", reason)?;
        }
        for device in &engine.devices {
            let memory = match (device.free_bytes, device.total_bytes) {
                (Some(free), Some(total)) => format!(", {} free of {}", size(free), size(total)),
                (None, Some(total)) => format!(", {}", size(total)),
                _ => String::new(),
            };
            line("device", &format!("{}: {}{memory}", device.id, device.name))?;
        }
        line("instructions", &list(&engine.cpu_features))?;
        line("codecs", &list(&engine.codecs))?;
        match &engine.ffmpeg {
            Some(ffmpeg) => line("ffmpeg", &format!("{ffmpeg}, for {}", list(&engine.ffmpeg_codecs)))?,
            None => line("ffmpeg", &format!("not found; it is needed for {}", list(&engine.ffmpeg_codecs)))?,
        }
        for (library, version) in &engine.versions {
            line("library", &format!("{library} {version}"))?;
        }
    }
    if report.models.is_empty() {
        line("models", "none installed")?;
    }
    for folder in &report.model_folders {
        line("models in", &folder.to_string())?;
    }
    for model in models::lines(&report.models) {
        line("model", &model)?;
    }
    Ok(())
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".into() } else { items.join(", ") }
}

/// Bytes as memory is sold: `15.6 GiB`, `512 MiB`.
fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes >= 1024.0 { format!("{:.1} GiB", mebibytes / 1024.0) } else { format!("{mebibytes:.0} MiB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, expected) in [(0, "0 MiB"), (512 << 20, "512 MiB"), (16_750_372_454, "15.6 GiB")] {
            assert_eq!(size(bytes), expected);
        }
    }
}
