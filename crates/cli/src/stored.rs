//! What the journal keeps of a recording's outputs, so that `steno resume` writes the
//! same files.

use std::path::{Path, PathBuf};

use library::{HostKind, Identity, NewJob};
use serde::{Deserialize, Serialize};
use transcript::export::{Format, Options};
use transcript::save::Existing;
use wire::{FilePath, Job};

use crate::outputs::{Destination, Output, Request, Taken};
use crate::runner::{Item, Runner};

/// Paths are absolute: `steno resume` may be started in another folder.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    place: StoredDestination,
    formats: Vec<Format>,
    existing: Existing,
    options: Options,
    folder: FilePath,
    name: FilePath,
    files: Vec<(Format, FilePath)>,
    /// Names that are made once the text is there.
    #[serde(default)]
    template: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredDestination {
    Stdout,
    Files,
    Nowhere,
}

impl Stored {
    pub fn new(output: &Output, request: &Request) -> Self {
        Self {
            place: match request.place {
                Destination::Stdout => StoredDestination::Stdout,
                Destination::Beside | Destination::Folder(_) => StoredDestination::Files,
                Destination::Nowhere => StoredDestination::Nowhere,
            },
            formats: request.formats.clone(),
            existing: request.existing,
            options: request.options.clone(),
            folder: absolute(&output.folder).into(),
            name: PathBuf::from(&output.name).into(),
            files: output.files.iter().map(|(format, path)| (*format, absolute(path).into())).collect(),
            template: output.template.as_ref().map(ToString::to_string),
        }
    }

    /// `is_ours`: what lies under the files' names was written by this job.
    pub fn restore(self, is_ours: bool) -> (Output, Request) {
        let folder = self.folder.0;
        let output = Output {
            folder: folder.clone(),
            name: self.name.0.into_os_string(),
            files: self.files.into_iter().map(|(format, path)| (format, path.0)).collect(),
            renamed: false,
            template: self.template.and_then(|template| template.parse().ok()),
        };
        let request = Request {
            place: match self.place {
                StoredDestination::Stdout => Destination::Stdout,
                StoredDestination::Files => Destination::Folder(folder),
                StoredDestination::Nowhere => Destination::Nowhere,
            },
            formats: self.formats,
            existing: if is_ours { Existing::Replace } else { self.existing },
            options: self.options,
            template: output.template.clone(),
            taken: Taken::default(),
        };
        (output, request)
    }

    pub fn is_for_events_alone(&self) -> bool {
        self.place == StoredDestination::Nowhere
    }
}

/// Writes all of them down before the first begins.
pub fn keep(items: &mut [Item], runner: &mut Runner) {
    let Some(journal) = runner.supervisor.journal().cloned() else { return };
    let outputs: Vec<_> = items
        .iter()
        .map(|item| serde_json::to_value(Stored::new(&item.output, &item.request)).unwrap_or_default())
        .collect();
    let jobs: Vec<Job> = items
        .iter()
        .map(|item| {
            let mut job = item.job.clone();
            let paths = [&mut job.file, &mut job.model].into_iter();
            for path in paths.chain(job.alternatives.iter_mut().map(|other| &mut other.path)) {
                *path = absolute(path.as_path()).into();
            }
            job
        })
        .collect();
    let identities: Vec<_> = items.iter().map(|item| Identity::of(&item.file).ok()).collect();
    let entries: Vec<NewJob> = items
        .iter()
        .enumerate()
        .map(|(index, item)| NewJob {
            kind: HostKind::CommandLine,
            queue_id: item.id,
            job: &jobs[index],
            identity: identities[index].as_ref(),
            outputs: &outputs[index],
        })
        .collect();
    match journal.add(&entries) {
        Ok(keys) => items.iter_mut().zip(keys).for_each(|(item, key)| item.key = Some(key)),
        Err(error) => {
            let text = format!("{} Until then, interrupted jobs can't be resumed.", error.failure());
            runner.console.warning(&text);
        }
    }
}

/// The path as it is, where it can't be made absolute.
fn absolute(path: &Path) -> PathBuf {
    // An empty path stands for the current folder.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_come_back_as_they_were_with_absolute_paths() {
        let shaping = Some(transcript::export::Shaping::default());
        let request = Request {
            place: Destination::Beside,
            formats: vec![Format::Srt, Format::Whisperx],
            existing: Existing::Keep,
            options: Options {
                reproducible: true,
                shaping,
                word_times: true,
                raw_text: true,
                translation: true,
                document: transcript::export::DocumentOptions { times: false, ..Default::default() },
            },
            template: None,
            taken: Taken::default(),
        };
        let output = Output {
            folder: "".into(),
            name: "talk".into(),
            files: vec![(Format::Srt, "talk.srt".into())],
            renamed: true,
            template: "{name}_{language}".parse().ok(),
        };
        let json = serde_json::to_string(&Stored::new(&output, &request)).unwrap();
        let here = std::env::current_dir().unwrap();
        for (is_ours, existing) in [(false, Existing::Keep), (true, Existing::Replace)] {
            let stored: Stored = serde_json::from_str(&json).unwrap();
            let (output, again) = stored.restore(is_ours);
            assert_eq!(output.files, [(Format::Srt, here.join("talk.srt"))]);
            assert_eq!(output.template, "{name}_{language}".parse().ok());
            assert_eq!((output.folder, again.existing), (here.clone(), existing));
            assert_eq!((again.formats, again.options), (request.formats.clone(), request.options.clone()));
        }
    }
}
