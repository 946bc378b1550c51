//! The notices about a job, with their figures, and what they say in English; those about
//! memory in the form in which they travel and transcripts keep them. `memory` and `transcript`
//! don't know each other, so that this is the one place where one becomes the other.

use memory::Severity;
use serde::{Deserialize, Serialize};
use transcript::{Notice, Time, export::clock};

use crate::{ErrorCode, Failure};

memory::notices! {
    "JobMessage";
    /// The file ends before the recording does.
    Truncated = "audio.truncated" {
        /// How much was decoded.
        decoded: f64,
        /// How long the recording is, where the file says so.
        declared: Option<f64>,
        /// What the decoder says, where that is more.
        detail: Option<String>,
    },
    /// Parts could not be decoded.
    Damaged = "audio.damaged" {
        /// There is silence in their place.
        silenced: bool,
        /// What the decoder says.
        detail: Option<String>,
    },
    /// The channels cancel each other out when mixed.
    Phase = "audio.phase" {
        /// The channel that was taken alone, from 1.
        channel: usize,
        /// By how much the mix would be quieter.
        decibels: f64,
    },
    /// A channel was chosen, but the recording is mono.
    Mono = "audio.mono" {},
    /// The file has several audio tracks, of which one is taken.
    SeveralTracks = "audio.several_tracks" {
        /// How many.
        tracks: usize,
        /// The one that is taken, from 0.
        taken: usize,
        /// Its language, as the file spells it.
        language: Option<String>,
    },
    /// A speaker sounds like a person that is known.
    MaybeKnown = "speakers.maybe_known" {
        /// The speaker.
        speaker: String,
        /// The person.
        person: String,
    },
    /// The recording's language was identified, and another model than the chosen one transcribes it.
    ModelOfLanguage = "model.of_language" {
        /// ISO 639-1.
        language: String,
        /// How sure that is, 0 to 1.
        probability: f32,
        /// The model that transcribes.
        model: String,
    },
    /// The language that the model was to follow from could not be identified, so that the chosen model transcribes.
    LanguageNotIdentified = "model.language_not_identified" {
        /// Why.
        detail: String,
    },
    /// The known voices could not be read, so that no speaker has a name.
    VoicesUnreadable = "speakers.voices_unreadable" {
        /// Why.
        detail: String,
    },
    /// There is speech without text.
    Gaps = "transcript.gaps" {
        /// In how many places.
        gaps: usize,
    },
    /// Text over silence was left out.
    Discarded = "transcript.discarded" {
        /// How many passages.
        passages: usize,
    },
    /// A part was transcribed again.
    Again = "transcript.again" {
        /// Where it begins.
        from: f64,
        /// Where it ends.
        to: f64,
        /// The model.
        model: String,
    },
    /// A part was to be transcribed again, and was not.
    AgainFailed = "transcript.again_failed" {
        /// Why.
        error: ErrorCode,
        /// The same in English.
        detail: String,
    },
    /// The engine ended and was started again.
    Restarted = "engine.restarted" {
        /// Why.
        error: ErrorCode,
        /// The same in English.
        detail: String,
    },
    /// A place ended the engine again and again, and is left out.
    WindowSkipped = "engine.window_skipped" {
        /// How often.
        times: u32,
    },
    /// Another Steno computes.
    DeviceWaiting = "device.waiting" {
        /// `cpu` or `cuda:N`.
        device: String,
        /// The number of the other's process.
        pid: Option<u32>,
    },
    /// A graphics card is there that this engine can't use.
    DeviceUnusable = "device.unusable" {
        /// `cuda:N`.
        device: String,
        /// Why.
        problem: CardProblem,
    },
    /// The journal can't be written.
    JournalUnavailable = "journal.unavailable" {
        /// Why.
        detail: String,
    },
    /// The recording is another one than when the job was interrupted.
    FileChanged = "journal.file_changed" {},
    /// The transcript is not in the history.
    HistoryUnavailable = "history.unavailable" {
        /// Why.
        detail: String,
    },
    /// A transcript of the history could be read in part.
    HistoryDamaged = "history.damaged" {
        /// Why.
        detail: String,
    },
    /// The text of a recording of a watched folder was not written.
    ExportFailed = "export.failed" {
        /// Why.
        error: ErrorCode,
        /// The file.
        file: Option<String>,
        /// The same in English.
        detail: String,
    },
}

/// Why this engine can't use a graphics card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum CardProblem {
    /// It has no code for cards of this compute capability.
    Capability {
        /// What the card is called.
        card: String,
        /// Its compute capability.
        found: String,
        /// Those that the engine has code for.
        built_for: Vec<String>,
    },
    /// The driver does not accept the engine's code.
    Code {
        /// What the driver says.
        detail: String,
    },
    /// An operation gives a wrong result.
    Result {
        /// Which one.
        operation: String,
    },
}

impl CardProblem {
    /// In English: what is wrong, and what to do.
    pub fn text(&self) -> String {
        match self {
            Self::Capability { card, found, built_for } => format!(
                "{card} has compute capability {found}, and this engine is built for {}. Install an engine that is \
                 built for it.",
                built_for.join(", ")
            ),
            Self::Code { detail } => format!(
                "The NVIDIA driver does not accept this engine's code ({detail}). Update the driver, or install an \
                 engine that is built for this card."
            ),
            Self::Result { operation } => format!(
                "The operation \"{operation}\" gave a wrong result. Update the NVIDIA driver, or install an engine \
                 that is built for this card."
            ),
        }
    }
}

impl Message {
    /// What it means for the result.
    pub fn severity(&self) -> transcript::Severity {
        use transcript::Severity as S;
        match self {
            Self::Truncated { .. } | Self::Damaged { .. } | Self::Phase { .. } | Self::Mono {} => S::Degraded,
            Self::Gaps { .. } | Self::HistoryUnavailable { .. } => S::Degraded,
            Self::AgainFailed { .. }
            | Self::WindowSkipped { .. }
            | Self::HistoryDamaged { .. }
            | Self::ExportFailed { .. } => S::Failed,
            Self::SeveralTracks { .. }
            | Self::MaybeKnown { .. }
            | Self::ModelOfLanguage { .. }
            | Self::LanguageNotIdentified { .. }
            | Self::VoicesUnreadable { .. }
            | Self::Discarded { .. }
            | Self::Again { .. }
            | Self::Restarted { .. }
            | Self::DeviceWaiting { .. }
            | Self::DeviceUnusable { .. }
            | Self::JournalUnavailable { .. }
            | Self::FileChanged {} => S::Info,
        }
    }

    /// In English, for the command line and for files.
    pub fn text(&self) -> String {
        let in_brackets =
            |detail: &Option<String>| detail.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        match self {
            Self::Truncated { decoded, declared, detail } => {
                let of = declared.map(|declared| format!(" of {declared:.1} s")).unwrap_or_default();
                let reason = in_brackets(detail);
                format!("The file is damaged or cut off: only {decoded:.1} s{of} could be decoded{reason}.")
            }
            Self::Damaged { silenced, detail } => {
                let silence = if *silenced { "; there is silence in their place" } else { "" };
                format!("Parts of the file are damaged{}{silence}.", in_brackets(detail))
            }
            Self::Phase { channel, decibels } => format!(
                "The channels cancel each other out: mixed, they would be {decibels:.0} dB quieter. \
                 Only channel {channel} is transcribed."
            ),
            Self::Mono {} => "The recording has only one channel, which is transcribed.".into(),
            Self::SeveralTracks { tracks, taken, language } => format!(
                "The file has {tracks} audio tracks; track {}{} is transcribed.",
                taken + 1,
                in_brackets(language)
            ),
            Self::MaybeKnown { speaker, person } => {
                format!("{speaker} may be {person}. Listen, and rename {speaker} if that is right.")
            }
            Self::ModelOfLanguage { language, probability, model } => format!(
                "The language is {language} ({:.0} %): the model {model} transcribes this recording.",
                probability * 100.0
            ),
            Self::LanguageNotIdentified { detail } => {
                format!("The language could not be identified, so the chosen model transcribes. {detail}")
            }
            Self::VoicesUnreadable { detail } => format!("{detail} Speakers have numbers instead of names."),
            Self::Gaps { gaps: 1 } => "In 1 place, more than 2 s of speech has no text.".into(),
            Self::Gaps { gaps } => format!("In {gaps} places, more than 2 s of speech has no text."),
            Self::Discarded { passages: 1 } => "1 passage of text without speech was left out.".into(),
            Self::Discarded { passages } => {
                format!("{passages} passages of text without speech were left out.")
            }
            Self::Again { from, to, model } => {
                let at = |seconds: &f64| clock(Time::from_seconds(*seconds), '.');
                format!(
                    "The part from {} to {} was transcribed again with the model {model}.",
                    at(from),
                    at(to)
                )
            }
            Self::AgainFailed { detail, .. } => detail.clone(),
            Self::Restarted { detail, .. } => {
                format!("{detail} It was restarted; transcription continues where it stopped.")
            }
            Self::WindowSkipped { times } => {
                format!("The engine stopped here {times} times, so this passage is skipped.")
            }
            Self::DeviceWaiting { device, pid } => {
                let device = if device == "cpu" { "the CPU" } else { device };
                let pid = pid.map(|pid| format!(" (process id {pid})")).unwrap_or_default();
                format!("Waiting for {device}: another Steno{pid} is using it. This recording is next.")
            }
            Self::JournalUnavailable { detail } => {
                format!("{detail} The job continues, but it can't be resumed if Steno is closed.")
            }
            Self::DeviceUnusable { device, problem } => {
                format!("{device} is not used; Steno uses the CPU instead. {}", problem.text())
            }
            Self::FileChanged {} => {
                "The recording has changed since it was interrupted, so it starts again from the beginning."
                    .into()
            }
            Self::HistoryUnavailable { detail } => format!("{detail} The text can be saved, but not edited."),
            Self::HistoryDamaged { detail } => format!("Only the beginning could be read. {detail}"),
            Self::ExportFailed { detail, .. } => format!("The transcript was not saved: {detail}"),
        }
    }

    /// That the engine ended for this reason and was started again.
    pub fn restarted(failure: &Failure) -> Self {
        Self::Restarted { error: failure.code, detail: failure.message.clone() }
    }

    /// That a part was not transcribed again for this reason.
    pub fn again_failed(failure: Failure) -> Self {
        Self::AgainFailed { error: failure.code, detail: failure.message }
    }

    /// That the text was not written for this reason.
    pub fn export_failed(failure: &Failure) -> Self {
        let file = failure.file.as_ref().map(ToString::to_string);
        Self::ExportFailed { error: failure.code, file, detail: failure.to_string() }
    }
}

impl From<Message> for Notice {
    fn from(message: Message) -> Self {
        let notice = Self::new(message.code().as_str(), message.severity(), message.text());
        Self { data: Some(message.data()), ..notice }
    }
}

/// A notice of either kind, for a reader that has its words in another language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[cfg_attr(feature = "ts", ts(rename = "NoticeMessage"))]
#[serde(untagged)]
pub enum AnyMessage {
    /// About memory.
    Memory(memory::Message),
    /// About the job.
    Job(Message),
}

impl AnyMessage {
    /// The codes of all notices.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        let memory = memory::Code::ALL.iter().map(|code| code.as_str());
        memory.chain(Code::ALL.iter().map(|code| code.as_str()))
    }

    /// What a notice says; `None` where it was saved by an earlier version, without figures,
    /// or by a later one.
    pub fn of(notice: &Notice) -> Option<Self> {
        let data = notice.data.as_ref()?;
        match memory::Code::from_code(&notice.code) {
            Some(code) => memory::Message::of(code, data).map(Self::Memory),
            None => Message::of(Code::from_code(&notice.code)?, data).map(Self::Job),
        }
    }
}

/// A notice about memory as a transcript keeps it; its code stays the same.
pub fn from_memory(notice: &memory::Notice) -> Notice {
    let severity = match notice.severity {
        Severity::Info => transcript::Severity::Info,
        Severity::Degraded => transcript::Severity::Degraded,
        Severity::Failed => transcript::Severity::Failed,
    };
    let kept = Notice::new(notice.code.as_str(), severity, notice.text.clone());
    Notice { data: notice.data.clone(), ..kept }
}

/// The reverse of [`from_memory`], for the memory log; `None` for a notice that
/// is not about memory.
pub fn to_memory(notice: &Notice) -> Option<memory::Notice> {
    let severity = match notice.severity {
        transcript::Severity::Info => Severity::Info,
        transcript::Severity::Degraded => Severity::Degraded,
        transcript::Severity::Failed => Severity::Failed,
    };
    let code = memory::Code::from_code(&notice.code)?;
    let text = notice.text.clone();
    Some(memory::Notice { code, severity, text, data: notice.data.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_about_memory_survives_both_ways() {
        for code in memory::Code::ALL {
            for severity in [Severity::Info, Severity::Degraded, Severity::Failed] {
                let notice = memory::Notice::new(*code, severity, "Text.");
                assert_eq!(to_memory(&from_memory(&notice)), Some(notice));
            }
        }
        let other = Notice::new("audio.truncated", transcript::Severity::Degraded, "The file ends early.");
        assert_eq!(to_memory(&other), None);
    }

    #[test]
    fn figures_are_saved_and_come_back_and_what_has_none_is_still_read() {
        let failure = Failure::new(ErrorCode::EngineFailed, "It ended.");
        for message in [
            Message::Truncated { decoded: 12.3, declared: Some(60.0), detail: None },
            Message::Damaged { silenced: true, detail: Some("invalid frame".into()) },
            Message::Phase { channel: 1, decibels: 40.0 },
            Message::Mono {},
            Message::DeviceWaiting { device: "cuda:0".into(), pid: None },
            Message::restarted(&failure),
            Message::export_failed(&failure.clone().file("/talk.srt")),
        ] {
            let notice = Notice::from(message.clone());
            let saved = serde_json::to_string(&notice).unwrap();
            let read: Notice = serde_json::from_str(&saved).unwrap();
            assert_eq!(AnyMessage::of(&read), Some(AnyMessage::Job(message)), "{saved}");
        }
        // Of an earlier version; of a later one, with other figures or an unknown code.
        for json in [
            r#"{"code":"transcript.gaps","severity":"degraded","text":"2 stretches."}"#,
            r#"{"code":"transcript.gaps","severity":"degraded","text":"2 stretches.","data":{"places":2}}"#,
            r#"{"code":"transcript.new","severity":"info","text":"Something.","data":{}}"#,
        ] {
            let read: Notice = serde_json::from_str(json).unwrap();
            assert_eq!(AnyMessage::of(&read), None, "{json}");
        }
    }

    #[test]
    fn counted_things_have_a_form_of_their_own_for_one() {
        for (message, expected) in [
            (Message::Gaps { gaps: 1 }, "In 1 place, more than 2 s of speech has no text."),
            (Message::Gaps { gaps: 5 }, "In 5 places, more than 2 s of speech has no text."),
            (Message::Discarded { passages: 1 }, "1 passage of text without speech was left out."),
            (Message::Discarded { passages: 5 }, "5 passages of text without speech were left out."),
        ] {
            assert_eq!(message.text(), expected);
        }
    }
}
