//! In which format a transcript is asked for, and how it is shaped: the options of `steno export`, as a query.

use transcript::Time;
use transcript::export::{self, DocumentOptions, Format, Options, Shaping};

use crate::error::ApiError;

/// What a query asks for.
#[derive(Debug)]
pub struct Export {
    pub format: Format,
    pub options: Options,
}

impl Export {
    /// Json, as it is, where nothing is asked for.
    pub fn read(query: &[(String, String)]) -> Result<Self, ApiError> {
        let mut format = Format::Json;
        let mut options = Options::default();
        let (mut shaping, mut is_shaped) = (Shaping::default(), false);
        for (name, value) in query {
            let wrong = |message: &str| ApiError::parameter(name, message);
            let switch = || match value.as_str() {
                "true" | "" => Ok(true),
                "false" => Ok(false),
                _ => Err(wrong("This is true or false.")),
            };
            let count = |least: usize| {
                let count = value.parse().ok().filter(|count| *count >= least);
                count.ok_or_else(|| wrong(&format!("This is a number from {least}.")))
            };
            let seconds = |least: f64| {
                let seconds = value.parse().ok().filter(|it: &f64| it.is_finite() && *it >= least);
                seconds.map(Time::from_seconds).ok_or_else(|| wrong("This is a number of seconds."))
            };
            is_shaped |= matches!(
                name.as_str(),
                "line_width" | "lines" | "reading_speed" | "min_gap" | "min_duration" | "max_duration"
            );
            match name.as_str() {
                "format" => {
                    format = value
                        .parse()
                        .map_err(|error: export::UnknownFormat| wrong(&wire::sentence(&error.to_string())))?;
                }
                "shape" => is_shaped |= switch()?,
                "line_width" => shaping.line_width = count(2)?,
                "lines" => shaping.lines = count(1)?,
                "reading_speed" => {
                    let speed = value.parse().ok().filter(|speed: &f32| speed.is_finite() && *speed >= 1.0);
                    shaping.reading_speed = speed.ok_or_else(|| wrong("This is a number of 1 or more."))?;
                }
                "min_gap" => shaping.min_gap = seconds(0.0)?,
                "min_duration" => shaping.min_duration = seconds(0.0)?,
                // A cue of no length would divide a text for ever.
                "max_duration" => shaping.max_duration = seconds(0.001)?,
                "word_tags" => options.word_times = switch()?,
                "bilingual" => options.translation = switch()?,
                "raw_text" => options.raw_text = switch()?,
                "reproducible" => options.reproducible = switch()?,
                "omit" => {
                    options.document = document(value).ok_or_else(|| {
                        wrong("This is a list of times, speakers and paragraphs, separated by commas.")
                    })?
                }
                _ => return Err(wrong("There is no such parameter: GET /openapi.json lists them.")),
            }
        }
        options.shaping = is_shaped.then_some(shaping);
        Ok(Self { format, options })
    }
}

/// All but what is listed.
fn document(omitted: &str) -> Option<DocumentOptions> {
    let mut document = DocumentOptions { times: true, speakers: true, paragraphs: true };
    for part in omitted.split(',').map(str::trim) {
        match part {
            "times" => document.times = false,
            "speakers" => document.speakers = false,
            "paragraphs" => document.paragraphs = false,
            _ => return None,
        }
    }
    Some(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[(&str, &str)]) -> Result<Export, ApiError> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Export::read(&query.iter().map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_taken_and_every_other_value_is_refused_by_name() {
        let usual = read(&[]).unwrap();
        assert_eq!((usual.format, usual.options.shaping), (Format::Json, None));
        let shaping = |query: &[(&str, &str)]| read(query).unwrap().options.shaping;
        assert_eq!(shaping(&[("shape", "true")]), Some(Shaping::default()));
        assert_eq!(shaping(&[("shape", "false")]), None);
        let time = Time::from_millis;
        for (name, value, expected) in [
            ("line_width", "20", Shaping { line_width: 20, ..Shaping::default() }),
            ("lines", "1", Shaping { lines: 1, ..Shaping::default() }),
            ("reading_speed", "12", Shaping { reading_speed: 12.0, ..Shaping::default() }),
            ("min_gap", "0.2", Shaping { min_gap: time(200), ..Shaping::default() }),
            ("min_duration", "2", Shaping { min_duration: time(2000), ..Shaping::default() }),
            ("max_duration", "3", Shaping { max_duration: time(3000), ..Shaping::default() }),
        ] {
            assert_eq!(shaping(&[(name, value)]), Some(expected), "{name}");
        }
        let options = |name, value| read(&[(name, value)]).unwrap().options;
        assert!(options("word_tags", "true").word_times && options("raw_text", "true").raw_text);
        assert!(options("bilingual", "true").translation && options("reproducible", "true").reproducible);
        let document = options("omit", "times,paragraphs").document;
        assert_eq!((document.times, document.speakers, document.paragraphs), (false, true, false));
        for (name, value) in [
            ("format", "doc"),
            ("shape", "yes"),
            ("line_width", "1"),
            ("lines", "0"),
            ("reading_speed", "0"),
            ("min_gap", "-1"),
            ("max_duration", "0"),
            ("omit", "words"),
            ("colour", "red"),
        ] {
            assert_eq!(
                read(&[(name, value)]).unwrap_err().body.param.as_deref(),
                Some(name),
                "{name}={value}"
            );
        }
    }
}
