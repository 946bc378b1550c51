//! What a worker found up to each point, in NATS: the journal of a job that may go to another machine.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use transcript::{Notice, Segment};
use wire::notice::Code;
use wire::{Event, Failure, Point, Resume};

use crate::connection::Cluster;
use crate::read::read;

/// After NATS did not take a step.
const AGAIN: Duration = Duration::from_secs(1);

/// From one point to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// The point that it follows, as channel and sample; `None`: the beginning.
    after: Option<(usize, u64)>,
    point: Point,
    segments: Vec<Segment>,
    discarded: Vec<Segment>,
    notices: Vec<Notice>,
}

/// Makes steps of a job's events.
#[derive(Debug)]
pub(crate) struct Recorder {
    after: Option<(usize, u64)>,
    segments: Vec<Segment>,
    notices: Vec<Notice>,
    /// Segments of earlier steps that are told again before those of this worker.
    replayed: usize,
    /// Notices of earlier steps.
    known: Vec<Notice>,
    /// What was told since the last point may not be what the text will have: steps end here.
    is_unsure: bool,
}

impl Recorder {
    pub fn new(resume: Option<&Resume>) -> Self {
        Self {
            after: resume.and_then(|resume| resume.point.as_ref()).map(place),
            segments: Vec::new(),
            notices: Vec::new(),
            replayed: resume.map_or(0, |resume| resume.segments.len()),
            known: resume.map(|resume| resume.notices.clone()).unwrap_or_default(),
            is_unsure: false,
        }
    }

    /// The step that this event completes.
    pub fn hear(&mut self, event: &Event) -> Option<Step> {
        match event {
            Event::Segment { .. } if self.replayed > 0 => self.replayed -= 1,
            Event::Segment { segment } => self.segments.push(segment.clone()),
            // Where an engine died or stepped down, the next attempt may find another text after the point.
            Event::Rung { .. } => self.is_unsure |= !self.segments.is_empty(),
            Event::Notice { notice } if !self.known.contains(notice) => {
                let is_restart = notice.code == Code::Restarted.as_str();
                self.is_unsure |= is_restart && !self.segments.is_empty();
                self.notices.push(notice.clone());
            }
            Event::Reached { point, discarded } if !self.is_unsure => {
                let step = Step {
                    after: self.after,
                    point: (**point).clone(),
                    segments: std::mem::take(&mut self.segments),
                    discarded: discarded.clone(),
                    notices: std::mem::take(&mut self.notices),
                };
                self.after = Some(place(point));
                return Some(step);
            }
            _ => {}
        }
        None
    }
}

fn place(point: &Point) -> (usize, u64) {
    (point.channel, point.position)
}

/// Where a job goes on. Two workers may have had it at once, where one was taken for dead too early: a step counts
/// only if it follows the one before it.
pub(crate) fn fold(steps: impl IntoIterator<Item = Step>) -> Option<Resume> {
    let mut resume = Resume::default();
    for step in steps {
        let reached = resume.point.as_ref().map(place);
        if step.after != reached || reached.is_some_and(|reached| place(&step.point) <= reached) {
            continue;
        }
        resume.point = Some(step.point);
        resume.segments.extend(step.segments);
        resume.discarded.extend(step.discarded);
        resume.notices.extend(step.notices);
    }
    resume.point.is_some().then_some(resume)
}

impl Cluster {
    /// Where the worker before left a job.
    pub(crate) async fn steps(&self, id: &str) -> Result<Option<Resume>, Failure> {
        let entries = read(&self.log, &self.subject("steps", id), false, 0).await?;
        // A later version's steps are not this one's: the job begins anew.
        let steps = entries.iter().map_while(|entry| serde_json::from_slice(&entry.payload).ok());
        Ok(fold(steps))
    }

    /// Publishes steps in their order until the sender is dropped. A job never waits for this.
    pub(crate) async fn publish_steps(self, id: String, mut steps: mpsc::UnboundedReceiver<Step>) {
        let subject = self.subject("steps", &id);
        while let Some(step) = steps.recv().await {
            let Ok(payload) = serde_json::to_vec(&step) else { continue };
            // Longer than a message may be: the job goes on from an earlier point then.
            if payload.len() > self.context.client().max_payload() {
                continue;
            }
            let payload = bytes::Bytes::from(payload);
            loop {
                let message = PublishMessage::build().payload(payload.clone());
                let sent = self.context.send_publish(subject.clone(), message).await;
                let is_kept = match sent {
                    Ok(taken) => taken.await.is_ok(),
                    Err(_) => false,
                };
                if is_kept {
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// A job that is over needs no steps.
    pub(crate) async fn forget_steps(&self, id: &str) {
        // What stays is a few kilobytes, and is never read again.
        let _ = self.log.purge().filter(self.subject("steps", id)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(after: Option<u64>, to: u64, text: &str) -> Step {
        Step {
            after: after.map(|position| (0, position)),
            point: Point { position: to, ..Point::default() },
            segments: vec![Segment { text: text.into(), ..Segment::default() }],
            discarded: Vec::new(),
            notices: Vec::new(),
        }
    }

    #[test]
    fn steps_of_two_workers_make_one_text() {
        let text = |steps: Vec<Step>| {
            fold(steps).map(|resume| {
                let text: Vec<String> = resume.segments.into_iter().map(|segment| segment.text).collect();
                (resume.point.unwrap().position, text.concat())
            })
        };
        let (a, b, c) = (step(None, 5, "a"), step(Some(5), 9, "b"), step(Some(9), 12, "c"));
        let whole = Some((12, "abc".to_owned()));
        for (steps, expected) in [
            (vec![a.clone(), b.clone(), c.clone()], whole.clone()),
            // Published twice, since the answer was lost.
            (vec![a.clone(), a.clone(), b.clone(), b.clone(), c.clone()], whole.clone()),
            // Both workers reached the same point.
            (vec![a.clone(), b.clone(), step(None, 5, "A"), step(Some(5), 9, "B"), c.clone()], whole),
            // The second one goes on from a point that is not in the text.
            (vec![a.clone(), step(None, 6, "A"), step(Some(6), 9, "B"), c], Some((5, "a".into()))),
            (vec![b], None),
            (vec![], None),
        ] {
            assert_eq!(text(steps), expected);
        }
    }

    fn segment(text: &str) -> Event {
        Event::Segment { segment: Segment { text: text.into(), ..Segment::default() } }
    }

    fn reached(position: u64) -> Event {
        let point = Box::new(Point { position, ..Point::default() });
        Event::Reached { point, discarded: Vec::new() }
    }

    #[test]
    fn a_recorder_goes_on_from_where_the_job_did() {
        let resume = fold([step(None, 5, "a")]).unwrap();
        let mut recorder = Recorder::new(Some(&resume));
        // What was found before is told again.
        let heard: Vec<_> =
            [segment("a"), segment("b"), reached(9)].iter().map(|event| recorder.hear(event)).collect();
        assert_eq!(heard, [None, None, Some(step(Some(5), 9, "b"))]);
    }

    #[test]
    fn steps_end_where_the_text_may_become_another() {
        let notice = |code: &str| Event::Notice { notice: Notice::new(code, transcript::Severity::Info, "") };
        let restarted = || notice(Code::Restarted.as_str());
        for (events, steps) in [
            (vec![segment("a"), reached(5), restarted(), segment("b"), reached(9)], 2),
            (vec![segment("a"), reached(5), segment("b"), notice("other"), segment("c"), reached(9)], 2),
            (vec![segment("a"), reached(5), segment("b"), restarted(), segment("c"), reached(9)], 1),
        ] {
            let mut recorder = Recorder::new(None);
            assert_eq!(events.iter().filter_map(|event| recorder.hear(event)).count(), steps);
        }
    }
}
