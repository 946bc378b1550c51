use std::io::{self, Write};

use advisor::fit::{DeviceMemory, ModelFit};
use advisor::model_info;
use advisor::models::Places;
use config::Preferences;
use memory::bytes::human;
use serde::Serialize;
use supervisor::Engine;
use supervisor::status::Gpus;
use wire::{Backend, Description, DeviceChoice, Failure, FilePath, Job};

use crate::args::Doctor;
use crate::doctor_fit;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
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
    #[serde(flatten)]
    gpu: Gpus,
    /// What is wrong with the user's settings; the defaults are in force then.
    settings_failure: Option<Failure>,
    /// What is free where jobs compute.
    device: Option<DeviceMemory>,
    /// Which of the installed models fit into it.
    fits: Vec<ModelFit>,
    /// Where models are looked for, first to last; not all of them need exist.
    model_folders: Vec<FilePath>,
    models: Vec<Listed>,
}

pub async fn run(args: &Doctor, mut interrupt: Interrupt) -> Ended {
    if let Some(model) = &args.fit {
        return doctor_fit::run(args, model, interrupt).await.map_or_else(|ended| ended, |()| Ended::Done);
    }
    let report = tokio::select! {
        report = report(args) => report,
        () = interrupt.raised() => return Ended::Cancelled,
    };
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

async fn report(args: &Doctor) -> Report {
    let (preferences, settings_failure) = match Preferences::of_this_user(&args.flags()) {
        Ok(preferences) => (preferences, None),
        Err(failure) => (Preferences::default(), Some(failure)),
    };
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        engine_path: supervisor::find_engine().ok().map(FilePath::from),
        engine: None,
        backend_note: None,
        failure: None,
        gpu: Gpus::now(Vec::new()),
        settings_failure,
        device: None,
        fits: Vec::new(),
        model_folders: Places::of_this_process().folders().into_iter().map(FilePath::from).collect(),
        models: models::listed(),
    };
    match Engine::start(&args.machine.engine_options(preferences.engine)).await {
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
    let on_gpu = report.engine.as_ref().is_some_and(|engine| engine.backend == Backend::Cuda);
    let on_gpu = on_gpu && args.machine.device() != DeviceChoice::Cpu;
    if let Ok(device) = DeviceMemory::of(on_gpu, args.machine.device(), &preferences.memory) {
        report.fits = fits(&device, &preferences);
        report.device = Some(device);
    }
    report
}

/// Every installed model in every precision, or in the one that is set.
fn fits(device: &DeviceMemory, preferences: &Preferences) -> Vec<ModelFit> {
    let mut fits = Vec::new();
    for model in advisor::list_models() {
        let mut job = Job::new(wire::NO_JOB, "", model.path.as_path());
        job.memory = preferences.memory.clone();
        // A model that can't be read is listed among the models; using it reports the
        // reason.
        let Ok(network) = model_info::read(&model.path) else { continue };
        let set = preferences.precision.map(|precision| vec![precision]);
        for precision in set.unwrap_or_else(|| network.precisions(device.kind)) {
            let footprint = model_info::footprint(&network, device.kind, precision, &job);
            fits.push(ModelFit::of(&model.name, precision.as_str(), &footprint, &job, device));
        }
    }
    fits
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
                (Some(free), Some(total)) => format!(", {} free of {}", human(free), human(total)),
                (None, Some(total)) => format!(", {}", human(total)),
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
    for card in &report.gpu.cards {
        let gpu = &card.gpu;
        line("gpu", &format!("{}, {} free of {}", gpu.name, human(gpu.free), human(gpu.total)))?;
    }
    if let Some(problem) = &report.gpu.gpu_problem {
        line("gpu", problem)?;
    }
    if let Some(failure) = &report.settings_failure {
        line("settings", &format!("can't be used. {failure}"))?;
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
    if let Some(device) = &report.device {
        let limits = format!("{} free of {} on {}", human(device.free), human(device.total), device.name);
        line("memory", &limits)?;
    }
    for fit in fit_lines(&report.fits) {
        line("fit", &fit)?;
    }
    Ok(())
}

/// A table: model, precision, what it needs at the least, whether that fits.
fn fit_lines(fits: &[ModelFit]) -> Vec<String> {
    let width = fits.iter().map(|fit| fit.model.chars().count()).max().unwrap_or(0);
    fits.iter()
        .map(|fit| {
            let windows = match fit.largest_batch {
                0 => format!(", {} short", human(fit.check.missing())),
                1 => ", one window at a time".into(),
                windows => format!(", up to {windows} windows at once"),
            };
            let needs = human(fit.check.peak);
            format!("{:width$}  {:5} needs {needs:>8}  {}{windows}", fit.model, fit.precision, fit.word())
        })
        .collect()
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".into() } else { items.join(", ") }
}
