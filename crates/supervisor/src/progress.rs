//! What is known of one job: the only fold of its events on the host's side.
//!
//! The text on its way is held here and nowhere else. The resume point of the
//! next attempt, the transcript of a job that ends early, what the journal
//! still lacks, what a client that comes later is told first, and what must
//! not be told twice are all derived from it.

use std::collections::{BTreeMap, BTreeSet};

use transcript::{Model, Notice, SCHEMA_VERSION, Segment, Source, Time, Transcript};
use wire::{Event, Job, Point};

/// The events of one job, folded over any number of attempts.
///
/// Two accounts of the text are kept, as indices into one list of segments:
/// - `in_text`: what the engine's transcript will hold. It is the text before
///   the resume point and, after it, what the current attempt found since. An
///   attempt that ends takes the second part with it.
/// - `told`: what the client was told. Nothing is taken back from it.
///
/// They are the same until an attempt fails. The next attempt then begins at
/// the point and may find other segments for sound that the client was told a
/// text for already: those belong to `in_text` alone, while the segments they
/// replace stay in `told` alone.
#[derive(Debug)]
pub struct JobProgress {
    job: Box<Job>,
    source: Source,
    model: Model,
    /// Each segment once, in the order in which they came.
    segments: Vec<Segment>,
    in_text: Vec<usize>,
    /// So many of `in_text` lie before the resume point.
    reached: usize,
    told: Vec<usize>,
    point: Option<Point>,
    /// What was left out of the text before the point.
    discarded: Vec<Segment>,
    notices: Vec<Notice>,
    /// So many of `segments` and of `notices` were found by an earlier host.
    found_before: (usize, usize),
    /// By channel, the end of what was told before the current attempt.
    horizon: BTreeMap<Option<u32>, Time>,
    announced: Announced,
}

/// What else the client was told.
#[derive(Debug, Default)]
struct Announced {
    started: bool,
    prepared: BTreeSet<usize>,
    /// The latest ones: channel and sample.
    window: Option<(usize, u64)>,
    reached: Option<(usize, u64)>,
}

/// The text that an earlier attempt at a job reached, as the transcript of one that ended early.
/// `None` where it reached none.
pub fn partial_of(job: &Job) -> Option<Box<Transcript>> {
    JobProgress::new(Box::new(job.clone())).partial()
}

impl JobProgress {
    /// Begins with what `job.resume` says was reached. It counts as told: a
    /// client gets it by [`JobProgress::replay`].
    pub fn new(mut job: Box<Job>) -> Self {
        let found = job.resume.take().map(|resume| *resume).unwrap_or_default();
        let count = found.segments.len();
        Self {
            job,
            source: Source::default(),
            model: Model::default(),
            in_text: (0..count).collect(),
            reached: count,
            told: (0..count).collect(),
            found_before: (count, found.notices.len()),
            segments: found.segments,
            point: found.point,
            discarded: found.discarded,
            notices: found.notices,
            horizon: BTreeMap::new(),
            announced: Announced::default(),
        }
    }

    /// A new attempt goes on from the point: what was found after it comes
    /// again.
    pub fn begin_attempt(&mut self) {
        self.in_text.truncate(self.reached);
        self.horizon.clear();
        for segment in self.told.iter().filter_map(|index| self.segments.get(*index)) {
            let end = self.horizon.entry(segment.channel).or_default();
            *end = segment.end.max(*end);
        }
    }

    /// Takes an event in. Returns whether the client has to be told of it:
    /// false for what it was told in an earlier attempt.
    pub fn handle_event(&mut self, event: &Event) -> bool {
        match event {
            Event::Started { source, model, .. } => {
                self.source = source.clone();
                self.model = model.clone();
                !std::mem::replace(&mut self.announced.started, true)
            }
            Event::Segment { segment, .. } => self.add_segment(segment),
            Event::Reached { point, discarded, .. } => {
                if self.is_beyond(point) {
                    self.point = Some((**point).clone());
                    self.reached = self.in_text.len();
                    self.discarded.extend(discarded.iter().cloned());
                } else {
                    // An engine that began before the point: this part of the
                    // text is known.
                    self.in_text.truncate(self.reached);
                }
                advance(&mut self.announced.reached, (point.channel, point.position))
            }
            Event::Notice { notice, .. } => self.add_notice(notice),
            Event::Prepared { channel, .. } => self.announced.prepared.insert(*channel),
            Event::Window { channel, position, .. } => {
                advance(&mut self.announced.window, (*channel, *position))
            }
            _ => true,
        }
    }

    fn add_segment(&mut self, segment: &Segment) -> bool {
        let is_first_attempt = self.horizon.is_empty();
        let known = if is_first_attempt {
            None
        } else {
            self.told.iter().copied().rev().find(|index| self.segments.get(*index) == Some(segment))
        };
        let is_before_horizon = self.horizon.get(&segment.channel).is_some_and(|end| segment.start < *end);
        let index = known.unwrap_or_else(|| {
            self.segments.push(segment.clone());
            self.segments.len() - 1
        });
        self.in_text.push(index);
        let is_new = known.is_none() && !is_before_horizon;
        if is_new {
            self.told.push(index);
        }
        is_new
    }

    /// Returns whether the notice was not known.
    pub fn add_notice(&mut self, notice: &Notice) -> bool {
        let is_new = !self.notices.contains(notice);
        if is_new {
            self.notices.push(notice.clone());
        }
        is_new
    }

    /// What an earlier host had found, for a client that has just been told
    /// that the job was started.
    pub fn replay(&self) -> Vec<Event> {
        let (segments, notices) = self.found_before;
        let segments = self.segments.iter().take(segments).cloned();
        let notices = self.notices.iter().take(notices).cloned();
        segments
            .map(|segment| Event::Segment { segment })
            .chain(notices.map(|notice| Event::Notice { notice }))
            .collect()
    }

    /// Whether a point lies behind the one that was reached.
    pub fn is_beyond(&self, point: &Point) -> bool {
        let place = |point: &Point| (point.channel, point.position);
        self.point.as_ref().is_none_or(|before| place(before) < place(point))
    }

    /// Where the next attempt goes on.
    pub fn point(&self) -> Option<&Point> {
        self.point.as_ref()
    }

    /// How many segments lie before the point.
    pub fn reached(&self) -> usize {
        self.reached
    }

    /// The text before the point, without its first `skip` segments.
    pub fn reached_segments(&self, skip: usize) -> Vec<Segment> {
        self.cloned(self.in_text.iter().take(self.reached).skip(skip))
    }

    /// What was left out of the text before the point.
    pub fn discarded(&self) -> &[Segment] {
        &self.discarded
    }

    /// Every notice once.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The transcript of a job that ends early, made here since the engine did
    /// not: what the engine found or what the client was told, whichever holds
    /// more. `None` where not a single segment was found.
    pub fn partial(&self) -> Option<Box<Transcript>> {
        let longer = if self.in_text.len() >= self.told.len() { &self.in_text } else { &self.told };
        if longer.is_empty() {
            return None;
        }
        // "und" is what ISO 639 calls an undetermined language: a detected one
        // comes with the finished transcript alone.
        let language = self.job.language.clone().unwrap_or_else(|| "und".into());
        Some(Box::new(Transcript {
            schema_version: SCHEMA_VERSION,
            source: self.source.clone(),
            model: self.model.clone(),
            language,
            language_probability: None,
            task: self.job.task,
            settings: self.job.settings(),
            segments: self.cloned(longer.iter()),
            turns: Vec::new(),
            chapters: Vec::new(),
            discarded: self.discarded.clone(),
            completeness: Default::default(),
            notices: self.notices.clone(),
            complete: false,
            run: None,
        }))
    }

    fn cloned<'a>(&self, indices: impl Iterator<Item = &'a usize>) -> Vec<Segment> {
        indices.filter_map(|index| self.segments.get(*index)).cloned().collect()
    }
}

fn advance(latest: &mut Option<(usize, u64)>, now: (usize, u64)) -> bool {
    let is_new = latest.is_none_or(|latest| latest < now);
    if is_new {
        *latest = Some(now);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: u32, text: &str) -> Event {
        let (start, end) = (Time::from_millis(start), Time::from_millis(start + 900));
        Event::Segment { segment: Segment { start, end, text: text.into(), ..Segment::default() } }
    }

    fn reached(position: u64) -> Event {
        let point = Box::new(Point { position, ..Point::default() });
        Event::Reached { point, discarded: Vec::new() }
    }

    fn texts(segments: &[Segment]) -> String {
        segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    #[test]
    fn the_text_and_what_was_told_differ_after_an_attempt_that_found_another_text() {
        let mut progress = JobProgress::new(Box::new(Job::new(1, "/talk.flac", "/models/small")));
        // (attempt, segments and points) -> told, text before the point, whole partial text
        for (events, told, before_point, partial) in [
            (vec![segment(0, "a"), reached(10), segment(1000, "b")], "ab", "a", "ab"),
            // Another segment for the same time: the client keeps "b".
            (vec![segment(1000, "B"), segment(2000, "c")], "c", "a", "aBc"),
            // Of that, only what comes before a point stays.
            (vec![segment(1000, "b"), reached(20)], "", "ab", "abc"),
            // An engine that began at the start says nothing new.
            (vec![segment(0, "a"), reached(10), segment(1000, "b"), reached(20)], "", "ab", "abc"),
            (vec![segment(3000, "d"), reached(30)], "d", "abd", "abcd"),
        ] {
            let mut new = Vec::new();
            for event in events {
                if progress.handle_event(&event)
                    && let Event::Segment { segment, .. } = event
                {
                    new.push(segment);
                }
            }
            assert_eq!(texts(&new), told);
            assert_eq!(texts(&progress.reached_segments(0)), before_point);
            assert_eq!(texts(&progress.partial().unwrap().segments), partial);
            progress.begin_attempt();
        }
        assert_eq!(texts(&progress.reached_segments(1)), "bd");
    }
}
