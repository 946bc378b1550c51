//! Arguments that are more than a number or a word.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use transcript::Task;
use transcript::export::Format;
use transcript::naming::{NameTemplate, TemplateError};
use wire::{Channels, DecodingOptions, SpeakerCount, Strategy, VoiceActivity};

use crate::args::Part;

/// Lists the formats in the help text and in completions.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let known = Format::ALL.iter().map(|format| PossibleValue::new(format.name()).help(format.description()));
    PossibleValuesParser::new(known).try_map(|name| Format::from_str(&name))
}

/// Those of a text that was just written. The others are known but not listed: what asks for one is told
/// where it comes from.
pub fn format_of_new_text() -> impl TypedValueParser<Value = Format> {
    let known = Format::ALL.iter().map(|format| {
        PossibleValue::new(format.name()).help(format.description()).hide(format.is_of_chapters())
    });
    PossibleValuesParser::new(known).try_map(|name| Format::from_str(&name))
}

pub fn part() -> impl TypedValueParser<Value = Part> {
    let known = [
        PossibleValue::new("times").help("no time before a paragraph"),
        PossibleValue::new("speakers").help("no speaker before a paragraph"),
        PossibleValue::new("paragraphs").help("a paragraph per segment"),
    ];
    PossibleValuesParser::new(known).map(|name| match name.as_str() {
        "times" => Part::Times,
        "speakers" => Part::Speakers,
        _ => Part::Paragraphs,
    })
}

pub fn task() -> impl TypedValueParser<Value = Task> {
    let known = [
        PossibleValue::new("transcribe").help("write what is said, in its language"),
        PossibleValue::new("translate").help("write it in English"),
    ];
    PossibleValuesParser::new(known)
        .map(|name| if name == "translate" { Task::Translate } else { Task::Transcribe })
}

pub fn channels() -> impl TypedValueParser<Value = Channels> {
    let known = [
        PossibleValue::new("mix").help("all channels mixed"),
        PossibleValue::new("left").help("only the first channel"),
        PossibleValue::new("right").help("only the second channel"),
        PossibleValue::new("separate").help("each channel separately; segments are marked with its number"),
    ];
    PossibleValuesParser::new(known).map(|name| match name.as_str() {
        "left" => Channels::Left,
        "right" => Channels::Right,
        "separate" => Channels::Separate,
        _ => Channels::Mix,
    })
}

/// People count tracks from 1, as the window does; a job counts them from 0.
pub fn track(text: &str) -> Result<usize, String> {
    let number: std::num::NonZeroUsize =
        text.parse().map_err(|_| "tracks are numbered 1, 2 and so on".to_owned())?;
    Ok(number.get() - 1)
}

pub fn date(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| "it takes a date in the form YEAR-MONTH-DAY, as in 2026-01-31".into())
}

pub fn name_template(text: &str) -> Result<NameTemplate, String> {
    text.parse().map_err(|error: TemplateError| error.to_string())
}

pub fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let known = [
        PossibleValue::new("auto")
            .help("batched, but sequential with --from, --to or --condition-on-previous-text"),
        PossibleValue::new("sequential")
            .help("one 30-second window after another, each from where the text ended"),
        PossibleValue::new("batched").help("speech split at pauses, several windows decoded together"),
    ];
    PossibleValuesParser::new(known).map(|name| match name.as_str() {
        "sequential" => Strategy::Sequential,
        "batched" => Strategy::Batched,
        _ => Strategy::Auto,
    })
}

/// `None` where the language is to be detected. Whether the model knows the
/// language is for the engine to say.
pub fn language(text: &str) -> Result<Language, String> {
    let code = text.trim().to_ascii_lowercase();
    if code == "auto" {
        return Ok(Language(None));
    }
    if (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok(Language(Some(code)));
    }
    Err(format!("`{text}` is not a language code: use two letters such as en, de or fr, or auto"))
}

/// The language that was asked for, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language(pub Option<String>);

pub fn speakers(text: &str) -> Result<SpeakerCount, String> {
    if text == "auto" {
        return Ok(SpeakerCount::default());
    }
    let count = text.parse().ok().filter(|count| (1..=SpeakerCount::MOST).contains(count));
    let wanted = || format!("it takes a number from 1 to {}, or none", SpeakerCount::MOST);
    count.map(SpeakerCount::exactly).ok_or_else(wanted)
}

/// A bound on the number of speakers.
pub fn speaker_limit() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(SpeakerCount::MOST))
}

pub fn voice_activity(text: &str) -> Result<VoiceActivity, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(VoiceActivity::Off);
    }
    probability(text).map(VoiceActivity::Threshold).map_err(|_| {
        format!("`{text}` is neither off nor a threshold between 0 and 1 (default {})", {
            VoiceActivity::DEFAULT_THRESHOLD
        })
    })
}

/// A number from 0 to 1, which temperatures are as well.
pub fn probability(text: &str) -> Result<f32, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| format!("`{text}` is not a number between 0 and 1"))
}

/// How strongly words to expect are preferred.
pub fn strength(text: &str) -> Result<f32, String> {
    let most = DecodingOptions::STRONGEST_VOCABULARY;
    text.trim()
        .parse()
        .ok()
        .filter(|number| (0.0..=most).contains(number))
        .ok_or_else(|| format!("`{text}` is not a number between 0 and {most}"))
}

/// Words of a text file, one per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordList(pub Vec<String>);

pub fn word_list(file: &str) -> Result<WordList, String> {
    let words = library::read_word_list(file.as_ref()).map(WordList);
    words.map_err(|failure| {
        [Some(failure.message), failure.remedy].into_iter().flatten().collect::<Vec<_>>().join(" ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages() {
        assert_eq!(language("auto"), Ok(Language(None)));
        for (text, code) in [("EN", "en"), ("de", "de"), ("yue", "yue")] {
            assert_eq!(language(text), Ok(Language(Some(code.into()))));
        }
        for text in ["", "e", "english", "d3"] {
            assert!(language(text).is_err(), "{text}");
        }
    }

    #[test]
    fn thresholds() {
        assert_eq!(voice_activity("off"), Ok(VoiceActivity::Off));
        assert_eq!(voice_activity("0.35"), Ok(VoiceActivity::Threshold(0.35)));
        for text in ["", "on", "1.5", "-0.1", "nan"] {
            assert!(voice_activity(text).is_err(), "{text}");
        }
    }
}
