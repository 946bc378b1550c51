//! What a model's files say about it, and the memory that a job with it takes.

use std::path::Path;

use memory::{DeviceKind, Footprint, Precision};
use transcript::Task;
use wire::{DecodingOptions, ErrorCode, Failure, Job};

pub use formats::{Abilities, ModelInfo};

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
    let mut plan = model.dimensions.plan(kind, precision);
    plan.beams = job.decoding.most_texts(model.abilities.usual_beams) as u64;
    plan.word_times = job.aligns_words();
    Footprint::of(&model.dimensions, &plan)
}

/// Why a job can't be done as it is asked for: what its model, called `name`, can't be asked for. A
/// language is refused where the model was named (`is_named`); where it was chosen for the
/// language it need not be told.
pub fn refusal(model: &ModelInfo, name: &str, is_named: bool, job: &Job) -> Option<Failure> {
    let (can, wanted, usual) = (model.abilities, &job.decoding, DecodingOptions::default());
    let is_its_own = !model.multilingual && job.language.as_deref() == Some("en");
    let is_told = job.language.is_some() && is_named && !is_its_own;
    if let Some(failure) = untold(model, name, job) {
        return Some(failure);
    }
    let has_prompt = wanted.initial_prompt.is_some() || wanted.condition_on_previous_text;
    let samples = wanted.temperatures.iter().any(|it| *it > 0.0) && wanted.temperatures != usual.temperatures;
    let asked = [
        (!can.translation && job.task == Task::Translate, "translate"),
        (!can.told_language && is_told, "be told the language, which it finds by itself"),
        (!can.finds_language && wanted.language_per_region, "say the language of each region"),
        (!can.prompt && has_prompt, "be given a prompt"),
        (!can.beams && wanted.beams(1) > 1, "search with beams"),
        (!can.temperatures && samples, "search at temperatures"),
        (!can.temperatures && !wanted.timestamps, "leave out times"),
    ];
    let asked: Vec<&str> =
        asked.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, what)| what).collect();
    let message = format!("The model {name} can't {}.", asked.join(", nor "));
    let remedy = "Leave that out, or choose a Whisper model.";
    (!asked.is_empty()).then(|| Failure::new(ErrorCode::BadSettings, message).remedy(remedy))
}

/// Why a job can't be done without a language: its model, called `name`, must be told which one is spoken.
pub fn untold(model: &ModelInfo, name: &str, job: &Job) -> Option<Failure> {
    let can = model.abilities;
    let is_untold = can.told_language && !can.finds_language && job.language.is_none();
    let message = format!("The model {name} can't find out which language is spoken.");
    let remedy = "Name the language, or choose a Whisper model.";
    is_untold.then(|| Failure::new(ErrorCode::LanguageUnknown, message).remedy(remedy))
}

/// Takes back what a job's model can't be asked for: settings that stay for other models.
pub fn restrict(model: &ModelInfo, job: &mut Job) {
    let (can, usual) = (model.abilities, DecodingOptions::default());
    if !can.translation {
        job.task = Task::Transcribe;
    }
    if !can.told_language {
        job.language = job.language.take().filter(|language| !model.multilingual && language == "en");
    }
    if !can.finds_language {
        job.decoding.language_per_region = false;
    }
    if !can.prompt {
        job.decoding.initial_prompt = None;
        job.decoding.condition_on_previous_text = false;
    }
    if !can.beams {
        job.decoding.beam_size = None;
    }
    if !can.temperatures {
        job.decoding.temperatures = usual.temperatures;
    }
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
            let message = format!(
                "This is a model of the type \"{kind}\", neither Whisper nor Parakeet (CTC or TDT) nor Canary."
            );
            Failure::new(ErrorCode::ModelUnsupported, message).file(path).remedy("Choose another model.")
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
    fn what_a_model_cant_be_asked_for_is_refused_in_words() {
        let network = memory::Network::of_public("parakeet-tdt-0.6b-v3").unwrap();
        let abilities = Abilities::PARAKEET_CTC;
        let many = ModelInfo {
            dimensions: network,
            stored: Precision::F32,
            multilingual: true,
            translates: false,
            abilities,
        };
        let english = ModelInfo { multilingual: false, ..many.clone() };
        let job = || Job::new(1, "talk.flac", "model");
        assert_eq!(refusal(&many, "p", true, &job()), None);
        type Change = fn(&mut Job);
        let cases: [(Change, &str); 8] = [
            (|job| job.task = Task::Translate, "can't translate."),
            (|job| job.language = Some("de".into()), "be told the language"),
            (|job| job.decoding.language_per_region = true, "each region"),
            (|job| job.decoding.initial_prompt = Some("Ada".into()), "a prompt"),
            (|job| job.decoding.condition_on_previous_text = true, "a prompt"),
            (|job| job.decoding.beam_size = Some(5), "beams"),
            (|job| job.decoding.temperatures = vec![0.5], "temperatures"),
            (|job| job.decoding.timestamps = false, "leave out times"),
        ];
        for (change, part) in cases {
            let mut asked = job();
            change(&mut asked);
            let failure = refusal(&many, "p", true, &asked).unwrap();
            assert!(failure.to_string().contains(part), "{failure}");
            let whisper = ModelInfo { abilities: Abilities::WHISPER, ..many.clone() };
            assert_eq!(refusal(&whisper, "w", true, &asked), None);
            restrict(&many, &mut asked);
            asked.decoding.timestamps = true;
            assert_eq!(refusal(&many, "p", true, &asked), None, "{part}");
        }
        // The greedy search that it does is no refusal, nor the only language that it knows, nor a
        // language that it was chosen for.
        let mut greedy = job();
        greedy.decoding.temperatures = vec![0.0];
        // Words to expect are for every family.
        greedy.decoding.vocabulary = vec!["Ada".into()];
        assert_eq!(refusal(&many, "p", true, &greedy), None);
        restrict(&many, &mut greedy);
        assert_eq!(greedy.decoding.vocabulary, ["Ada"]);
        let told = |code: &str| Job { language: Some(code.into()), ..job() };
        // A transducer has beams.
        let transducer = ModelInfo { abilities: Abilities::PARAKEET, ..many.clone() };
        let mut beams = job();
        beams.decoding.beam_size = Some(5);
        assert_eq!(refusal(&transducer, "t", true, &beams), None);
        restrict(&transducer, &mut beams);
        assert_eq!(beams.decoding.beam_size, Some(5));
        assert_eq!(refusal(&english, "p", true, &told("en")), None);
        assert!(refusal(&english, "p", true, &told("de")).is_some());
        assert_eq!(refusal(&many, "p", false, &told("de")), None);

        // One that must be told the language, and translates.
        let network = memory::Network::of_public("canary-1b-v2").unwrap();
        let canary =
            ModelInfo { dimensions: network, abilities: Abilities::CANARY, translates: true, ..many };
        let untold = refusal(&canary, "c", true, &job()).unwrap().to_string();
        assert!(untold.contains("can't find out which language is spoken"), "{untold}");
        let mut asked = Job { task: Task::Translate, ..told("sv") };
        assert_eq!(refusal(&canary, "c", true, &asked), None);
        asked.decoding.language_per_region = true;
        let refused = refusal(&canary, "c", true, &asked).unwrap().to_string();
        assert!(refused.contains("each region"), "{refused}");
        restrict(&canary, &mut asked);
        assert_eq!(refusal(&canary, "c", true, &asked), None);
        assert_eq!((asked.task, asked.language.as_deref()), (Task::Translate, Some("sv")));
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
