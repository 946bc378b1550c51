use std::fmt::Write as _;
use std::io::{self, Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

use super::Options;
use super::document::{Block, Direction, Heading, RunStyle, blocks};
use super::text::escape_markup;
use crate::Transcript;

/// The parts that are the same in every document. Elements stand in the order
/// that the schema prescribes (ECMA-376 part 1, annex A).
const CONTENT_TYPES: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/><Override PartName="/word/settings.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.settings+xml"/></Types>
"#;
const PACKAGE_RELATIONSHIPS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>
"#;
const DOCUMENT_RELATIONSHIPS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/settings" Target="settings.xml"/></Relationships>
"#;
/// Sizes are half points: text of 11 points under headings of 16 and 13.
const STYLES: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:docDefaults><w:rPrDefault><w:rPr><w:sz w:val="22"/><w:szCs w:val="22"/></w:rPr></w:rPrDefault><w:pPrDefault/></w:docDefaults><w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:basedOn w:val="Normal"/><w:qFormat/><w:rPr><w:b/><w:bCs/><w:sz w:val="32"/><w:szCs w:val="32"/></w:rPr></w:style><w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/><w:basedOn w:val="Normal"/><w:qFormat/><w:pPr><w:keepNext/><w:outlineLvl w:val="1"/></w:pPr><w:rPr><w:b/><w:bCs/><w:sz w:val="26"/><w:szCs w:val="26"/></w:rPr></w:style></w:styles>
"#;
/// Without a compatibility mode Word lays the document out as Word 2007 did.
const SETTINGS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:settings xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:compat><w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" w:val="15"/></w:compat></w:settings>
"#;
const DOCUMENT_START: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
"#;
/// A4. Distances are twentieths of a point.
const DOCUMENT_END: &str = r#"<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1985" w:right="1701" w:bottom="1701" w:left="1701" w:header="851" w:footer="992" w:gutter="0"/></w:sectPr></w:body></w:document>
"#;

/// A document for Word and LibreOffice (Office Open XML, ECMA-376).
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let document = document(transcript, options);
    // A fixed time, so that the same transcript gives the same bytes.
    let file_options = SimpleFileOptions::default().last_modified_time(DateTime::default());
    // A zip archive ends with a table of positions, which needs a target that can seek.
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in [
        ("[Content_Types].xml", CONTENT_TYPES),
        ("_rels/.rels", PACKAGE_RELATIONSHIPS),
        ("word/document.xml", document.as_str()),
        ("word/_rels/document.xml.rels", DOCUMENT_RELATIONSHIPS),
        ("word/styles.xml", STYLES),
        ("word/settings.xml", SETTINGS),
    ] {
        archive.start_file(name, file_options)?;
        archive.write_all(content.as_bytes())?;
    }
    out.write_all(archive.finish()?.get_ref())
}

/// The part `word/document.xml`.
fn document(transcript: &Transcript, options: &Options) -> String {
    let mut xml = DOCUMENT_START.to_owned();
    for block in blocks(transcript, options) {
        paragraph(&mut xml, &block);
    }
    xml + DOCUMENT_END
}

impl RunStyle {
    /// The content of the run's `w:rPr`; 18 half points are 9 points.
    fn properties(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "<w:b/><w:bCs/>",
            Self::Small => r#"<w:sz w:val="18"/><w:szCs w:val="18"/>"#,
            Self::SmallGrey => r#"<w:color w:val="5C5C66"/><w:sz w:val="18"/><w:szCs w:val="18"/>"#,
            Self::Grey => r#"<w:color w:val="5C5C66"/>"#,
            Self::Highlighted => r#"<w:highlight w:val="yellow"/>"#,
        }
    }
}

/// Appends a paragraph, with 8 points of space after it.
fn paragraph(xml: &mut String, block: &Block) {
    xml.push_str("<w:p><w:pPr>");
    xml.push_str(match block.heading {
        Some(Heading::Document) => r#"<w:pStyle w:val="Heading1"/>"#,
        Some(Heading::Chapter) => r#"<w:pStyle w:val="Heading2"/>"#,
        None => "",
    });
    if block.direction == Direction::RightToLeft {
        xml.push_str("<w:bidi/>");
    }
    xml.push_str(r#"<w:spacing w:after="160"/></w:pPr>"#);
    for (style, text) in &block.runs {
        xml.push_str("<w:r>");
        let properties = style.properties();
        // Writing to a string can't fail.
        if !properties.is_empty() {
            let _ = write!(xml, "<w:rPr>{properties}</w:rPr>");
        }
        // No XML document may hold these two code points. Control characters are gone by now.
        let text = text.replace(['\u{fffe}', '\u{ffff}'], "");
        let _ = write!(xml, r#"<w:t xml:space="preserve">{}</w:t></w:r>"#, escape_markup(&text));
    }
    xml.push_str("</w:p>\n");
}
