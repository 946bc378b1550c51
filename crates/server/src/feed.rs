//! The events of one job, for any number of clients that follow it, from its beginning whenever they come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use wire::{Event, Progress};

/// What a follower hears.
#[derive(Debug, Clone)]
pub enum Heard {
    Event(Arc<Event>),
    /// The server is being stopped before the job is over.
    Stopped,
}

/// The events so far. Progress, readings of memory and text that is being written come many times a second: of each,
/// only the latest is kept, so that a slow follower costs no memory.
#[derive(Debug, Default)]
pub struct Feed {
    told: Mutex<Told>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Told {
    events: Vec<Arc<Event>>,
    progress: Option<(u64, Arc<Event>)>,
    memory: Option<(u64, Arc<Event>)>,
    live_text: Option<(u64, Arc<Event>)>,
    count: u64,
    stopped: bool,
}

impl Feed {
    pub fn tell(&self, event: Arc<Event>) {
        {
            let mut told = self.lock();
            told.count += 1;
            let count = told.count;
            match &*event {
                Event::Progress { .. } => told.progress = Some((count, event)),
                Event::Memory { .. } => told.memory = Some((count, event)),
                Event::LiveText { .. } => told.live_text = Some((count, event)),
                Event::Reached { .. } => {
                    told.live_text = None;
                    told.events.push(event);
                }
                _ => told.events.push(event),
            }
        }
        self.version.send_modify(|version| *version += 1);
    }

    /// The job goes on in another server.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.version.send_modify(|version| *version += 1);
    }

    /// How far the job is.
    pub fn progress(&self) -> Option<Progress> {
        match self.lock().progress.as_ref().map(|(_, event)| &**event) {
            Some(Event::Progress { progress }) => Some(progress.clone()),
            _ => None,
        }
    }

    pub fn follow(self: &Arc<Self>) -> Follower {
        let mut version = self.version.subscribe();
        version.mark_changed();
        Follower {
            feed: Arc::clone(self),
            version,
            next: 0,
            progress: 0,
            memory: 0,
            live_text: 0,
            ended: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client's place in the events of a job.
#[derive(Debug)]
pub struct Follower {
    feed: Arc<Feed>,
    version: watch::Receiver<u64>,
    next: usize,
    progress: u64,
    memory: u64,
    live_text: u64,
    ended: bool,
}

impl Follower {
    /// The next event; `None` after the last one.
    ///
    /// Cancel safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(heard) = self.look() {
                self.ended = match &heard {
                    Heard::Event(event) => event.is_last(),
                    Heard::Stopped => true,
                };
                return Some(heard);
            }
            // The feed is held, so that its sender is there.
            self.version.changed().await.ok()?;
        }
    }

    fn look(&mut self) -> Option<Heard> {
        let told = self.feed.lock();
        let next = told.events.get(self.next);
        // Before the last one a slow follower hears how far the job came.
        if let Some(event) = next.filter(|event| !event.is_last()) {
            self.next += 1;
            return Some(Heard::Event(Arc::clone(event)));
        }
        for (latest, seen) in [
            (&told.progress, &mut self.progress),
            (&told.memory, &mut self.memory),
            (&told.live_text, &mut self.live_text),
        ] {
            if let Some((count, event)) = latest
                && *count > *seen
            {
                *seen = *count;
                return Some(Heard::Event(Arc::clone(event)));
            }
        }
        if let Some(event) = next {
            self.next += 1;
            return Some(Heard::Event(Arc::clone(event)));
        }
        told.stopped.then_some(Heard::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use transcript::Time;
    use wire::Stage;

    use super::*;

    fn progress(seconds: f64) -> Event {
        let position = Time::from_seconds(seconds);
        Event::Progress {
            progress: Progress {
                stage: Stage::Transcribe,
                position,
                duration: None,
                speed: None,
                left: None,
            },
        }
    }

    fn live(text: &str) -> Event {
        Event::LiveText { text: text.into() }
    }

    #[test]
    fn a_late_follower_hears_the_latest_of_each_kind_before_the_last_event() {
        let feed = Arc::new(Feed::default());
        let language = Event::Language { file: "talk.mp3".into(), probabilities: Vec::new() };
        let told = [
            progress(1.0),
            live("so"),
            language.clone(),
            live("so far"),
            progress(2.0),
            Event::LanguagesDone,
        ];
        told.into_iter().for_each(|event| feed.tell(Arc::new(event)));
        let mut follower = feed.follow();
        let heard = std::iter::from_fn(|| match follower.look()? {
            Heard::Event(event) => Some((*event).clone()),
            Heard::Stopped => None,
        });
        let heard: Vec<Event> = heard.collect();
        assert_eq!(heard, [language, progress(2.0), live("so far"), Event::LanguagesDone]);
    }
}
