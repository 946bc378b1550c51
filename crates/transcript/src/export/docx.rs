use std::io::{self, Cursor, Write};

use docx_rs::{Docx, LineSpacing, Paragraph, Run, Style, StyleType};

use super::DEMONSTRATION_WARNING;
use super::document::{Direction, direction, facts, paragraphs, reading_clock, title};
use crate::Transcript;

/// Sizes in half points, distances in twentieths of a point: Word's units.
const TEXT_SIZE: usize = 22;
const SMALL_SIZE: usize = 18;
const HEADING_SIZE: usize = 32;
const SPACE_AFTER: u32 = 160;
const GREY: &str = "5C5C66";

/// A document for Word and LibreOffice (Office Open XML).
pub fn write(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    let mut body = Body { document: Docx::new().default_size(TEXT_SIZE), count: 0 };
    let heading = Style::new("Heading1", StyleType::Paragraph).name("heading 1").size(HEADING_SIZE).bold();
    body.document = body.document.add_style(heading);

    let name = title(transcript);
    body.add(Paragraph::new().style("Heading1").add_run(run(&name)), &name);
    if transcript.model.demonstration {
        body.add(Paragraph::new().add_run(run(DEMONSTRATION_WARNING).bold()), "");
    }
    for (name, value) in facts(transcript) {
        let name = run(&format!("{name}: ")).size(SMALL_SIZE).color(GREY);
        body.add(Paragraph::new().add_run(name).add_run(run(&value).size(SMALL_SIZE)), "");
    }
    for paragraph in paragraphs(transcript) {
        let time = run(&format!("{} ", reading_clock(paragraph.start))).size(SMALL_SIZE).color(GREY);
        let mut written = Paragraph::new().add_run(time);
        if let Some(label) = &paragraph.label {
            written = written.add_run(run(&format!("{label}: ")).bold());
        }
        for sentence in &paragraph.sentences {
            let text = run(&format!("{}{}", sentence.space, sentence.text));
            let doubtful = !sentence.segment.suspicions.is_empty();
            written = written.add_run(if doubtful { text.highlight("yellow") } else { text });
        }
        body.add(written, &paragraph.sentences[0].text);
    }

    // A zip archive ends with a table of positions, so it is made in memory.
    let mut archive = Cursor::new(Vec::new());
    body.document.pack(&mut archive).map_err(io::Error::other)?;
    out.write_all(archive.get_ref())
}

struct Body {
    document: Docx,
    /// Paragraphs so far.
    count: u32,
}

impl Body {
    /// Adds a paragraph in the direction of `text`.
    fn add(&mut self, paragraph: Paragraph, text: &str) {
        self.count += 1;
        // Counted here: the library's own numbers go on from document to
        // document, and the same transcript would not give the same bytes.
        let mut paragraph =
            paragraph.id(format!("{:08X}", self.count)).line_spacing(LineSpacing::new().after(SPACE_AFTER));
        if direction(text) == Direction::RightToLeft {
            paragraph.property = paragraph.property.bidi(true);
        }
        self.document = std::mem::take(&mut self.document).add_paragraph(paragraph);
    }
}

/// Two code points that no XML document may hold are left out; control
/// characters are gone by now.
fn run(text: &str) -> Run {
    Run::new().add_text(text.replace(['\u{fffe}', '\u{ffff}'], ""))
}
