use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::ops::Range;

use krilla::color::rgb;
use krilla::geom::{PathBuilder, Point, Rect};
use krilla::metadata::Metadata;
use krilla::num::NormalizedF32;
use krilla::page::PageSettings;
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use parley::style::{FontFamily, FontFamilyName, FontWeight, GenericFamily, LineHeight, StyleProperty};
use parley::{Alignment, FontContext, Layout, LayoutContext, Line};

use super::Options;
use super::document::{Heading, RunStyle, blocks, title};
use super::text::one_line;
use crate::Transcript;

/// A4, in points, and its margins.
const PAGE: (f32, f32) = (595.28, 841.89);
const MARGIN: f32 = 71.0;
const WIDTH: f32 = PAGE.0 - 2.0 * MARGIN;
/// Space after each paragraph, in points.
const AFTER: f32 = 8.0;
/// Red, green and blue.
const BLACK: [u8; 3] = [0, 0, 0];
const GREY: [u8; 3] = [0x5c, 0x5c, 0x66];
const YELLOW: [u8; 3] = [0xff, 0xf0, 0xc2];

/// Letters that no installed font has.
#[derive(Debug, thiserror::Error)]
#[error("no installed font has these letters: {0}")]
pub struct NoFont(pub String);

/// A document to print and to hand on, with the fonts of this computer: the only format whose bytes
/// depend on it.
///
/// # Errors
/// Those of `out`, and [`NoFont`] of the kind `Unsupported`.
pub fn write(transcript: &Transcript, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut typesetter = Typesetter::default();
    let texts: Vec<Text> =
        blocks(transcript, options).iter().map(|block| typesetter.set(block.heading, &block.runs)).collect();
    let missing: BTreeSet<char> = texts.iter().flat_map(Text::letters_without_font).collect();
    if !missing.is_empty() {
        let letters: String = missing.into_iter().take(10).collect();
        return Err(io::Error::new(io::ErrorKind::Unsupported, NoFont(letters)));
    }

    let mut document = krilla::Document::new();
    let metadata = Metadata::new().title(title(transcript).into_owned());
    document.set_metadata(match one_line(&transcript.language) {
        language if language.is_empty() => metadata,
        language => metadata.language(language.into_owned()),
    });
    let pages = pages(&texts);
    let count = pages.len();
    for (index, lines) in pages.into_iter().enumerate() {
        let settings = PageSettings::from_wh(PAGE.0, PAGE.1).ok_or_else(|| io::Error::other("page size"))?;
        let mut page = document.start_page_with(settings);
        let mut surface = page.surface();
        for (text, line, y) in lines {
            draw(&mut surface, &mut typesetter.fonts, text, &line, MARGIN, y)?;
        }
        let number = typesetter.set(None, &[(RunStyle::SmallGrey, format!("{} / {count}", index + 1))]);
        for line in number.layout.lines() {
            let x = PAGE.0 - MARGIN - number.layout.width();
            draw(&mut surface, &mut typesetter.fonts, &number, &line, x, PAGE.1 - MARGIN / 2.0)?;
        }
        surface.finish();
        page.finish();
    }
    let written = document.finish().map_err(|error| io::Error::other(format!("{error:?}")))?;
    out.write_all(&written)
}

/// A paragraph whose lines are broken. A brush is a text colour and a background.
struct Text {
    text: String,
    layout: Layout<Brush>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Brush {
    grey: bool,
    highlighted: bool,
}

impl Text {
    /// Signs that are no letters, such as emoji, may be missing: they are shown as a box.
    fn letters_without_font(&self) -> Vec<char> {
        let lines = self.layout.lines();
        let runs = lines.flat_map(|line| line.runs().collect::<Vec<_>>());
        runs.flat_map(|run| run.clusters().collect::<Vec<_>>())
            .filter(|cluster| cluster.glyphs().any(|glyph| glyph.id == 0))
            .flat_map(|cluster| self.text[cluster.text_range()].chars().collect::<Vec<_>>())
            .filter(|c| c.is_alphabetic())
            // Where no font is found at all there are no glyphs either.
            .chain(
                (self.layout.lines().next().is_none_or(|line| line.runs().next().is_none()))
                    .then(|| self.text.chars().filter(|c| c.is_alphabetic()))
                    .into_iter()
                    .flatten(),
            )
            .collect()
    }
}

/// The lines of each page, with their baselines.
fn pages(texts: &[Text]) -> Vec<Vec<(&Text, Line<'_, Brush>, f32)>> {
    let mut pages = vec![Vec::new()];
    let mut top = MARGIN;
    for text in texts {
        for line in text.layout.lines() {
            let metrics = line.metrics();
            let (height, baseline) = (metrics.line_height, metrics.baseline - metrics.block_min_coord);
            if top + height > PAGE.1 - MARGIN {
                pages.push(Vec::new());
                top = MARGIN;
            }
            if let Some(page) = pages.last_mut() {
                page.push((text, line, top + baseline));
            }
            top += height;
        }
        top += AFTER;
    }
    pages
}

#[derive(Default)]
struct Typesetter {
    context: FontContext,
    layouts: LayoutContext<Brush>,
    fonts: HashMap<(u64, u32), Font>,
}

impl Typesetter {
    fn set(&mut self, heading: Option<Heading>, runs: &[(RunStyle, String)]) -> Text {
        let text: String = runs.iter().map(|(_, text)| text.as_str()).collect();
        let mut builder = self.layouts.ranged_builder(&mut self.context, &text, 1.0, false);
        let family = FontFamilyName::Generic(GenericFamily::SansSerif);
        builder.push_default(StyleProperty::FontFamily(FontFamily::List(Cow::Owned(vec![family]))));
        builder.push_default(StyleProperty::LineHeight(LineHeight::FontSizeRelative(1.35)));
        builder.push_default(StyleProperty::FontSize(match heading {
            Some(Heading::Document) => 16.0,
            Some(Heading::Chapter) => 13.0,
            None => 10.5,
        }));
        if heading.is_some() {
            builder.push_default(StyleProperty::FontWeight(FontWeight::BOLD));
        }
        let mut start = 0;
        for (style, run) in runs {
            let range: Range<usize> = start..start + run.len();
            start = range.end;
            let brush = Brush {
                grey: matches!(style, RunStyle::SmallGrey | RunStyle::Grey),
                highlighted: matches!(style, RunStyle::Highlighted),
            };
            builder.push(StyleProperty::Brush(brush), range.clone());
            match style {
                RunStyle::Bold => builder.push(StyleProperty::FontWeight(FontWeight::BOLD), range),
                RunStyle::Small | RunStyle::SmallGrey => builder.push(StyleProperty::FontSize(8.5), range),
                RunStyle::Plain | RunStyle::Grey | RunStyle::Highlighted => {}
            }
        }
        let mut layout = builder.build(&text);
        layout.break_all_lines(Some(WIDTH));
        layout.align(Alignment::Start, Default::default());
        Text { text, layout }
    }
}

/// Draws a line with its left end at `x` and its baseline at `y`.
fn draw(
    surface: &mut Surface<'_>,
    fonts: &mut HashMap<(u64, u32), Font>,
    text: &Text,
    line: &Line<'_, Brush>,
    x: f32,
    y: f32,
) -> io::Result<()> {
    let mut x = x + line.metrics().offset;
    for run in line.runs() {
        let data = run.font().clone();
        let (bytes, id) = data.data.into_raw_parts();
        let font = match fonts.get(&(id, data.index)) {
            Some(font) => font.clone(),
            None => {
                let font = Font::new(bytes.into(), data.index)
                    .ok_or_else(|| io::Error::other("an installed font can't be read"))?;
                fonts.entry((id, data.index)).or_insert(font).clone()
            }
        };
        let size = run.font_size();
        let mut waiting = Waiting { x, brush: Brush::default(), glyphs: Vec::new() };
        for cluster in run.visual_clusters() {
            if cluster.is_ligature_continuation() {
                // Its text belongs to the glyph before it.
                if let Some(glyph) = waiting.glyphs.last_mut() {
                    glyph.text_range.end = glyph.text_range.end.max(cluster.text_range().end);
                }
                continue;
            }
            let brush = &cluster.style().brush;
            if *brush != waiting.brush {
                let next = Waiting { x, brush: brush.clone(), glyphs: Vec::new() };
                let before = std::mem::replace(&mut waiting, next);
                before.draw(surface, &font, &text.text, size, x, y);
            }
            for glyph in cluster.glyphs() {
                waiting.glyphs.push(KrillaGlyph::new(
                    GlyphId::new(glyph.id),
                    glyph.advance / size,
                    glyph.x / size,
                    glyph.y / size,
                    0.0,
                    cluster.text_range(),
                    None,
                ));
                x += glyph.advance;
            }
        }
        waiting.draw(surface, &font, &text.text, size, x, y);
    }
    Ok(())
}

/// Glyphs of one look, not drawn yet.
struct Waiting {
    x: f32,
    brush: Brush,
    glyphs: Vec<KrillaGlyph>,
}

impl Waiting {
    fn draw(self, surface: &mut Surface<'_>, font: &Font, text: &str, size: f32, end: f32, y: f32) {
        if self.glyphs.is_empty() {
            return;
        }
        let fill = |[red, green, blue]: [u8; 3]| {
            let paint = rgb::Color::new(red, green, blue).into();
            Some(Fill { paint, opacity: NormalizedF32::ONE, rule: Default::default() })
        };
        let background = Rect::from_ltrb(self.x, y - size, end, y + 0.3 * size);
        if let Some(background) = background.filter(|_| self.brush.highlighted) {
            let mut path = PathBuilder::new();
            path.push_rect(background);
            if let Some(path) = path.finish() {
                surface.set_fill(fill(YELLOW));
                surface.draw_path(&path);
            }
        }
        surface.set_fill(fill(if self.brush.grey { GREY } else { BLACK }));
        surface.draw_glyphs(Point::from_xy(self.x, y), &self.glyphs, font.clone(), text, size, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};
    use crate::{Segment, Suspicion};

    fn written(transcript: &Transcript) -> io::Result<Vec<u8>> {
        let mut written = Vec::new();
        write(transcript, &Options::default(), &mut written)?;
        Ok(written)
    }

    #[test]
    fn another_program_reads_the_text_of_every_page() {
        let said: Vec<String> =
            (1..=200).map(|n| format!("Sentence {n} said naïvely: “Übergröße, ça va?”")).collect();
        let segments = said.iter().zip(0..).map(|(text, n)| Segment {
            speaker: Some(format!("Ada {n}")),
            suspicions: if n == 3 { vec![Suspicion::Loop] } else { Vec::new() },
            ..segment(n * 1_000, n * 1_000 + 900, text)
        });
        let mut transcript = transcript(segments.collect());
        transcript.source.name = "Ärzte & <Café>.wav".into();
        let document = lopdf::Document::load_mem(&written(&transcript).unwrap()).unwrap();
        let pages: Vec<u32> = document.get_pages().into_keys().collect();
        assert!(pages.len() > 5, "{} pages", pages.len());
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        let text = squeezed(&document.extract_text(&pages).unwrap());
        let mut position = 0;
        for (n, said) in said.iter().enumerate() {
            let expected = squeezed(&format!("Ada {n}: {said}"));
            let found =
                text[position..].find(&expected).unwrap_or_else(|| panic!("{expected} is not in {text}"));
            position += found + expected.len();
        }
        assert!(text.starts_with(&squeezed(&transcript.source.name)), "{text}");
        assert!(text.contains(&format!("2/{}", pages.len())));
        // The fonts are subsets: a page does not carry a whole one.
        assert!(written(&transcript).unwrap().len() < 400_000);
    }

    #[test]
    fn letters_that_no_font_has_are_named() {
        // Garay, a script of 2024.
        let error = written(&transcript(vec![segment(0, 1_000, "A \u{10d50} b.")])).unwrap_err().to_string();
        assert!(error.contains("\u{10d50}"), "{error}");
        // Signs are shown as a box instead.
        written(&transcript(vec![segment(0, 1_000, "Good \u{1fae9}.")])).unwrap();
    }
}
