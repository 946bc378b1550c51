//! Cleaning of text for exporters. Only line breaks, control characters and
//! surrounding white space are changed; the order of characters, direction
//! marks and combining marks are kept.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::Options;
use crate::{Segment, Time, Transcript};

/// Whether some program takes the character for the end of a line, or it is a
/// control character.
pub fn breaks_line(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The lines of a text, trimmed. Blank lines are left out, as they would end a
/// subtitle cue.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(breaks_line).map(str::trim).filter(|line| !line.is_empty())
}

/// The text on one line, with single spaces for line breaks and tabs.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let mut parts =
        text.split(|c| c == '\t' || breaks_line(c)).map(str::trim).filter(|part| !part.is_empty());
    let Some(first) = parts.next() else { return Cow::Borrowed("") };
    let mut joined = Cow::Borrowed(first);
    for part in parts {
        let joined = joined.to_mut();
        joined.push(' ');
        joined.push_str(part);
    }
    joined
}

/// A cell of a table. Text that a spreadsheet would take for a formula, and run, gets an
/// apostrophe in front, by which spreadsheets know text.
pub fn cell<'a>(text: &'a str, options: &Options) -> Cow<'a, str> {
    // Full-width ones are read as the others.
    const BEGINS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    if !options.raw_text && text.trim_start().starts_with(BEGINS) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Labels of segments: the speaker or, if there are several, the channel.
pub struct SpeakerLabels {
    several_channels: bool,
}

impl SpeakerLabels {
    pub fn of(transcript: &Transcript) -> Self {
        let channels: BTreeSet<_> =
            transcript.segments.iter().filter_map(|segment| segment.channel).collect();
        Self { several_channels: channels.len() > 1 }
    }

    /// The speaker's name, else the channel counted from 1, else `None`.
    pub fn label(&self, segment: &Segment) -> Option<String> {
        let speaker = segment.speaker.as_deref().map(one_line).filter(|name| !name.is_empty());
        speaker.map(Cow::into_owned).or_else(|| {
            let channel = segment.channel.filter(|_| self.several_channels)?;
            Some(format!("Channel {}", u64::from(channel) + 1))
        })
    }
}

/// `01:02:03`, then `point` and milliseconds. Hours have at least two digits.
pub fn clock(time: Time, point: char) -> String {
    let millis = time.millis();
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}{point}{millis:03}")
}

/// Writes `&`, `<` and `>` as the character references that HTML, XML and
/// WebVTT have in common.
pub fn escape_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_trimmed_and_never_blank() {
        for (text, expected) in [
            ("one", vec!["one"]),
            (" one \n\n two\r\nthree ", vec!["one", "two", "three"]),
            ("a\u{2028}b\u{85}c\u{b}d\u{c}e", vec!["a", "b", "c", "d", "e"]),
            (" \n\u{3000}\n", vec![]),
            ("nul\0byte", vec!["nul", "byte"]),
            ("tab\tstays", vec!["tab\tstays"]),
        ] {
            assert_eq!(lines(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn right_to_left_text_keeps_every_character() {
        for text in ["\u{200f}שלום, world\u{200f}", "مرحبا \u{2067}abc\u{2069} بك", "e\u{301}a\u{200d}b"]
        {
            assert_eq!(one_line(text), text);
            assert_eq!(lines(text).collect::<Vec<_>>(), [text]);
        }
    }

    #[test]
    fn a_spreadsheet_runs_no_cell() {
        for (text, expected) in [
            ("=HYPERLINK(\"http://example.org\")", "'=HYPERLINK(\"http://example.org\")"),
            ("-2+3", "'-2+3"),
            ("+1", "'+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            (" =1", "' =1"),
            ("＝1", "'＝1"),
            ("1 = 1", "1 = 1"),
            ("'tis", "'tis"),
            ("", ""),
        ] {
            assert_eq!(cell(text, &Options::default()), expected);
            assert_eq!(cell(text, &Options { raw_text: true, ..Options::default() }), text);
        }
    }

    #[test]
    fn clocks() {
        for (millis, expected) in [
            (0, "00:00:00,000"),
            (3_723_004, "01:02:03,004"),
            (59_999, "00:00:59,999"),
            (360_000_000, "100:00:00,000"),
        ] {
            assert_eq!(clock(Time::from_millis(millis), ','), expected);
        }
    }
}
