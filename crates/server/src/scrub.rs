//! Answers tell nothing of the folders of this machine.

use serde_json::Value;
use transcript::{Notice, Transcript};
use wire::{Event, Failure};

/// Stands for a path.
const ELSEWHERE: char = '…';

/// The text with `…` for each absolute path in it.
pub fn without_paths(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let begins_word =
            before.is_whitespace() || matches!(before, '"' | '\'' | '`' | '(' | '=' | '<' | '[');
        let length = if begins_word { path(rest) } else { 0 };
        if length > 0 {
            clean.push(ELSEWHERE);
            rest = &rest[length..];
            before = ELSEWHERE;
        } else {
            clean.push(first);
            rest = &rest[first.len_utf8()..];
            before = first;
        }
    }
    clean
}

/// Bytes of the path that the text begins with: up to white space or what closes it.
fn path(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_unix = bytes.first() == Some(&b'/') && bytes.get(1).is_some_and(|byte| byte.is_ascii_graphic());
    let is_drive = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.get(1) == Some(&b':')
        && matches!(bytes.get(2), Some(b'\\' | b'/'));
    if !is_unix && !is_drive && !text.starts_with("\\\\") {
        return 0;
    }
    let closes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | '>' | ']' | ',' | ';');
    let end = text.find(closes).unwrap_or(text.len());
    // The colon or full stop of the sentence.
    text[..end].trim_end_matches([':', '.', '!', '?']).len()
}

/// A notice for the client.
pub fn notice(notice: &mut Notice) {
    notice.text = without_paths(&notice.text);
    for value in notice.data.iter_mut().flat_map(|data| data.values_mut()) {
        scrub(value);
    }
}

/// A transcript for the client, under the name that the client gave the recording.
pub fn transcript(transcript: &mut Transcript, name: &str) {
    name.clone_into(&mut transcript.source.name);
    transcript.notices.iter_mut().for_each(notice);
}

/// An event for the client.
pub fn event(mut event: Event, name: &str) -> Event {
    match &mut event {
        Event::Notice { notice: one } => notice(one),
        Event::Started { source, .. } => name.clone_into(&mut source.name),
        Event::Finished { transcript: whole, .. } => transcript(whole, name),
        Event::Cancelled { partial: Some(partial) } => transcript(partial, name),
        Event::Failed { error, partial } => {
            failure(error);
            if let Some(partial) = partial {
                transcript(partial, name);
            }
        }
        _ => {}
    }
    event
}

fn failure(failure: &mut Failure) {
    failure.file = None;
    failure.message = without_paths(&failure.message);
    failure.remedy = failure.remedy.as_deref().map(without_paths);
}

fn scrub(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_paths(text),
        Value::Array(values) => values.iter_mut().for_each(scrub),
        Value::Object(values) => values.values_mut().for_each(scrub),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_left_out_and_words_stay() {
        for (text, expected) in [
            ("The engine was not found at /usr/lib/steno/steno-engine.", "The engine was not found at …."),
            ("/home/ada/talk.mp3: There is no sound.", "…: There is no sound."),
            ("(\"/home/ada/my.db\") and '/tmp/x', done", "(\"…\") and '…', done"),
            ("C:\\Users\\Ada\\a.wav is empty", "… is empty"),
            ("\\\\server\\share\\a.wav is empty", "… is empty"),
            (
                "12 / 3 and and/or, see https://example.org/a/b",
                "12 / 3 and and/or, see https://example.org/a/b",
            ),
            ("Use --device cpu.", "Use --device cpu."),
        ] {
            assert_eq!(without_paths(text), expected);
        }
    }
}
