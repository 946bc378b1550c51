//! Names of files that are made of what is known of a transcript.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Transcript;

/// What a name can be made of, as it is written between braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// The recording's name without its ending.
    Name,
    /// The day on which the file is written, as 2026-11-24.
    Date,
    /// The language of the text, as its ISO 639-1 code.
    Language,
    /// The model that wrote it.
    Model,
}

impl Placeholder {
    /// Every placeholder.
    pub const ALL: [Self; 4] = [Self::Name, Self::Date, Self::Language, Self::Model];

    /// As it is written, without the braces.
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Date => "date",
            Self::Language => "language",
            Self::Model => "model",
        }
    }
}

/// A name for the files of a transcript, without their endings: `{name}_{date}_{language}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTemplate(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// Why a template can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TemplateError {
    /// There is no such placeholder.
    #[error(
        "{{{placeholder}}} is not known: a name can contain {{name}}, {{date}}, {{language}} and {{model}}"
    )]
    Unknown {
        /// What stands between the braces.
        placeholder: String,
    },
    /// A brace without the other one.
    #[error("a brace is missing: write placeholders as {{name}}")]
    Brace,
    /// A name is no path, and has no character that a file system refuses.
    #[error("a file name can't contain {character:?}")]
    Forbidden {
        /// The character.
        character: char,
    },
    /// Nothing is left for a name.
    #[error("the name is empty")]
    Empty,
}

/// Not allowed in names by some file system, and what would make a path of a name.
fn is_forbidden(character: char) -> bool {
    character.is_control() || "/\\:*?\"<>|".contains(character)
}

impl FromStr for NameTemplate {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let text = text.trim();
        if let Some(character) = text.chars().find(|character| is_forbidden(*character)) {
            return Err(TemplateError::Forbidden { character });
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            let (word, after) = brace
                .strip_prefix('{')
                .and_then(|inner| inner.split_once('}'))
                .ok_or(TemplateError::Brace)?;
            let known = Placeholder::ALL.into_iter().find(|one| one.word() == word);
            let placeholder = known.ok_or_else(|| TemplateError::Unknown { placeholder: word.to_owned() })?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Placeholder(placeholder));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        if pieces.is_empty() { Err(TemplateError::Empty) } else { Ok(Self(pieces)) }
    }
}

impl fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Placeholder(placeholder) => write!(f, "{{{}}}", placeholder.word()),
        })
    }
}

/// What is known of a transcript when its files are named.
#[derive(Debug, Clone, Copy)]
pub struct NameFacts<'a> {
    /// The recording's name without its ending.
    pub name: &'a OsStr,
    /// The day, as [`today`] says it.
    pub date: &'a str,
    /// ISO 639-1; `None`: not known yet.
    pub language: Option<&'a str>,
    /// Its name; `None`: not known yet.
    pub model: Option<&'a str>,
}

impl<'a> NameFacts<'a> {
    /// Those of a transcript.
    pub fn of(name: &'a OsStr, date: &'a str, transcript: &'a Transcript) -> Self {
        Self { name, date, language: Some(&transcript.language), model: Some(&transcript.model.name) }
    }
}

impl NameTemplate {
    /// The name of the files, without their endings; never a path. `None` where something in it is
    /// not known yet.
    pub fn fill(&self, facts: &NameFacts) -> Option<OsString> {
        let mut name = OsString::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => name.push(text),
                // It is the name of a file already.
                Piece::Placeholder(Placeholder::Name) => name.push(facts.name),
                Piece::Placeholder(Placeholder::Date) => name.push(facts.date),
                Piece::Placeholder(Placeholder::Language) => name.push(harmless(facts.language?)),
                Piece::Placeholder(Placeholder::Model) => name.push(harmless(facts.model?)),
            }
        }
        Some(name)
    }
}

fn harmless(value: &str) -> String {
    value.chars().map(|character| if is_forbidden(character) { '-' } else { character }).collect()
}

/// This day where the user is, as 2026-11-24.
pub fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_what_is_known_and_are_never_paths() {
        let facts = NameFacts {
            name: OsStr::new("Interview 1.2"),
            date: "2026-11-24",
            language: Some("de"),
            model: Some("openai/whisper-small"),
        };
        for (template, expected) in [
            ("{name}", "Interview 1.2"),
            ("{name}_{date}_{language}", "Interview 1.2_2026-11-24_de"),
            ("  {date} {name} ({model}) ", "2026-11-24 Interview 1.2 (openai-whisper-small)"),
            ("same", "same"),
        ] {
            let parsed: NameTemplate = template.parse().unwrap();
            assert_eq!(parsed.fill(&facts), Some(expected.into()), "{template}");
            assert_eq!(parsed.to_string(), template.trim());
        }
        let early = NameFacts { language: None, model: None, ..facts };
        for (template, is_known) in [("{name} {date}", true), ("{language}", false), ("{model}", false)] {
            let parsed: NameTemplate = template.parse().unwrap();
            assert_eq!(parsed.fill(&early).is_some(), is_known, "{template}");
        }
    }

    #[test]
    fn what_can_not_be_a_name_is_refused_with_the_reason() {
        for (template, expected) in [
            ("", TemplateError::Empty),
            ("   ", TemplateError::Empty),
            ("{title}", TemplateError::Unknown { placeholder: "title".into() }),
            ("{Name}", TemplateError::Unknown { placeholder: "Name".into() }),
            ("{}", TemplateError::Unknown { placeholder: String::new() }),
            ("{name", TemplateError::Brace),
            ("name}", TemplateError::Brace),
            ("../{name}", TemplateError::Forbidden { character: '/' }),
            ("a\\{name}", TemplateError::Forbidden { character: '\\' }),
            ("a\n{name}", TemplateError::Forbidden { character: '\n' }),
            ("{name}: {date}", TemplateError::Forbidden { character: ':' }),
        ] {
            assert_eq!(template.parse::<NameTemplate>(), Err(expected), "{template:?}");
        }
    }

    #[test]
    fn a_day_is_written_so_that_names_sort_by_it() {
        let today = today();
        let parts: Vec<usize> = today.split('-').map(str::len).collect();
        assert_eq!(parts, [4, 2, 2], "{today}");
    }
}
