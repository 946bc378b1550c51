use transcript::{Model, Notice, SCHEMA_VERSION, Segment, Source, Transcript};
use wire::{Event, Job};

/// What a host has seen of a job, from which it makes a transcript when the
/// engine can no longer do so.
#[derive(Debug)]
pub struct Partial {
    job: Box<Job>,
    source: Source,
    model: Model,
    segments: Vec<Segment>,
    discarded: Vec<Segment>,
    notices: Vec<Notice>,
}

impl Partial {
    /// Begins with what an earlier attempt had reached.
    pub fn new(job: Box<Job>) -> Self {
        let reached = job.resume.as_deref().cloned().unwrap_or_default();
        Self {
            job,
            source: Source::default(),
            model: Model::default(),
            segments: reached.segments,
            discarded: reached.discarded,
            notices: reached.notices,
        }
    }

    pub fn see(&mut self, event: &Event) {
        match event {
            Event::Started { source, model, .. } => {
                self.source = source.clone();
                self.model = model.clone();
            }
            Event::Segment { segment, .. } => self.segments.push(segment.clone()),
            Event::Reached { discarded, .. } => self.discarded.extend(discarded.iter().cloned()),
            Event::Notice { notice, .. } if !self.notices.contains(notice) => {
                self.notices.push(notice.clone());
            }
            _ => {}
        }
    }

    /// `None` where not a single segment was finished.
    pub fn into_transcript(self) -> Option<Box<Transcript>> {
        if self.segments.is_empty() {
            return None;
        }
        // "und" is what ISO 639 calls a language nobody determined: a detected
        // one is told only with the finished transcript.
        let language = self.job.language.clone().unwrap_or_else(|| "und".into());
        Some(Box::new(Transcript {
            schema_version: SCHEMA_VERSION,
            source: self.source,
            model: self.model,
            language,
            language_probability: None,
            task: self.job.task,
            settings: self.job.settings(),
            segments: self.segments,
            discarded: self.discarded,
            completeness: Default::default(),
            notices: self.notices,
            complete: false,
            run: None,
        }))
    }
}
