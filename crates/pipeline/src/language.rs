use audio::{ChannelMode, LogMel, Recording};
use transcript::Time;
use wire::{ErrorCode, Event, Failure, FilePath, Job};

use crate::desk::Desk;
use crate::loaded::Loaded;
use crate::start::{self, Models};
use crate::whisper::{detect_language, encode_window, language_name_or_code};
use crate::{Control, Emit, StageError, job, sound};

/// How much of a file is searched for speech whose language is asked for.
const LISTENED_TO: Time = Time::from_millis(5 * 60 * 1000);

/// The language of each file's first speech.
pub fn detect_languages(
    desk: &mut Option<Desk>,
    files: &[FilePath],
    job: &Job,
    control: &Control,
    emit: Emit,
) -> Result<(), Failure> {
    let model = load(desk, job, control).map_err(|error| error.failure(job))?;
    for file in files {
        let job = Job { file: file.clone(), limit: Some(job.limit.unwrap_or(LISTENED_TO)), ..job.clone() };
        let found = sound::prepare(&job, model.whisper.config.num_mel_bins, ChannelMode::Mix, &mut |_, _| {
            !control.is_cancelled()
        })
        .and_then(|recording| language_of(model, &recording, control));
        match found {
            Ok(probabilities) => {
                emit(Event::Language { id: job.id, file: file.clone(), probabilities });
            }
            Err(error) => {
                let error = error.failure(&job);
                if error.code == ErrorCode::Cancelled {
                    return Err(error);
                }
                emit(Event::FileFailed { id: job.id, file: file.clone(), error });
            }
        }
    }
    Ok(())
}

fn load<'a>(desk: &'a mut Option<Desk>, job: &Job, control: &Control) -> Result<&'a Loaded, StageError> {
    let desk = job::take_desk(desk, job.device, job)?;
    let models = Models::of(job, desk.device.device().kind())?;
    let state = start::state(&models, job, desk)?;
    models.load(desk, &state.settings, control).map_err(|broken| broken.error)
}

/// A language that the model has a token for.
pub fn known_language(model: &Loaded, language: &str) -> Result<String, StageError> {
    let vocabulary = &model.whisper.vocabulary;
    let code = language_name_or_code(language);
    let known = |code: &str| {
        if vocabulary.is_multilingual() { vocabulary.language_token(code).is_some() } else { code == "en" }
    };
    match code.filter(|code| known(code)) {
        Some(code) => Ok(code.to_owned()),
        None => {
            let message = format!("The model {} does not know the language {language:?}.", model.model.name);
            Err(Failure::new(ErrorCode::LanguageUnknown, message)
                .remedy("Give a code such as en, de or es, or an English name, or leave it out to detect it.")
                .into())
        }
    }
}

/// Detected where speech begins; where the first window leaves it open, the
/// mean over up to three.
pub fn language_of(
    model: &Loaded,
    recording: &Recording,
    control: &Control,
) -> Result<Vec<(String, f32)>, StageError> {
    const SURE: f32 = 0.5;
    const WINDOWS: usize = 3;
    let whisper = &model.whisper;
    let frames = whisper.config.window_frames();
    let mut mel = LogMel::new(whisper.config.num_mel_bins);
    let mut starts: Vec<usize> = Vec::new();
    for region in &recording.speech {
        let start = (region.start / 160) as usize;
        if starts.last().is_none_or(|last| start >= last + frames) {
            starts.push(start);
        }
    }
    if starts.is_empty() {
        starts.push(0);
    }
    let mut sum: Vec<(String, f32)> = Vec::new();
    for start in starts.into_iter().take(WINDOWS) {
        let audio = encode_window(whisper, recording.log_mel(&mut mel, start, frames)?, control)?;
        let found = detect_language(whisper, &audio, control)?.into_iter().next().unwrap_or_default();
        let sure = found.first().is_some_and(|(_, probability)| *probability >= SURE);
        if sum.is_empty() {
            sum = found;
        } else {
            for (code, probability) in &mut sum {
                let other = found.iter().find(|(other, _)| other == code);
                *probability += other.map_or(0.0, |(_, probability)| *probability);
            }
        }
        if sure {
            break;
        }
    }
    let total: f32 = sum.iter().map(|(_, probability)| probability).sum();
    sum.iter_mut().for_each(|(_, probability)| *probability /= total.max(f32::MIN_POSITIVE));
    sum.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(sum)
}
