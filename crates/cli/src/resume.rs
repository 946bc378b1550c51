//! `steno resume`: what was interrupted goes on where it was.

use std::path::Path;

use config::Preferences;
use config::preferences::Values;
use library::{HostKind, Journal, JournalState, UnfinishedJob, UnfinishedJobs};
use supervisor::runs::Runs;
use supervisor::{EngineOptions, Supervisor, SupervisorOptions};
use transcript::Time;
use transcript::export::Format;
use transcript::save::Existing;
use wire::{Channels, DeviceChoice, ErrorCode, Failure, FilePath, Point};

use crate::args::Resume;
use crate::console::Console;
use crate::ended::Ended;
use crate::events::{HostEvent, print_event};
use crate::interrupt::Interrupt;
use crate::outputs::{Destination, Output, Request, Taken, make_folder, print};
use crate::runner::{Item, Runner};
use crate::stored::Stored;
use crate::times::clock;

/// Of the stream in which positions count, per second.
const SAMPLES: f64 = 16_000.0;

pub async fn run(args: &Resume, interrupt: Interrupt) -> Ended {
    let mut console = Console::new(args.quiet || args.json_events);
    let Some(journal) = supervisor::journal::open(|problem| console.error(&problem)) else {
        return Ended::SomeFailed;
    };
    let listing = if args.list {
        journal.unfinished(HostKind::CommandLine)
    } else {
        journal.take_over(HostKind::CommandLine)
    };
    match listing {
        Err(error) => Ended::Failed(error.failure()),
        Ok(listing) if args.list => list(&listing, &mut console),
        Ok(listing) if args.discard => discard(&journal, &listing, &mut console),
        Ok(listing) => go_on(args, interrupt, console, journal, listing).await,
    }
}

fn list(listing: &UnfinishedJobs, console: &mut Console) -> Ended {
    if listing.jobs.is_empty() && listing.unreadable.is_empty() {
        console.info("Nothing was interrupted.");
        return Ended::Done;
    }
    let printed = print(|out| {
        for left in &listing.jobs {
            writeln!(out, "{}: {}", left.job.file, standing(left))?;
        }
        for other in &listing.unreadable {
            let name = other.file.as_ref().map_or("a recording".into(), FilePath::to_string);
            writeln!(out, "{name}: interrupted in another version of Steno, which can resume it")?;
        }
        Ok(())
    });
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}

fn standing(left: &UnfinishedJob) -> String {
    let at = match &left.resume.point {
        Some(point) => reached(point, left.job.channels),
        None => None,
    };
    let at = at.unwrap_or_else(|| {
        let is_waiting = left.state == JournalState::Waiting;
        if is_waiting { "not started" } else { "nothing transcribed yet" }.to_owned()
    });
    if left.has_live_host { format!("{at}, running in process {}", left.host.pid) } else { at }
}

/// `None` at the very beginning.
fn reached(point: &Point, channels: Channels) -> Option<String> {
    let is_separate = channels == Channels::Separate;
    // A recording that is transcribed as a whole is done when its only channel is.
    if point.channel == Point::EVERY_CHANNEL || point.channel > 0 && !is_separate {
        return Some("transcribed, not written".to_owned());
    }
    match (point.channel, point.position) {
        (0, 0) => None,
        (channel, 0) => Some(format!("done until the end of channel {channel}")),
        (channel, position) => {
            let at = clock(Time::from_seconds(position as f64 / SAMPLES));
            let of = if is_separate { format!(" of channel {}", channel + 1) } else { String::new() };
            Some(format!("done until {at}{of}"))
        }
    }
}

fn discard(journal: &Journal, listing: &UnfinishedJobs, console: &mut Console) -> Ended {
    let readable = listing.jobs.iter().map(|left| left.key);
    let mut count = 0;
    for key in readable.chain(listing.unreadable.iter().map(|other| other.key)) {
        if let Err(error) = journal.finish(key, JournalState::Cancelled) {
            return Ended::Failed(error.failure());
        }
        count += 1;
    }
    console.info(&match count {
        0 => "Nothing was interrupted.".to_owned(),
        1 => "1 interrupted job was discarded.".to_owned(),
        count => format!("{count} interrupted jobs were discarded."),
    });
    Ended::Done
}

async fn go_on(
    args: &Resume,
    interrupt: Interrupt,
    mut console: Console,
    journal: Journal,
    listing: UnfinishedJobs,
) -> Ended {
    if listing.jobs.is_empty() && listing.unreadable.is_empty() {
        console.info("Nothing was interrupted.");
        return Ended::Done;
    }
    let engine = EngineOptions {
        priority: Preferences::of_this_user(&Values::new()).unwrap_or_default().engine.priority,
        cpu_only: listing.jobs.iter().all(|left| left.job.device == DeviceChoice::Cpu),
        ..EngineOptions::default()
    };
    let memory = listing.jobs.first().map(|left| left.job.memory.clone()).unwrap_or_default();
    let supervisor = Supervisor::start(SupervisorOptions {
        engine,
        journal: Some(journal.clone()),
        runs: Runs::of_this_user(),
        voices: supervisor::voices_file(),
        choose_model: Some(advisor::by_language::choose),
        memory,
    });
    let mut runner = Runner::new(console, interrupt, supervisor, args.json_events);
    if let Some(folder) = &args.output
        && let Err(failure) = make_folder(folder)
    {
        return runner.end(Err(failure.into())).await;
    }
    runner.keeps_curable = true;
    let ended = match items(args, &journal, listing, &mut runner) {
        Ok(items) => runner.all(items).await,
        Err(ended) => Err(ended),
    };
    runner.end(ended).await
}

/// The same files in another folder, where nothing is replaced unless `force` says so. What was for
/// standard output becomes files too.
fn moved(output: Output, request: Request, folder: &Path, force: bool) -> (Output, Request) {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
    let formats = if request.formats.is_empty() { vec![Format::Txt] } else { request.formats.clone() };
    let existing = if force { Existing::Replace } else { Existing::Keep };
    let request = Request { place: Destination::Folder(folder.clone()), existing, formats, ..request };
    (output.in_folder(&folder, &request.formats), request)
}

fn items(
    args: &Resume,
    journal: &Journal,
    listing: UnfinishedJobs,
    runner: &mut Runner,
) -> Result<Vec<Item>, Ended> {
    for other in listing.unreadable {
        let mut failure =
            Failure::new(ErrorCode::BadSettings, "It was interrupted in another version of Steno.").remedy(
                "Resume it with that version, or transcribe it again; `steno resume --discard` discards it.",
            );
        failure.file = other.file;
        runner.failed(wire::NO_JOB, failure)?;
    }
    let (mut items, taken) = (Vec::new(), Taken::default());
    for (id, left) in (1..).zip(listing.jobs) {
        let Ok(stored) = serde_json::from_value::<Stored>(left.outputs.clone()) else {
            let failure = Failure::new(ErrorCode::BadSettings, "It is no longer known which files to write.")
                .remedy("Transcribe it again; `steno resume --discard` discards it.")
                .file(left.job.file.clone());
            runner.failed(wire::NO_JOB, failure)?;
            continue;
        };
        // Events were all that was asked for.
        runner.json_events |= stored.is_for_events_alone();
        let (output, mut request) = stored.restore(left.state == JournalState::Saving);
        if args.force {
            request.existing = Existing::Replace;
        }
        let (output, request) = match (&args.output, &args.name_template) {
            (Some(folder), _) => moved(output, request, folder, args.force),
            // Standard output has no name: a new one is of files, which lie here.
            (None, Some(_)) if !matches!(request.place, Destination::Folder(_)) => {
                moved(output, request, Path::new("."), args.force)
            }
            (None, _) => (output, request),
        };
        let request = Request { taken: taken.clone(), ..request };
        let (output, request) = match args.name_template.clone() {
            Some(template) => {
                let output = output.named_by(&template, &request, left.job.language.as_deref());
                (output, Request { template: Some(template), ..request })
            }
            None => (output, request),
        };
        let job = supervisor::journal::resumed(journal, &left);
        let file = job.file.0.clone();
        items.push(Item { id, file, job, output, request, key: Some(left.key) });
    }
    if runner.json_events {
        for item in &items {
            print_event(&HostEvent::Queued { job: item.id, file: &FilePath::from(&item.file) })?;
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_told_in_terms_of_what_was_asked_for() {
        let mono = Channels::default();
        for (channel, position, channels, expected) in [
            (0, 0, mono, None),
            (0, 960_000, mono, Some("done until 1:00")),
            (1, 0, mono, Some("transcribed, not written")),
            (0, 960_000, Channels::Separate, Some("done until 1:00 of channel 1")),
            (1, 0, Channels::Separate, Some("done until the end of channel 1")),
            (1, 960_000, Channels::Separate, Some("done until 1:00 of channel 2")),
            (Point::EVERY_CHANNEL, 0, Channels::Separate, Some("transcribed, not written")),
        ] {
            let point = Point { channel, position, ..Point::default() };
            assert_eq!(reached(&point, channels).as_deref(), expected, "{channel} {position} {channels:?}");
        }
    }
}
