//! One recording on another machine, from its upload to its text in the history.

use std::sync::Arc;

use library::{Identity, JournalState};
use remote::{Client, Order, RemoteJob, Told};
use wire::{ErrorCode, Event, Failure, Job, JobId, NO_JOB};

use super::another_machine::{MachineInUse, Placed};
use super::queue::{JobState, QueueEntry};
use super::queue_journal::Outputs;
use super::{Inner, JobSettings, Session};
use config::Preferences;

/// Where a recording is transcribed that is not transcribed here.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// Host and port of the machine.
    pub place: String,
    /// How much of the recording was sent, from 0 to 1, while it is.
    pub sent: Option<f64>,
    /// Why it does not go on now; it does by itself when that has passed.
    pub waiting: Option<Failure>,
}

/// Whether a recording of the queue is for another machine: what was begun here goes on here.
pub fn machine_for(inner: &Inner, entry: &QueueEntry) -> Option<MachineInUse> {
    let machine = inner.lock().machine.clone()?;
    let is_begun_here = entry.sample || entry.stopped.is_some() || inner.journal().was_begun(entry.id);
    (!is_begun_here).then_some(machine)
}

/// Follows the recording's job until it is over, or the window is closed: it then goes on there, and the next window
/// follows it.
pub async fn transcribe(
    inner: &Arc<Inner>,
    mut entry: QueueEntry,
    machine: MachineInUse,
    settings: JobSettings,
    preferences: Preferences,
) -> Result<(), Failure> {
    let id = entry.id;
    inner.change(|shared| {
        shared
            .queue
            .set_elsewhere(id, Some(Elsewhere { place: machine.place.clone(), ..Elsewhere::default() }))
    });
    let own = entry.own.clone().unwrap_or(settings);
    let client = machine.client(&preferences)?;
    if entry.placed.is_none() {
        let session = Session { inner: Arc::clone(inner) };
        tokio::task::spawn_blocking(move || session.keep_earlier(id)).await.unwrap_or(Ok(()))?;
    }
    // A job that an earlier window gave to this machine is followed there.
    let placed = match entry.placed.take().filter(|placed| placed.address == machine.address) {
        Some(placed) => placed,
        None => {
            let key = remote::new_key().map_err(|error| {
                Failure::new(ErrorCode::Internal, format!("The system gives no random numbers ({error})."))
            })?;
            Placed { address: machine.address.clone(), key }
        }
    };
    let key = placed.key.clone();
    let job = job(&entry, &own);
    let speakers = job.speakers;
    let outputs = inner.change(|shared| {
        shared.queue.set_placed(id, Some(placed));
        shared.queue.forecast(id, None, speakers);
        shared.queue.get(id).map(Outputs::of)
    });
    // Written down before anything is sent: a window that is killed from here on finds the job by its key.
    let (keeper, to_write) = (Arc::clone(inner), job.clone());
    let written = tokio::task::spawn_blocking(move || {
        let identity = Identity::of(to_write.file.as_path()).ok();
        let mut journal = keeper.journal();
        let outputs = outputs.unwrap_or_default();
        let _ = journal.begin::<Failure>(id, &outputs, identity.as_ref(), || Ok(to_write));
        journal.note(id, &outputs);
        journal.runs(id);
    });
    let _ = written.await;
    let order = Order { job, model: machine.model.clone(), bilingual: own.wants_both(), key: key.clone() };
    let stop = inner.supervisor.stop_of_another_machine();
    let mut following = RemoteJob::start(client.clone(), order, stop.clone());
    let stopped_meanwhile = inner.change(|shared| {
        shared.running = Some((id, stop.clone()));
        shared.closed || shared.queue.get(id).is_some_and(|entry| entry.state == JobState::Stopping)
    });
    if stopped_meanwhile {
        stop.ask();
    }
    let ending = follow(inner, id, &mut following).await;
    inner.change(|shared| shared.running = None);
    match ending {
        Ending::Finished => {
            let session = Session { inner: Arc::clone(inner) };
            let _ = tokio::task::spawn_blocking(move || session.put_away(id)).await;
            forget(client, key);
        }
        Ending::GivenUp => forget(client, key),
        Ending::Kept => {}
    }
    Ok(())
}

/// What becomes of the job over there.
enum Ending {
    Finished,
    GivenUp,
    /// It stays, for the next window or the next attempt.
    Kept,
}

async fn follow(inner: &Arc<Inner>, id: JobId, following: &mut RemoteJob) -> Ending {
    while let Some(told) = following.next().await {
        match told {
            Told::Sent(share) => change(inner, id, |elsewhere| {
                elsewhere.sent = Some(share);
                elsewhere.waiting = None;
            }),
            Told::Accepted => change(inner, id, |elsewhere| {
                elsewhere.sent = None;
                elsewhere.waiting = None;
            }),
            Told::Waiting(failure) => change(inner, id, |elsewhere| {
                elsewhere.sent = None;
                elsewhere.waiting = Some(failure);
            }),
            Told::Refused(error, partial) => {
                end(inner, id, Event::Failed { error, partial }, true);
                return Ending::Kept;
            }
            Told::Event(event) if event.is_last() => {
                let is_finished = matches!(event, Event::Finished { .. });
                return match end(inner, id, event, false) {
                    true if is_finished => Ending::Finished,
                    true => Ending::GivenUp,
                    false => Ending::Kept,
                };
            }
            Told::Event(event) => inner.change(|shared| shared.queue.apply(id, event)),
        }
    }
    Ending::Kept
}

fn change(inner: &Inner, id: JobId, change: impl FnOnce(&mut Elsewhere)) {
    inner.change(|shared| shared.queue.change_elsewhere(id, change));
}

/// The last event of the job. `stays`: the machine keeps the job, so that another attempt follows it. False where the
/// window is being closed: then it is not over.
fn end(inner: &Inner, id: JobId, event: Event, stays: bool) -> bool {
    let given_up = matches!(event, Event::Failed { .. } | Event::Cancelled { .. });
    // As for a job of this machine's engine: under both locks.
    let mut journal = given_up.then(|| inner.journal());
    let (closed, aside) = inner.change(|shared| {
        if shared.closed && given_up {
            return (true, None);
        }
        shared.queue.change_elsewhere(id, |elsewhere| {
            *elsewhere = Elsewhere { place: std::mem::take(&mut elsewhere.place), ..Elsewhere::default() };
        });
        if !stays {
            shared.queue.set_placed(id, None);
        }
        shared.queue.apply(id, event);
        (false, shared.queue.get(id).filter(|entry| entry.stays_aside()).map(Outputs::of))
    });
    match (&mut journal, aside) {
        (Some(journal), Some(outputs)) if !closed => journal.set_aside(id, &outputs),
        (Some(journal), None) if !closed => journal.finish(id, JournalState::Cancelled),
        _ => {}
    }
    !closed
}

/// What the machine still has of a job that is over here is removed, as soon as it can be reached.
fn forget(client: Client, key: String) {
    tokio::spawn(async move { remote::forget(&client, &key).await });
}

/// What is asked of the machine: its model, device and memory are its own.
fn job(entry: &QueueEntry, settings: &JobSettings) -> Job {
    let mut job = Job::new(NO_JOB, entry.file.clone(), "");
    settings.fill(&mut job);
    entry.part.fill(&mut job);
    job
}
