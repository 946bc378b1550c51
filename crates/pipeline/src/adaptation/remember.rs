//! Corrections are remembered without training: the unchanged model transcribes the lessons, and where its words
//! were corrected the decoder's state is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use audio::{LogMel, WINDOW_SAMPLES, log_mel_padded_window};
use formats::RememberedCorrection;
use memory::ladder::LadderState;
use memory::{Footprint, Plan, Scope, Stage};
use models::whisper::Whisper;
use serde::{Deserialize, Serialize};
use transcript::Task;
use transcript::edit::words_between_punctuation;
use wire::{Adapt, AdaptProgress, Failure, Lesson};

use super::sounds::unwritable;
use super::windows::{Hearing, Material};
use crate::device_context::DeviceContext;
use crate::trouble::{Broken, during};
use crate::whisper::{Heard, Said, WITHOUT_SPACES, WindowOptions, align, decode, encode_window};
use crate::{Control, StageError};

/// Samples of a frame of log-mel.
const FRAME: usize = 160;

/// The language of a lesson that names none.
const ENGLISH: &str = "en";

/// What is to be remembered. `tell` is told how far it is.
pub fn remember(
    asked: &Adapt,
    request: &str,
    material: &Material,
    at: &DeviceContext,
    state: &LadderState,
    control: &Control,
    tell: &mut dyn FnMut(AdaptProgress),
) -> Result<Vec<RememberedCorrection>, Broken> {
    let precision = state.settings.precision.parse().unwrap_or(asked.settings.precision);
    let network = during(Stage::SpeechModel, crate::loaded::network(asked.job.model.as_path()))?;
    let plan = Plan { beams: 1, ..network.plan(at.device.device().kind(), precision) };
    let footprint = Footprint::of(&network, &plan);
    let demand = footprint.model_demand(&state.settings.model);
    let mut loading = during(Stage::SpeechModel, Scope::enter(&at.device, Stage::SpeechModel, demand))?;
    let model = Whisper::load(asked.job.model.as_path(), &at.chosen.device, precision, &|| {
        control.worked();
        !control.is_cancelled()
    });
    let model = during(Stage::SpeechModel, model)?;
    loading.loaded();
    let scope = during(Stage::Adapt, Scope::enter(&at.device, Stage::Adapt, footprint.work_demand(1)))?;
    let found = listen(asked, request, material, &model, control, &mut |heard, windows| {
        let (heard, windows) = (heard as u32, windows as u32);
        let epochs = asked.settings.epochs;
        tell(AdaptProgress {
            heard,
            to_hear: windows,
            epochs,
            peak: footprint.peak(1),
            ..AdaptProgress::default()
        });
    });
    scope.leave(|| ());
    loading.leave(|| drop(model));
    during(Stage::Adapt, found)
}

fn listen(
    asked: &Adapt,
    request: &str,
    material: &Material,
    model: &Whisper,
    control: &Control,
    tell: &mut dyn FnMut(usize, usize),
) -> Result<Vec<RememberedCorrection>, StageError> {
    let has_words = |lesson: &usize| {
        let language = material.lesson(*lesson).language.as_deref();
        !WITHOUT_SPACES.contains(&language.unwrap_or(ENGLISH))
    };
    let (corrected, others): (Vec<usize>, Vec<usize>) = material
        .lessons(false)
        .into_iter()
        .filter(has_words)
        .partition(|lesson| material.lesson(*lesson).corrected);
    let alone = |lessons: &[usize]| -> Vec<Vec<Hearing>> {
        let one = |lesson: &usize| vec![Hearing { pause: 0, ..Hearing::as_it_is(*lesson) }];
        lessons.iter().map(one).collect()
    };
    let joined = |lessons: &[usize]| -> Vec<Vec<Hearing>> {
        let order: Vec<Hearing> = lessons.iter().copied().map(Hearing::as_it_is).collect();
        material.windows(&order, || WINDOW_SAMPLES)
    };
    let mut listener = Listener {
        material,
        model,
        control,
        mel: LogMel::new(model.config.dimensions.mel_bins as usize),
        heard: Heard::default(),
    };
    // States depend on what was said before: corrections are heard alone and behind others.
    let together = joined(&corrected).into_iter().filter(|window| window.len() > 1);
    let corrections: Vec<Vec<Hearing>> = alone(&corrected).into_iter().chain(together).collect();
    let others_joined = joined(&others);
    let place = Place::read(asked.folder.as_path(), request).filter(|place| place.heard >= corrections.len());
    let mut done = 0;
    if let Some(place) = place {
        done = place.heard;
        listener.heard.corrected = place.corrections();
    } else {
        for (done, window) in corrections.iter().enumerate() {
            tell(done, corrections.len() + others_joined.len());
            listener.hear(window)?;
        }
        listener.heard.settle();
        done += corrections.len();
    }
    // Words that the model wrote in place of corrected ones are heard alone as well, in lessons where they are right.
    let rest = [others_joined, alone(&listener.with_mistaken_words(&others))].concat();
    let to_hear = corrections.len() + rest.len();
    let mut kept = Instant::now();
    let seconds = Duration::from_secs(u64::from(asked.settings.checkpoint_seconds));
    for (number, window) in rest.iter().enumerate().skip(done - corrections.len()) {
        let heard = corrections.len() + number;
        tell(heard, to_hear);
        let result = listener.hear(window);
        listener.heard.settle();
        if result.is_err() || kept.elapsed() >= seconds {
            let heard = heard + usize::from(result.is_ok());
            Place::of(request, heard, &listener.heard.corrected).write(asked.folder.as_path())?;
            kept = Instant::now();
        }
        result?;
    }
    tell(to_hear, to_hear);
    Ok(listener.heard.remembered())
}

/// A checkpoint: how many windows were heard, and what is known of the corrections. It is written once all corrected
/// lessons were heard.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    /// What was asked for.
    request: String,
    /// Windows that were heard.
    heard: usize,
    corrected: Vec<RememberedCorrection>,
    /// The states of `corrected`, which its serialization leaves out.
    states: Vec<Vec<f32>>,
}

impl Place {
    const FILE: &str = "remembering";

    fn of(request: &str, heard: usize, corrected: &[RememberedCorrection]) -> Self {
        let states = corrected.iter().map(|known| known.state.clone()).collect();
        Self { request: request.to_owned(), heard, corrected: corrected.to_vec(), states }
    }

    /// `None`: there is no checkpoint of this request.
    fn read(folder: &Path, request: &str) -> Option<Self> {
        let place: Self = serde_json::from_slice(&fs::read(folder.join(Self::FILE)).ok()?).ok()?;
        (place.request == request && place.states.len() == place.corrected.len()).then_some(place)
    }

    fn corrections(self) -> Vec<RememberedCorrection> {
        let pairs = self.corrected.into_iter().zip(self.states);
        pairs.map(|(known, state)| RememberedCorrection { state, ..known }).collect()
    }

    fn write(&self, folder: &Path) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        formats::write_whole(&folder.join(Self::FILE), &bytes).map_err(|error| unwritable(folder, &error))
    }
}

/// A model that hears lessons as it is.
struct Listener<'a> {
    material: &'a Material<'a>,
    model: &'a Whisper,
    control: &'a Control,
    mel: LogMel,
    heard: Heard,
}

impl Listener<'_> {
    /// Has the model write a window, and compares it with its lessons, all of which are corrected or none.
    fn hear(&mut self, window: &[Hearing]) -> Result<(), StageError> {
        let Self { material, model, control, mel, heard } = self;
        let lessons: Vec<&Lesson> = window.iter().map(|hearing| material.lesson(hearing.lesson)).collect();
        let Some(first) = lessons.first() else { return Ok(()) };
        let sound = material.sound(window)?;
        let audio = encode_window(model, log_mel_padded_window(&sound, mel), control)?;
        let language = first.language.as_deref().unwrap_or(ENGLISH);
        let options = WindowOptions {
            language,
            task: Task::Transcribe,
            timestamps: true,
            prompt: &[],
            beam_size: 1,
            best_of: 1,
            patience: 1.0,
            length_penalty: None,
            max_tokens: None,
            max_initial_timestamp: None,
            suppress: &[],
            temperature: 0.0,
            seed: 0,
            boost: None,
            is_live: false,
        };
        let decoded = decode(model, &audio, &options, control)?;
        let is_text = |token: &u32| model.vocabulary.is_text(*token);
        let said = Said {
            language,
            task: Task::Transcribe,
            tokens: decoded.tokens.into_iter().filter(is_text).collect(),
            frames: sound.len().div_ceil(FRAME),
            states: true,
        };
        let words = align(model, &audio, std::slice::from_ref(&said), control)?.pop().unwrap_or_default();
        let texts: Vec<&str> = lessons.iter().map(|lesson| lesson.text.trim()).collect();
        heard.compare(&words, &texts.join(" "), language, first.corrected);
        Ok(())
    }

    /// Lessons that rightly have a word which the model elsewhere wrote in place of a corrected one; a few for each word.
    fn with_mistaken_words(&self, lessons: &[usize]) -> Vec<usize> {
        /// For each word.
        const MOST: usize = 12;
        let mut left: BTreeMap<String, usize> = self.heard.mistaken().map(|word| (word, MOST)).collect();
        let mut has_one = |lesson: &usize| {
            let words = words_between_punctuation(&self.material.lesson(*lesson).text);
            let mut found = false;
            for word in words {
                if let Some(left) = left.get_mut(&word.to_lowercase()).filter(|left| **left > 0) {
                    *left -= 1;
                    found = true;
                }
            }
            found
        };
        lessons.iter().copied().filter(|lesson| has_one(lesson)).collect()
    }
}
