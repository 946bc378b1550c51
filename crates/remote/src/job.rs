//! One job on another machine, from its upload to its last event, whatever becomes of the connection meanwhile.

use std::time::Duration;

use supervisor::{JobProgress, Stop};
use tokio::sync::mpsc;
use transcript::{Task, Transcript};
use wire::{Channels, ErrorCode, Event, Failure, Job, VoiceActivity};

use crate::client::{Client, Following};
use crate::sse::ServerEvent;
use crate::trouble::{ErrorBody, Trouble};

/// Before the first new attempt; it doubles with each.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Where the server says when to try again: a recording that waits for an hour without a word would seem lost.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Order {
    /// The recording and its settings; model, device and memory are the server's.
    pub job: Job,
    /// A model of the server; `None`: the server chooses.
    pub model: Option<String>,
    /// A translation to English stands beside the text.
    pub bilingual: bool,
    /// As [`new_key`](crate::new_key) makes it: a job of that key is not made twice.
    pub key: String,
}

/// What is told of a job.
#[derive(Debug)]
pub enum Told {
    /// How much of the recording was sent, from 0 to 1.
    Sent(f64),
    /// The server has the recording.
    Accepted,
    /// The connection is lost, or the server has no room: another attempt follows.
    Waiting(Failure),
    /// An event of the job. Nothing is told twice, also after the connection was lost.
    Event(Event),
    /// The server refuses the job, or what is left of it; with the text until then. The last that is told.
    Refused(Failure, Option<Box<Transcript>>),
}

/// A job on another machine. Once it is dropped nothing more is asked; the job goes on there.
#[derive(Debug)]
pub struct RemoteJob {
    told: mpsc::UnboundedReceiver<Told>,
    task: tokio::task::JoinHandle<()>,
}

impl RemoteJob {
    /// Follows the job of this key, or uploads the recording where the server does not have it. Once `stop` is asked the
    /// job is over here, as cancelled; the server is not told ([`forget`]). Must be called within a tokio runtime.
    pub fn start(client: Client, order: Order, stop: Stop) -> Self {
        let (to_job, told) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut progress = JobProgress::new(Box::new(order.job.clone()));
            let run = Run { client, order, told: to_job };
            let ended = tokio::select! {
                ended = run.run(&mut progress) => ended.map_err(Some),
                () = stop.asked() => Err(None),
            };
            match ended {
                Ok(()) => {}
                Err(Some(failure)) => run.tell(Told::Refused(failure, progress.partial())),
                Err(None) => run.tell(Told::Event(Event::Cancelled { partial: progress.partial() })),
            }
        });
        Self { told, task }
    }

    /// What is next; `None` after the last event or word.
    pub async fn next(&mut self) -> Option<Told> {
        self.told.recv().await
    }
}

impl Drop for RemoteJob {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Removes the job of this key from the server, which stops it; tries until that is done or refused.
pub async fn forget(client: &Client, key: &str) {
    let mut pause = PAUSE;
    loop {
        let done = async {
            match client.find(key).await? {
                Some(id) => client.remove(&id).await,
                None => Ok(()),
            }
        };
        match done.await {
            Err(trouble) if trouble.passes => wait(&mut pause, trouble.wait).await,
            _ => return,
        }
    }
}

async fn wait(pause: &mut Duration, asked: Option<Duration>) {
    tokio::time::sleep(asked.map_or(*pause, |asked| asked.min(LONGEST_WAIT))).await;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}

/// How a look at the stream of events ended.
enum Ended {
    Over,
    /// The server does not have the job any more.
    Gone,
}

struct Run {
    client: Client,
    order: Order,
    told: mpsc::UnboundedSender<Told>,
}

impl Run {
    async fn run(&self, progress: &mut JobProgress) -> Result<(), Failure> {
        let mut pause = PAUSE;
        let mut is_new = true;
        loop {
            match self.attempt(progress, &mut is_new, &mut pause).await {
                Ok(Ended::Over) => return Ok(()),
                // Its text was kept for as long as the server keeps it, or the server is another one: begun anew.
                Ok(Ended::Gone) => wait(&mut pause, None).await,
                Err(trouble) if trouble.passes => {
                    self.tell(Told::Waiting(trouble.failure));
                    wait(&mut pause, trouble.wait).await;
                }
                Err(trouble) => return Err(trouble.failure),
            }
        }
    }

    fn tell(&self, told: Told) {
        // Whoever follows it may be gone.
        let _ = self.told.send(told);
    }

    async fn attempt(
        &self,
        progress: &mut JobProgress,
        is_new: &mut bool,
        pause: &mut Duration,
    ) -> Result<Ended, Trouble> {
        let Order { job, key, .. } = &self.order;
        let id = match self.client.find(key).await? {
            Some(id) => id,
            None => {
                self.tell(Told::Sent(0.0));
                let sent = |share| self.tell(Told::Sent(share));
                self.client.add(job.file.as_path(), fields(&self.order), key, sent).await?
            }
        };
        let Some(following) = self.client.follow(&id).await? else { return Ok(Ended::Gone) };
        self.tell(Told::Accepted);
        *pause = PAUSE;
        if !std::mem::replace(is_new, false) {
            progress.begin_attempt();
        }
        self.follow(following, progress).await
    }

    async fn follow(&self, mut following: Following, progress: &mut JobProgress) -> Result<Ended, Trouble> {
        let place = self.client.place();
        while let Some(ServerEvent { name, data }) = following.next().await? {
            if name == "error" {
                let said: ErrorBody = serde_json::from_str::<serde_json::Value>(&data)
                    .and_then(|mut reply| serde_json::from_value(reply["error"].take()))
                    .unwrap_or_default();
                return Err(Trouble::lost(place, &said.message));
            }
            let Ok(event) = serde_json::from_str::<Event>(&data) else {
                // Of another version; without the last one there is no text.
                if matches!(name.as_str(), "finished" | "failed" | "cancelled") {
                    let message =
                        format!("{place} runs another version of Steno, whose answer can't be read.");
                    return Err(Trouble::lasting(Failure::new(ErrorCode::ProtocolMismatch, message)));
                }
                continue;
            };
            let is_last = event.is_last();
            let event = match event {
                // Removed by another program, or on the machine itself.
                Event::Cancelled { partial } => {
                    let message = format!("The job was cancelled at {place}.");
                    Event::Failed { error: Failure::new(ErrorCode::Cancelled, message), partial }
                }
                event => event,
            };
            if progress.handle_event(&event) {
                self.tell(Told::Event(event));
            }
            if is_last {
                return Ok(Ended::Over);
            }
        }
        Err(Trouble::lost(place, "the connection was closed"))
    }
}

/// The fields of `POST /jobs`; what is as usual is left out, except how strongly words to expect are preferred: another
/// version of the server may have another usual strength.
fn fields(order: &Order) -> Vec<(&'static str, String)> {
    let Order { job, model, bilingual, .. } = order;
    let usual = Job::new(job.id, job.file.clone(), job.model.clone());
    let mut fields = Vec::new();
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("model", model.clone());
    add("language", job.language.clone());
    add("task", (job.task == Task::Translate).then(|| "translate".into()));
    add("bilingual", bilingual.then(|| "true".into()));
    let channels = match job.channels {
        Channels::Mix => None,
        Channels::Left => Some("left"),
        Channels::Right => Some("right"),
        Channels::Separate => Some("separate"),
    };
    add("channels", channels.map(str::to_owned));
    add("track", job.track.map(|track| track.to_string()));
    if let Some(span) = job.span {
        add("from", Some(span.start.seconds().to_string()));
        add("to", Some(span.end.seconds().to_string()));
    }
    if job.voice_activity != usual.voice_activity {
        add(
            "voice_activity",
            Some(match job.voice_activity {
                VoiceActivity::Off => "off".into(),
                VoiceActivity::Threshold(threshold) => threshold.to_string(),
            }),
        );
    }
    if job.speakers {
        let count = job.speaker_count.max;
        add("speakers", Some(count.map_or_else(|| "true".into(), |count| count.to_string())));
    }
    let decoding = &job.decoding;
    add("prompt", decoding.initial_prompt.clone());
    add("beam_size", decoding.beam_size.map(|beams| beams.to_string()));
    add("language_per_region", decoding.language_per_region.then(|| "true".into()));
    for word in &decoding.vocabulary {
        add("vocabulary[]", Some(word.clone()));
    }
    let strength = Some(decoding.vocabulary_strength).filter(|_| !decoding.vocabulary.is_empty());
    add("vocabulary_strength", strength.map(|strength| strength.to_string()));
    fields
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn words_to_expect_are_sent_with_their_strength_also_the_usual_one() {
        let strength_of = |words: &[&str]| {
            let mut job = Job::new(1, PathBuf::from("talk.wav"), PathBuf::from("model"));
            job.decoding.vocabulary = words.iter().map(|word| (*word).to_owned()).collect();
            let order = Order { job, model: None, bilingual: false, key: String::new() };
            fields(&order)
                .into_iter()
                .find(|(name, _)| *name == "vocabulary_strength")
                .map(|(_, value)| value)
        };
        assert_eq!(strength_of(&["Ada"]), Some(wire::DecodingOptions::VOCABULARY_STRENGTH.to_string()));
        assert_eq!(strength_of(&[]), None);
    }
}
