//! A job as it waits in NATS.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wire::{FilePath, Job, NO_JOB};

use crate::source::{Recording, Source};

/// Changes where the meaning of an id does, so that no two versions take different jobs for the same.
const ID_VERSION: &str = "steno job 1";
/// Hexadecimal digits of an id: 128 bits.
const ID_DIGITS: usize = 32;
const LONGEST_QUEUE: usize = 32;

/// What is to be done with a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A transcript is wanted.
    #[default]
    Transcribe,
    /// Only the language is wanted.
    Language,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Self; 2] = [Self::Transcribe, Self::Language];

    /// Between the queue's name and the model's in subjects.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Self::Transcribe => "jobs",
            Self::Language => "languages",
        }
    }

    /// The name of the consumer of a model's jobs; [`token`] makes no other name with this end.
    pub(crate) fn consumer(self, model: &str) -> String {
        let model = token(model);
        match self {
            Self::Transcribe => model,
            Self::Language => format!("{model}_languages"),
        }
    }
}

/// A job, as it was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    /// What the same recording with the same settings has again.
    pub id: String,
    /// The recording's file name.
    pub name: String,
    /// Where a worker finds it.
    pub source: Source,
    /// What it must be.
    pub recording: Recording,
    /// The model, by the name that it has on every machine.
    pub model: String,
    /// Predicted memory of the model and of the work on one window in bytes; `None`: not known where it was
    /// submitted.
    pub needs: Option<u64>,
    /// What is wanted.
    pub kind: Kind,
    /// Its settings; file and model are the worker's to fill in.
    pub job: Job,
    /// In seconds since 1970.
    pub submitted: u64,
}

impl Submitted {
    /// A job that is not submitted yet.
    pub fn new(
        name: String,
        source: Source,
        recording: Recording,
        model: String,
        kind: Kind,
        job: &Job,
    ) -> Self {
        let job = Job {
            id: NO_JOB,
            file: FilePath::from(""),
            model: FilePath::from(""),
            alternatives: Vec::new(),
            resume: None,
            ..job.clone()
        };
        let id = id(&source, &recording, &model, kind, &job);
        Self { id, name, source, recording, model, needs: None, kind, job, submitted: 0 }
    }
}

/// The same for the same content and settings. What is known of the content is its size and a hash of both ends, as
/// everywhere in Steno; of a file that was not read, where it is and when it was changed.
fn id(source: &Source, recording: &Recording, model: &str, kind: Kind, job: &Job) -> String {
    let content = match (&recording.digest, source) {
        (Some(digest), _) => format!("content {} {digest}", recording.bytes),
        (None, source) => format!("place {} {:?} {source:?}", recording.bytes, recording.modified),
    };
    let text = format!("{ID_VERSION}\n{content}\n{model}\n{kind:?}\n{}", job.settings());
    hex(&Sha256::digest(text.as_bytes()))[..ID_DIGITS].to_owned()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text can be part of a subject, and of the names of streams.
pub(crate) fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LONGEST_QUEUE).contains(&text.len()) && text.bytes().all(is_letter)
}

/// Any name as part of a subject; different names stay different.
pub(crate) fn token(name: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        other => format!("_{other:02x}"),
    };
    name.bytes().map(letter).collect()
}

/// What [`token`] was made of.
pub(crate) fn from_token(token: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = token.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'_') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_are_parts_of_subjects_and_come_back() {
        for name in ["large-v3", "whisper.cpp small_q8 (1)", "模型", "a_2eb", ""] {
            let made = token(name);
            assert!(
                made.is_empty()
                    || made.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            );
            assert_eq!(from_token(&made), name);
        }
    }

    #[test]
    fn an_id_follows_from_content_and_settings_alone() {
        let recording = |digest: &str| Recording { bytes: 7, digest: Some(digest.into()), modified: None };
        let submitted = |path: &str, digest: &str, model: &str, kind, change: &dyn Fn(&mut Job)| {
            let mut job = Job::new(3, path, "some/where");
            change(&mut job);
            let source = Source::Path { path: path.into() };
            Submitted::new("a.wav".into(), source, recording(digest), model.into(), kind, &job).id
        };
        let same = |_: &mut Job| {};
        let usual = submitted("/a", "00", "small", Kind::Transcribe, &same);
        assert_eq!(usual, submitted("/elsewhere", "00", "small", Kind::Transcribe, &same));
        assert_eq!(usual.len(), ID_DIGITS);
        for other in [
            submitted("/a", "01", "small", Kind::Transcribe, &same),
            submitted("/a", "00", "tiny", Kind::Transcribe, &same),
            submitted("/a", "00", "small", Kind::Language, &same),
            submitted("/a", "00", "small", Kind::Transcribe, &|job| job.language = Some("de".into())),
            submitted("/a", "00", "small", Kind::Transcribe, &|job| job.decoding.seed = 7),
        ] {
            assert_ne!(other, usual);
        }
    }
}
