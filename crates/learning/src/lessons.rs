//! What a model learns from: recordings with their texts, and the user's history.

use std::fs;
use std::path::{Path, PathBuf};

use library::documents::Document;
use library::{DocumentId, Documents};
use serde::Deserialize;
use supervisor::recordings;
use transcript::{Span, Task, Time, Transcript};
use wire::{ErrorCode, Failure, Lesson, OTHERS_PER_CORRECTION};

/// A window is 30 s: longer parts are not learnt from.
const LONGEST: f64 = 29.5;
/// Most segments of a transcript without corrections, for each corrected one: enough that epochs hear others in turn.
const MOST_OTHERS: usize = 5 * OTHERS_PER_CORRECTION;
/// Most transcripts without corrections, and the longest in seconds, that before and after are compared on.
const COMPARED: usize = 3;
const LONGEST_COMPARED: f64 = 600.0;

/// What is learnt from, and what the result is compared on besides.
#[derive(Debug, Default)]
pub struct Collected {
    pub lessons: Vec<Lesson>,
    /// Recordings with their whole texts.
    pub others: Vec<(PathBuf, String, Option<String>)>,
    /// Parts that are longer than a window, or have no text.
    pub left_out: usize,
}

/// The parts of a text file: of Steno's JSON and of others that have the same fields.
#[derive(Debug, Deserialize)]
struct Parts {
    language: Option<String>,
    segments: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    start: f64,
    end: f64,
    text: String,
    language: Option<String>,
}

impl Collected {
    /// Adds a recording with its corrected text: plain, of at most one window, or JSON with times.
    ///
    /// # Errors
    /// Where the text can't be read.
    pub fn pair(&mut self, audio: &Path, text: &Path, language: Option<&str>) -> Result<(), Failure> {
        self.parts(audio, text, language, true)
    }

    /// Adds every recording of a folder that has a corrected text beside it, `talk.json` or `talk.txt`.
    ///
    /// # Errors
    /// Where there is none, or one can't be read.
    pub fn folder(&mut self, folder: &Path, language: Option<&str>) -> Result<(), Failure> {
        pairs(folder)?.iter().try_for_each(|(audio, text)| self.parts(audio, text, language, true))
    }

    /// Adds every recording of a folder whose text beside it the model writes as it should, and is to go on writing. What was
    /// added as corrected before is not corrected then.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub fn beside(&mut self, folder: &Path, language: Option<&str>) -> Result<(), Failure> {
        let pairs = pairs(folder)?;
        self.lessons.retain(|lesson| pairs.iter().all(|(audio, _)| lesson.file.as_path() != audio));
        pairs.iter().try_for_each(|(audio, text)| self.parts(audio, text, language, false))
    }

    fn parts(
        &mut self,
        audio: &Path,
        text: &Path,
        language: Option<&str>,
        corrected: bool,
    ) -> Result<(), Failure> {
        for part in read(text)? {
            let at = |seconds: f64| Time::from_seconds(seconds.max(0.0));
            let span = part.times.map(|(start, end)| Span::new(at(start), at(end.max(start))));
            self.push(audio, span, part.text, part.language.as_deref().or(language), corrected);
        }
        Ok(())
    }

    /// Adds what the result is compared on: every recording of a folder that has a text beside it.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub fn compared(&mut self, folder: &Path, language: Option<&str>) -> Result<(), Failure> {
        for (audio, text) in pairs(folder)? {
            let parts = read(&text)?;
            let own = parts.iter().find_map(|part| part.language.clone());
            let text = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(" ");
            self.others.push((audio, text, own.or_else(|| language.map(str::to_owned))));
        }
        Ok(())
    }

    /// Adds those transcripts of the history that are `wanted`: corrected segments with others beside them;
    /// recordings without any correction are compared on.
    ///
    /// # Errors
    /// Where the history can't be read.
    pub fn history(
        &mut self,
        documents: &Documents,
        wanted: &dyn Fn(DocumentId) -> bool,
    ) -> Result<(), Failure> {
        of_history(documents, &|document| wanted(document.id), &mut |document, now, original| {
            self.document(&document.file, now, original);
        })
    }

    fn document(&mut self, file: &Path, now: &Transcript, original: &Transcript) {
        let original = whole(original);
        let is_corrected = |text: &str| is_corrected(text, &original);
        let corrected = now.segments.iter().filter(|segment| is_corrected(&segment.text)).count();
        if corrected == 0 {
            let text = now.segments.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
            let is_short = now.source.duration.seconds() <= LONGEST_COMPARED;
            if self.others.len() < COMPARED && is_short && !text.is_empty() {
                self.others.push((file.to_owned(), text, Some(now.language.clone())));
            }
            return;
        }
        let mut beside = corrected * MOST_OTHERS;
        for segment in &now.segments {
            let corrected = is_corrected(&segment.text);
            if !corrected {
                if beside == 0 {
                    continue;
                }
                beside -= 1;
            }
            let language = segment.language.as_deref().unwrap_or(&now.language);
            let span = Span::new(segment.start, segment.end);
            self.push(file, Some(span), segment.text.clone(), Some(language), corrected);
        }
    }

    fn push(
        &mut self,
        file: &Path,
        span: Option<Span>,
        text: String,
        language: Option<&str>,
        corrected: bool,
    ) {
        let is_long = span.is_some_and(|span| span.length().seconds() > LONGEST);
        let is_empty = span.is_some_and(|span| span.length() == Time::ZERO);
        if is_long || is_empty || text.trim().is_empty() {
            self.left_out += 1;
            return;
        }
        self.lessons.push(Lesson {
            file: file.into(),
            span,
            text,
            language: language.map(str::to_owned),
            corrected,
            held_back: false,
        });
    }

    /// Seconds of speech that an epoch hears: all corrections, and of the rest what goes with them. A part that is a
    /// whole recording is taken for a window.
    pub fn seconds_per_epoch(&self) -> f64 {
        let all = |corrected: bool| {
            let lessons = self.lessons.iter().filter(move |lesson| lesson.corrected == corrected);
            let seconds = lessons.map(|lesson| lesson.span.map_or(LONGEST, |span| span.length().seconds()));
            seconds.fold((0.0, 0.0), |(sum, count), seconds| (sum + seconds, count + 1.0))
        };
        let ((corrected, corrections), (rest, others)) = (all(true), all(false));
        let heard: f64 = corrections * OTHERS_PER_CORRECTION as f64;
        corrected + rest * (heard / f64::max(others, 1.0)).min(1.0)
    }

    /// Holds back a tenth of the corrections, at least one, and a tenth of the rest, but not more than an epoch hears
    /// beside so many corrections; which ones follows from the seed.
    pub fn hold_back(&mut self, seed: u64) {
        let mut most = usize::MAX;
        for corrected in [true, false] {
            let numbers = (0..self.lessons.len()).filter(|it| self.lessons[*it].corrected == corrected);
            let mut numbers: Vec<usize> = numbers.collect();
            let mixed = |number: &usize| {
                (*number as u64 ^ seed.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
            };
            numbers.sort_by_key(mixed);
            let held = if corrected { numbers.len().div_ceil(10) } else { numbers.len() / 10 }.min(most);
            most = held * OTHERS_PER_CORRECTION;
            numbers.into_iter().take(held).for_each(|number| self.lessons[number].held_back = true);
        }
    }
}

/// A transcript of the history with corrections.
#[derive(Debug, Clone, PartialEq)]
pub struct CorrectedRecording {
    /// The transcript.
    pub document: DocumentId,
    /// The recording's file name.
    pub title: String,
    /// The corrected segments.
    pub segments: Vec<CorrectedSegment>,
    /// Seconds of speech that an epoch would hear, of these and of the segments beside them.
    pub seconds: f64,
}

/// A segment that the user corrected.
#[derive(Debug, Clone, PartialEq)]
pub struct CorrectedSegment {
    /// Its place among the transcript's segments, from 0.
    pub number: usize,
    /// When it is said.
    pub span: Span,
    /// As it reads now.
    pub text: String,
}

impl CorrectedRecording {
    /// All whose recordings are still there, the latest first as in the history.
    ///
    /// # Errors
    /// Where the history can't be read.
    pub fn all(documents: &Documents) -> Result<Vec<Self>, Failure> {
        let mut all = Vec::new();
        let is_edited = |document: &Document| document.changed > document.created;
        of_history(documents, &is_edited, &mut |document, now, original| {
            let whole = whole(original);
            let segments = now.segments.iter().enumerate();
            let segments: Vec<CorrectedSegment> = segments
                .filter(|(_, segment)| is_corrected(&segment.text, &whole))
                .map(|(number, segment)| CorrectedSegment {
                    number,
                    span: Span::new(segment.start, segment.end),
                    text: segment.text.clone(),
                })
                .collect();
            if !segments.is_empty() {
                let mut collected = Collected::default();
                collected.document(&document.file, now, original);
                let (document, title) = (document.id, document.title.clone());
                all.push(Self { document, title, segments, seconds: collected.seconds_per_epoch() });
            }
        })?;
        Ok(all)
    }
}

/// All that a transcript says, a line for each segment.
fn whole(transcript: &Transcript) -> String {
    transcript.segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Whether nothing of the original, as [`whole`] gives it, reads like this.
fn is_corrected(text: &str, original: &str) -> bool {
    !original.contains(text)
}

/// Every transcript of the history whose recording is there, as it is and as it was.
fn of_history(
    documents: &Documents,
    wanted: &dyn Fn(&Document) -> bool,
    see: &mut dyn FnMut(&Document, &Transcript, &Transcript),
) -> Result<(), Failure> {
    for document in documents.list().map_err(|error| error.failure())? {
        if !wanted(&document) || !document.file.is_file() {
            continue;
        }
        let opened = documents.read(document.id).map_err(|error| error.failure())?;
        let original = documents.original(document.id).map_err(|error| error.failure())?;
        let (Some(opened), Some(original)) = (opened, original) else { continue };
        if opened.transcript.task == Task::Transcribe {
            see(&document, &opened.transcript, &original);
        }
    }
    Ok(())
}

/// A part of a text file.
struct ReadPart {
    times: Option<(f64, f64)>,
    text: String,
    language: Option<String>,
}

fn read(path: &Path) -> Result<Vec<ReadPart>, Failure> {
    let unreadable = |error: std::io::Error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorCode::FileNotFound,
            _ => ErrorCode::FileUnreadable,
        };
        Failure::new(code, format!("The text can't be read: {error}.")).file(path)
    };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("json")) {
        return Ok(vec![ReadPart { times: None, text, language: None }]);
    }
    let parts: Parts = serde_json::from_str(&text).map_err(|error| {
        let text = format!("This is no transcript with times: {error}.");
        Failure::new(ErrorCode::BadSettings, text).file(path)
    })?;
    let language = parts.language;
    let part = |part: Part| ReadPart {
        times: Some((part.start, part.end)),
        text: part.text,
        language: part.language.or_else(|| language.clone()),
    };
    Ok(parts.segments.into_iter().map(part).collect())
}

/// Recordings of a folder with the texts beside them.
fn pairs(folder: &Path) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let mut found = Vec::new();
    let mut failed = None;
    recordings::in_folder(folder, true, &mut |one| match one {
        Ok(audio) => {
            let texts = ["json", "txt"].map(|ending| audio.with_extension(ending));
            if let Some(text) = texts.into_iter().find(|text| text.is_file()) {
                found.push((audio, text));
            }
        }
        Err(failure) => failed = Some(failure),
    });
    match failed {
        Some(failure) => Err(failure),
        None if found.is_empty() => {
            let text = "No recording here has a text beside it, such as talk.json or talk.txt for talk.wav.";
            Err(Failure::new(ErrorCode::FileNotFound, text).file(folder))
        }
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::{SCHEMA_VERSION, Segment};

    fn transcript(texts: &[&str]) -> Transcript {
        let segment = |(number, text): (usize, &&str)| Segment {
            start: Time::from_seconds(number as f64 * 5.0),
            end: Time::from_seconds(number as f64 * 5.0 + 4.0),
            text: (*text).into(),
            ..Segment::default()
        };
        let json = format!(
            r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe",
            "settings": null, "source": {{"name": "talk", "duration": 60, "sample_rate": 16000, "channels": 1,
            "format": "wav"}}, "model": {{"name": "small", "precision": "f32", "demonstration": false}},
            "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
        );
        let segments = texts.iter().enumerate().map(segment).collect();
        Transcript { segments, ..Transcript::from_json(json.as_bytes()).unwrap() }
    }

    #[test]
    fn corrected_segments_are_told_from_others_and_a_tenth_is_held_back() {
        let mut collected = Collected::default();
        let original = transcript(&["He takes met a pro law.", "Good.", "Fine."]);
        let now = transcript(&["He takes metoprolol.", "Good.", "Fine."]);
        collected.document(Path::new("a.wav"), &now, &original);
        assert_eq!(collected.seconds_per_epoch(), 12.0);
        let kinds: Vec<bool> = collected.lessons.iter().map(|lesson| lesson.corrected).collect();
        assert_eq!(kinds, [true, false, false]);
        collected.document(Path::new("b.wav"), &original, &original);
        assert_eq!(collected.others.len(), 1, "a recording without corrections is compared on");
        collected.hold_back(0);
        let held: Vec<bool> = collected.lessons.iter().map(|lesson| lesson.held_back).collect();
        assert_eq!(held, [true, false, false]);
    }

    #[test]
    fn of_many_others_an_epoch_hears_some_and_few_are_held_back() {
        let mut collected = Collected::default();
        let texts: Vec<String> = (0..200).map(|number| format!("Sentence {number}.")).collect();
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let original = transcript(&texts);
        texts[..3].copy_from_slice(&["Metoprolol.", "Ramipril.", "Bisoprolol."]);
        collected.document(Path::new("a.wav"), &transcript(&texts), &original);
        let count = |of: fn(&Lesson) -> bool| collected.lessons.iter().filter(|it| of(it)).count();
        assert_eq!((count(|it| it.corrected), count(|it| !it.corrected)), (3, 60));
        assert_eq!(collected.seconds_per_epoch(), 4.0 * (3 + 3 * OTHERS_PER_CORRECTION) as f64);
        collected.hold_back(0);
        let held = collected.lessons.iter().filter(|lesson| lesson.held_back);
        let (corrected, others): (Vec<_>, Vec<_>) = held.partition(|lesson| lesson.corrected);
        assert_eq!((corrected.len(), others.len()), (1, OTHERS_PER_CORRECTION));
    }
}
