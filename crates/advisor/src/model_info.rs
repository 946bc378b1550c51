//! What a model's files say about it, and the memory that a job with it takes.

use std::path::Path;

use memory::{DeviceKind, Footprint, Plan, Precision};
use wire::{ErrorCode, Failure, Job};

pub use formats::ModelInfo;

/// Reads the description of the model at `path`: a folder, or a GGUF or
/// whisper.cpp file.
///
/// # Errors
/// `ModelInvalid` or `ModelUnsupported`, naming the file.
pub fn read(path: &Path) -> Result<ModelInfo, Failure> {
    ModelInfo::read(path).map_err(failure)
}

/// The memory that `job` is predicted to take on this kind of device, with the
/// weights held in `precision`.
pub fn footprint(model: &ModelInfo, kind: DeviceKind, precision: Precision, job: &Job) -> Footprint {
    let decoding = &job.decoding;
    // Above temperature 0 several samples are drawn instead of beams.
    let samples = if decoding.temperatures.iter().any(|value| *value > 0.0) { decoding.best_of } else { 1 };
    let mut plan = Plan::new(kind, precision, &model.dimensions);
    plan.beams = decoding.beam_size.max(samples).max(1) as u64;
    plan.word_times = decoding.word_times;
    Footprint::whisper(&model.dimensions, &plan)
}

fn failure(error: formats::Error) -> Failure {
    match error {
        formats::Error::Missing { folder, file } => {
            Failure::new(ErrorCode::ModelInvalid, format!("This model has no {file}."))
                .file(folder)
                .remedy("Install it again, with all of its files.")
        }
        formats::Error::Io { path, source } => invalid(&path, source),
        formats::Error::Invalid { path, reason } => invalid(&path, reason),
        formats::Error::Unsupported { path, kind } => {
            let message = format!("This is a model of the type \"{kind}\", not Whisper.");
            Failure::new(ErrorCode::ModelUnsupported, message).file(path).remedy("Choose a Whisper model.")
        }
    }
}

fn invalid(path: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::ModelInvalid, format!("The model can't be used: {problem}."))
        .file(path)
        .remedy("Install it again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "config.json";
    const WEIGHTS: &str = "model.safetensors";

    #[test]
    fn a_footprint_follows_from_the_precision_and_the_decoding() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper");
        let model = read(&folder).unwrap();
        let job = Job::new(1, "talk.flac", folder);
        let of = |precision, job| footprint(&model, DeviceKind::Host, precision, job);
        let usual = of(model.usual(DeviceKind::Host), &job);
        assert!(of(Precision::Q8_0, &job).weights < usual.weights / 2);
        // Samples at higher temperatures count as beams do.
        let mut greedy = job.clone();
        greedy.decoding.temperatures = vec![0.0];
        assert!(of(model.stored, &greedy).caches < of(model.stored, &job).caches);
    }

    #[test]
    fn failures_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let model = |name: &str| random_models::describe(folder.path(), name, "F16", None).unwrap();
        let cases: [(&str, &str, &[u8], &str); 4] = [
            ("tiny", CONFIG, b"{}", "config.json: The model can't be used: missing field"),
            ("base", CONFIG, b"", "config.json: The model can't be used: EOF"),
            (
                "small",
                WEIGHTS,
                b"\xff\xff\xff\xff\xff\xff\xff\xff",
                "model.safetensors: The model can't be used: its header",
            ),
            ("medium", WEIGHTS, b"\x02\0\0\0\0\0\0\0{}", "its weights are of the type none"),
        ];
        for (name, file, bytes, expected) in cases {
            let path = model(name);
            std::fs::write(path.join(file), bytes).unwrap();
            let failure = read(&path).unwrap_err().to_string();
            assert!(failure.contains(expected), "{failure}");
        }
        let path = model("large-v3");
        std::fs::remove_file(path.join(WEIGHTS)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("This model has no model.safetensors."));
    }
}
