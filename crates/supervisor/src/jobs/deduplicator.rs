use std::collections::{BTreeMap, BTreeSet};

use transcript::{Notice, Segment, Time};
use wire::Event;

/// What the client was told, so that nothing is told twice however often the
/// engine had to begin again.
#[derive(Debug, Default)]
pub struct EventDeduplicator {
    started: bool,
    /// Of an earlier host: told to this client once it knows what the file is.
    replay: Vec<Event>,
    segments: Vec<Segment>,
    notices: Vec<Notice>,
    prepared: BTreeSet<usize>,
    /// The latest ones told: channel and sample.
    window: Option<(usize, u64)>,
    reached: Option<(usize, u64)>,
    /// Up to where, by channel, segments of this attempt were told before it.
    horizon: BTreeMap<Option<u32>, Time>,
}

impl EventDeduplicator {
    /// `segments` and `notices` were found before, but not told to this client.
    pub fn new(segments: Vec<Segment>, notices: Vec<Notice>) -> Self {
        let replay = segments.iter().map(|segment| Event::Segment { segment: segment.clone() });
        let notes = notices.iter().map(|notice| Event::Notice { notice: notice.clone() });
        Self { replay: replay.chain(notes).collect(), segments, notices, ..Self::default() }
    }

    /// From here on what was told comes again.
    pub fn begin_attempt(&mut self) {
        self.horizon.clear();
        for segment in &self.segments {
            let end = self.horizon.entry(segment.channel).or_default();
            *end = segment.end.max(*end);
        }
    }

    /// What of `event` the client is to be told.
    pub fn sift(&mut self, event: Event) -> Vec<Event> {
        let is_new = match &event {
            Event::Started { .. } => {
                if self.started {
                    return Vec::new();
                }
                self.started = true;
                let mut tell = vec![event];
                tell.append(&mut self.replay);
                return tell;
            }
            Event::Segment { segment, .. } => {
                let before = self.horizon.get(&segment.channel).is_some_and(|end| segment.start < *end);
                let is_new = !before && (self.horizon.is_empty() || !self.segments.contains(segment));
                if is_new {
                    self.segments.push(segment.clone());
                }
                is_new
            }
            Event::Notice { notice, .. } => {
                let is_new = !self.notices.contains(notice);
                if is_new {
                    self.notices.push(notice.clone());
                }
                is_new
            }
            Event::Prepared { channel, .. } => self.prepared.insert(*channel),
            Event::Window { channel, position, .. } => advance(&mut self.window, (*channel, *position)),
            Event::Reached { point, .. } => advance(&mut self.reached, (point.channel, point.position)),
            _ => true,
        };
        if is_new { vec![event] } else { Vec::new() }
    }
}

fn advance(latest: &mut Option<(usize, u64)>, now: (usize, u64)) -> bool {
    let is_new = latest.is_none_or(|latest| latest < now);
    if is_new {
        *latest = Some(now);
    }
    is_new
}
