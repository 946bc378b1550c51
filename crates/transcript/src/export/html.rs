use std::io::{self, Write};

use super::document::{facts, paragraphs, title};
use super::text::escape_markup;
use super::{DEMONSTRATION_WARNING, Options};
use crate::{Suspicion, Transcript};

/// For light and dark themes, screen and paper. System fonts, so that nothing is
/// fetched.
const STYLE: &str = "\
:root { color-scheme: light dark; }
body { max-width: 42rem; margin: 2rem auto; padding: 0 1rem; font: 1.05rem/1.6 system-ui, sans-serif;
  color: light-dark(#1c1c1e, #e8e8ea); background: light-dark(#ffffff, #1c1c1e); }
h1, h2 { overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; }
h2 { margin-top: 2rem; font-size: 1.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; font-size: 0.9rem; }
dt { color: light-dark(#5c5c66, #a8a8b3); }
dd { margin: 0; }
time { color: light-dark(#5c5c66, #a8a8b3); font-size: 0.85rem; font-variant-numeric: tabular-nums; }
.translation { margin-top: -0.6rem; color: light-dark(#5c5c66, #a8a8b3); }
mark { color: inherit; background: light-dark(#fff0c2, #5a4a12); }
.warning { padding: 0.6rem 1rem; border: 1px solid light-dark(#b45309, #f59e0b); border-radius: 0.4rem; }
";

/// A web page without scripts that needs no other file.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let title = escape(&title(transcript));
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>", escape(&transcript.language))?;
    writeln!(out, "<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>")?;
    writeln!(out, "<h1 dir=\"auto\">{title}</h1>")?;
    if transcript.model.demonstration {
        writeln!(out, "<p class=\"warning\" role=\"note\" lang=\"en\">{DEMONSTRATION_WARNING}</p>")?;
    }
    writeln!(out, "<dl lang=\"en\">")?;
    for (name, value) in facts(transcript) {
        writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(&value))?;
    }
    writeln!(out, "</dl>\n<main>")?;
    for paragraph in paragraphs(transcript, options) {
        if let Some(title) = &paragraph.chapter {
            writeln!(out, "<h2 dir=\"auto\">{}</h2>", escape(title))?;
        }
        write!(out, "<p dir=\"auto\">")?;
        // The time does not influence `dir="auto"`: digits have no direction.
        if let Some(time) = &paragraph.time {
            write!(out, "<time>{time}</time> ")?;
        }
        if let Some(label) = &paragraph.label {
            write!(out, "<b><bdi>{}</bdi></b> ", escape(label))?;
        }
        for sentence in &paragraph.sentences {
            let (space, text) = (sentence.space, escape(&sentence.text));
            match reason(&sentence.segment.suspicions) {
                Some(reason) => write!(out, "{space}<mark title=\"{reason}\">{text}</mark>")?,
                None => write!(out, "{space}{text}")?,
            }
        }
        writeln!(out, "</p>")?;
        if let Some(translation) = &paragraph.translation {
            writeln!(out, "<p class=\"translation\" lang=\"en\">{}</p>", escape(translation))?;
        }
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

/// The tooltip of a highlighted sentence.
fn reason(suspicions: &[Suspicion]) -> Option<&'static str> {
    suspicions.first().map(|suspicion| match suspicion {
        Suspicion::Loop => "Doubtful: repeated words",
        Suspicion::TooFast => "Doubtful: too many words for the time",
        Suspicion::OverSilence => "Doubtful: no speech was heard here",
        Suspicion::LowConfidence => "Doubtful: the model was unsure",
    })
}

/// For text and for attributes in double quotes.
fn escape(text: &str) -> String {
    escape_markup(text).replace('"', "&quot;")
}
