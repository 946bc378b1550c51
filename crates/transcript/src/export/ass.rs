use std::io::{self, Write};

use super::cues::{Cue, CueLine, cues};
use super::document::title;
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Time, Transcript};

/// The play resolution and one style, in the order of the `Format` line. Colours are `&HAABBGGRR`:
/// white letters with a black outline, at the bottom in the middle.
const STYLES: &str = "\
ScriptType: v4.00+
WrapStyle: 0
ScaledBorderAndShadow: yes
PlayResX: 1920
PlayResY: 1080

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,60,&H00FFFFFF,&H0000FFFF,&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,3,1,2,60,60,50,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
";

/// Advanced SubStation Alpha (v4.00+). The speaker of a cue is its `Name`, which players don't show and
/// editors filter by. If the options say so each word has its time as karaoke (`\k`), in hundredths of a
/// second.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "[Script Info]")?;
    if transcript.model.demonstration {
        writeln!(out, "; {DEMONSTRATION_WARNING}")?;
    }
    writeln!(out, "Title: {}", title(transcript))?;
    write!(out, "{STYLES}")?;
    for cue in cues(transcript, options) {
        let (start, end) = (clock(cue.start), clock(cue.end));
        // A cue of two speakers is an event for each: an event has one name.
        for lines in cue.turns() {
            // A comma would end the field.
            let name = lines[0].label.as_deref().unwrap_or_default().replace(',', " ");
            let mut latest = cue.start;
            let texts: Vec<String> = lines
                .iter()
                .map(|line| match options.word_times {
                    true => with_word_times(line, &cue, &mut latest),
                    false => plain(&line.text()),
                })
                .collect();
            writeln!(out, "Dialogue: 0,{start},{end},Default,{name},0,0,0,,{}", texts.join("\\N"))?;
        }
    }
    Ok(())
}

/// A line that players show as it is. Braces hold commands and a backslash begins one, and there is no
/// escape that every player knows: signs that look alike stand in their place.
fn plain(text: &str) -> String {
    text.replace('{', "(").replace('}', ")").replace('\\', "⧵")
}

/// Each word after the hundredths of a second that it lasts, until the next one starts.
fn with_word_times(line: &CueLine, cue: &Cue, latest: &mut Time) -> String {
    let mut text = String::new();
    for (index, piece) in line.pieces.iter().enumerate() {
        let Some(start) = piece.start else {
            text += &plain(&piece.text);
            continue;
        };
        let next = line.pieces[index + 1..].iter().find_map(|piece| piece.start).unwrap_or(cue.end);
        if start > *latest {
            text += &format!("{{\\k{}}}", hundredths(start) - hundredths(*latest));
        }
        *latest = next.min(cue.end).max(start);
        text += &format!("{{\\k{}}}{}", hundredths(*latest) - hundredths(start), plain(&piece.text));
    }
    text
}

/// Rounded down, so that consecutive times never cross.
fn hundredths(time: Time) -> u32 {
    time.millis() / 10
}

/// `1:02:03.45`: the format knows hundredths alone.
fn clock(time: Time) -> String {
    let (seconds, hundredths) = (hundredths(time) / 100, hundredths(time) % 100);
    format!("{}:{:02}:{:02}.{hundredths:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};
    use crate::{Segment, Word};

    fn events(transcript: &Transcript, options: &Options) -> Vec<String> {
        let mut written = Vec::new();
        write(transcript, options, &mut written).unwrap();
        let text = String::from_utf8(written).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("Dialogue: 0,")).map(str::to_owned).collect()
    }

    #[test]
    fn commands_and_commas_are_text() {
        let mut said = segment(61_239, 3_600_000, "{\\an8}up, \\N down");
        said.speaker = Some("Doe, Ann".into());
        let events = events(&transcript(vec![said]), &Options::default());
        assert_eq!(events, ["0:01:01.23,1:00:00.00,Default,Doe  Ann,0,0,0,,(⧵an8)up, ⧵N down"]);
    }

    #[test]
    fn two_who_speak_at_once_have_an_event_each() {
        let by = |speaker: &str, text| Segment { speaker: Some(speaker.into()), ..segment(0, 1_000, text) };
        let events =
            events(&transcript(vec![by("Ada", "Yes."), by("Ben", "No.\nNever.")]), &Options::default());
        assert_eq!(
            events,
            [
                "0:00:00.00,0:00:01.00,Default,Ada,0,0,0,,Yes.",
                "0:00:00.00,0:00:01.00,Default,Ben,0,0,0,,No.\\NNever."
            ]
        );
    }

    #[test]
    fn words_last_until_the_next_one() {
        let word = |start: u32, end: u32, text: &str| Word {
            start: Time::from_millis(start),
            end: Time::from_millis(end),
            text: text.into(),
            ..Word::default()
        };
        let mut said = segment(1_000, 3_000, "One two.");
        said.words = vec![word(1_250, 1_500, " One"), word(2_000, 2_400, " two.")];
        let options = Options { word_times: true, ..Options::default() };
        let events = events(&transcript(vec![said]), &options);
        assert_eq!(events, ["0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\k25}{\\k75}One{\\k100} two."]);
    }
}
