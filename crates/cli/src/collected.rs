//! Transcripts from a queue to files: what `collect` and `submit --wait` have in common.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use cluster::{Cluster, End, Kind, Submitted};
use transcript::export::{Format, Options};
use transcript::save::{Existing, write_file};
use wire::{ErrorCode, Failure, FilePath};

use crate::console::Console;
use crate::ended::{Ended, from_save};
use crate::interrupt::Interrupt;
use crate::nats::unless;
use crate::outputs::{Destination, NO_CHAPTERS_YET, Output, Request, Taken, plan};
use crate::values;

/// Of jobs of which only the language was wanted.
const TABLE: &str = "languages.csv";
const HEADER: &str = "recording,language,probability";

/// From one look for what is over to the next.
const LOOK: Duration = Duration::from_millis(500);
/// From one look for jobs that no worker takes to the next.
const PLACEMENT_LOOK: Duration = Duration::from_secs(10);

/// Which files are written, and where.
#[derive(Debug, Args)]
pub struct Files {
    /// Formats to write, separated by commas [default: txt]
    #[arg(long, short, value_parser = values::format_of_new_text(), value_delimiter = ',', ignore_case = true)]
    pub format: Vec<Format>,

    /// Folder to write to, created if missing [default: the current folder]
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// Replace existing files; without it, they count as collected
    #[arg(long)]
    pub force: bool,
}

impl Files {
    /// # Errors
    /// A sentence where the folder can't be one.
    pub fn request(&self) -> Result<Request, String> {
        let folder = self.output.clone().unwrap_or_else(|| ".".into());
        let place = Destination::from_output(&folder)?;
        if place == Destination::Stdout {
            return Err("transcripts of a queue are files: --output names their folder".into());
        }
        let formats = if self.format.is_empty() { vec![Format::Txt] } else { self.format.clone() };
        if formats.iter().any(|format| format.is_of_chapters()) {
            return Err(NO_CHAPTERS_YET.into());
        }
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let (options, taken) = (Options::default(), Taken::default());
        Ok(Request { place, formats, existing, options, template: None, taken })
    }
}

/// Writes what is over of a queue.
#[derive(Debug)]
pub struct Collector {
    cluster: Cluster,
    request: Request,
    console: Console,
    /// Jobs that are to be collected and are not yet, with their files.
    open: HashMap<String, (Submitted, Output)>,
    removes: bool,
    next: u64,
    written: usize,
    kept: usize,
    failed: usize,
    told: HashSet<String>,
    /// Of jobs of which only the language was wanted: what it is.
    languages: Vec<(String, String, f32)>,
}

impl Collector {
    /// Of these jobs, or of all. Names are given in the order in which jobs were submitted, so that a later command
    /// gives each job the same name.
    pub async fn new(
        cluster: Cluster,
        wanted: Option<&HashSet<String>>,
        request: Request,
        removes: bool,
        console: Console,
        interrupt: &mut Interrupt,
    ) -> Result<Self, Ended> {
        request.prepare()?;
        let submitted = unless(interrupt, cluster.submissions()).await?;
        let names: Vec<PathBuf> = submitted.iter().map(|job| PathBuf::from(&job.name)).collect();
        let outputs = plan(&names, &request, None);
        let open = submitted
            .into_iter()
            .zip(outputs)
            .filter(|(job, _)| wanted.is_none_or(|wanted| wanted.contains(&job.id)))
            .map(|(job, output)| (job.id.clone(), (job, output)))
            .collect();
        Ok(Self {
            cluster,
            request,
            console,
            open,
            removes,
            next: 0,
            written: 0,
            kept: 0,
            failed: 0,
            told: HashSet::new(),
            languages: Vec::new(),
        })
    }

    /// Writes what is over now, or with `waits` everything as soon as it is.
    pub async fn run(mut self, waits: bool, interrupt: &mut Interrupt) -> Ended {
        let total = self.open.len();
        let mut placement = Instant::now();
        let (mut is_away, mut is_empty) = (false, false);
        let ended = loop {
            match self.look(interrupt).await {
                Ok(()) => is_away = false,
                // A server may be started again while a command waits.
                Err(Ended::Failed(failure)) if waits && failure.code == ErrorCode::NetworkFailed => {
                    if !std::mem::replace(&mut is_away, true) {
                        self.console.warning(&format!("{} Waiting for it.", failure.message));
                    }
                }
                Err(ended) => break Err(ended),
            }
            if self.open.is_empty() || !waits {
                break Ok(());
            }
            self.console.redraw(&format!("{} of {total} done", total - self.open.len()));
            if placement.elapsed() >= PLACEMENT_LOOK {
                placement = Instant::now();
                match self.look_for_stranded(is_empty).await {
                    Some(empty) => is_empty = empty,
                    None => break Ok(()),
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = interrupt.raised() => {
                    self.console.info("The jobs stay in the queue; `steno collect` writes their transcripts.");
                    break Err(Ended::Cancelled);
                }
            }
        };
        self.console.clear();
        if let Err(ended) = ended.and_then(|()| self.write_languages()) {
            return ended;
        }
        self.summary();
        if self.failed > 0 { Ended::SomeFailed } else { Ended::Done }
    }

    /// What is over since the last look.
    async fn look(&mut self, interrupt: &mut Interrupt) -> Result<(), Ended> {
        let (ends, next) = unless(interrupt, self.cluster.ends(self.next)).await?;
        for (id, end) in ends {
            let Some((submitted, output)) = self.open.get(&id).cloned() else { continue };
            match self.collect(&submitted, &output, &end, interrupt).await {
                Ok(()) => {}
                Err(Ended::Failed(failure)) if failure.code != ErrorCode::NetworkFailed => {
                    self.fail(failure, &submitted);
                }
                Err(ended) => return Err(ended),
            }
            self.open.remove(&id);
        }
        self.next = next;
        Ok(())
    }

    async fn collect(
        &mut self,
        submitted: &Submitted,
        output: &Output,
        end: &End,
        interrupt: &mut Interrupt,
    ) -> Result<(), Ended> {
        let mut is_whole = true;
        if let Some(failure) = &end.failure {
            self.fail(failure.clone(), submitted);
        } else if submitted.kind == Kind::Language {
            let (language, probability) = end.languages.first().cloned().unwrap_or_default();
            self.languages.push((submitted.name.clone(), language, probability));
            self.written += 1;
        } else {
            let mut left = output.clone();
            if self.request.existing == Existing::Keep {
                left.files.retain(|(_, path)| !path.is_file());
            }
            if left.files.is_empty() {
                self.kept += 1;
            } else {
                let transcript = unless(interrupt, self.cluster.transcript(&submitted.id)).await?;
                let (request, lacking) = self.request.of(&transcript, Path::new(&submitted.name));
                is_whole = lacking.is_empty();
                for failure in lacking {
                    self.fail(failure, submitted);
                }
                for path in left.write(&transcript, &request)? {
                    let name = wire::printable(&submitted.name);
                    self.console.info(&format!("{name}: written to {}", wire::shown(&path)));
                }
                self.written += usize::from(!request.formats.is_empty());
            }
        }
        if self.removes && is_whole {
            unless(interrupt, self.cluster.remove(submitted)).await?;
        }
        Ok(())
    }

    /// The table of all languages that are known, in place of an earlier one.
    fn write_languages(&mut self) -> Result<(), Ended> {
        let Destination::Folder(folder) = &self.request.place else { return Ok(()) };
        if self.languages.is_empty() {
            return Ok(());
        }
        let path = folder.join(TABLE);
        let is_ours = std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with(HEADER));
        let existing = if is_ours { Existing::Replace } else { self.request.existing };
        self.languages.sort_by(|a, b| a.0.cmp(&b.0));
        let written = write_file(&path, existing, |out| {
            writeln!(out, "{HEADER}")?;
            self.languages.iter().try_for_each(|(name, language, probability)| {
                writeln!(out, "{},{language},{probability:.3}", cell(name))
            })
        });
        written.map_err(|error| from_save(&error))?;
        self.console.info(&format!("Languages: written to {}", wire::shown(&path)));
        Ok(())
    }

    fn fail(&mut self, mut failure: Failure, submitted: &Submitted) {
        failure.file.get_or_insert_with(|| FilePath::from(submitted.name.as_str()));
        self.failed += 1;
        self.console.error(&failure.to_string());
    }

    /// Says what no worker takes, once. Whether the queue is empty; `None` where it was already and jobs are missing.
    async fn look_for_stranded(&mut self, was_empty: bool) -> Option<bool> {
        let Ok(overview) = self.cluster.overview().await else { return Some(false) };
        for unplaced in overview.unplaced.iter().filter(|unplaced| unplaced.is_due()) {
            if self.told.insert(unplaced.model.clone()) {
                self.console.warning(&unplaced.text());
            }
        }
        let is_empty = overview.models.iter().all(|model| model.waiting + model.running == 0);
        if is_empty && was_empty {
            for (submitted, _) in std::mem::take(&mut self.open).into_values() {
                let message = "The job is not in the queue any more: it was removed by another program.";
                self.fail(Failure::new(ErrorCode::RecordingGone, message), &submitted);
            }
            return None;
        }
        Some(is_empty)
    }

    fn summary(&mut self) {
        let mut parts = vec![format!("{} written", self.written)];
        if self.kept > 0 {
            parts.push(format!("{} there already", self.kept));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if !self.open.is_empty() {
            parts.push(format!("{} not finished yet", self.open.len()));
        }
        self.console.info(&format!("Results: {}.", parts.join(", ")));
    }
}

/// A name as a cell of a table, which no spreadsheet takes for a formula.
fn cell(name: &str) -> String {
    let name = if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name.to_owned() };
    if name.contains([',', '"', '\n', '\r']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_cell_and_no_formula() {
        for (name, expected) in [
            ("talk.mp3", "talk.mp3"),
            ("a, b.mp3", "\"a, b.mp3\""),
            ("say \"hi\".mp3", "\"say \"\"hi\"\".mp3\""),
            ("=1+1.mp3", "'=1+1.mp3"),
        ] {
            assert_eq!(cell(name), expected);
        }
    }
}
