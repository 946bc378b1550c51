//! The models of the catalogue that are not installed, and those of the store that are
//! incomplete or damaged, each with how it would run on this machine.

use std::collections::BTreeSet;

use hub::{Catalogue, KnownModel, Model, ModelKind, Origin, StoredState};
use memory::fit::Fit;
use serde::Serialize;
use wire::{Failure, Job};

use crate::recommend::{self, Advice, Choice, Recommendation};
use crate::{ModelRef, list_embedding_models, list_models, list_speaker_models, store};
use config::Preferences;

/// A model that can be installed, repaired or removed. Amounts are bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct CatalogEntry {
    /// Its name in the catalogue.
    pub id: String,
    /// What it is for.
    pub purpose: ModelKind,
    /// How much of it is on this machine.
    pub state: InstallState,
    /// The size of its download; null where that is not known.
    pub bytes: Option<u64>,
    /// `en`, `99+`: as the catalogue has it.
    pub languages: Option<String>,
    /// Its licence, an SPDX identifier.
    pub licence: Option<String>,
    /// Slower than most recordings on this device, as far as it was measured.
    pub slow: bool,
    /// In the precision that suits it best. Null where its network is not known before
    /// it is installed, and where it can't do the job.
    pub facts: Option<EntryFacts>,
    /// Whether it, or what it lacks, can be downloaded.
    pub downloadable: bool,
}

/// How a model of the catalogue would run on this machine. Amounts are bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct EntryFacts {
    /// Whether it fits into what is free now.
    pub fit: Fit,
    /// How its weights would be held.
    pub precision: String,
    /// The predicted peak.
    pub peak: u64,
    /// Free where it would compute.
    pub free: u64,
    /// What would have to become free.
    pub missing: u64,
    /// Numbers in the network.
    pub parameters: u64,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
}

/// How much of a model is on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InstallState {
    /// Nothing.
    Offered,
    /// A part: its download was interrupted and can be resumed.
    Interrupted {
        /// Bytes on disk.
        done: u64,
        /// Bytes of all its files, where that is known.
        total: Option<u64>,
    },
    /// Files are missing or do not match their checksums.
    Damaged {
        /// The names of those files.
        files: Vec<String>,
    },
    /// All of it. Installed models that transcribe are listed elsewhere, to choose from.
    Installed,
}

/// The models that can be installed or repaired.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct ModelCatalog {
    /// What was begun first, then the recommended one, then the best first.
    pub entries: Vec<CatalogEntry>,
    /// The name of the model to take, which may be installed already.
    pub recommended: Option<String>,
    /// The user forbids any use of the network.
    pub offline: bool,
    /// The folder of the models, for people to read.
    pub folder: Option<String>,
    /// Bytes that are free on the disk of that folder; null where the system does not say.
    pub free: Option<u64>,
}

impl ModelCatalog {
    /// As it is now, for jobs like `job`. Waits for the card's driver and the disk.
    ///
    /// # Errors
    /// Where the catalogue or the store can't be read.
    pub fn now(preferences: &Preferences, job: &Job) -> Result<Self, Failure> {
        let store = store::store().ok();
        let known = match &store {
            Some(store) => Catalogue::with_own(store.folder()),
            None => Catalogue::public(),
        };
        let known = known.map_err(store::failure)?.models;
        let stored = match &store {
            Some(store) => store.list().map_err(store::failure)?,
            None => Vec::new(),
        };
        let advice = recommend::now(preferences, job)?;
        let names = |models: Vec<ModelRef>| models.into_iter().map(|model| model.name);
        let installed = Installed {
            speech: names(list_models()).collect(),
            speakers: names(list_speaker_models()).collect(),
            embedding: names(list_embedding_models()).collect(),
        };
        let (entries, recommended) = entries(&known, &stored, &installed, &advice);
        let folder = store.map(|store| store.folder().to_owned());
        // It need not be there yet.
        let free = folder.iter().flat_map(|folder| folder.ancestors()).find_map(hub::platform::free_space);
        let folder = folder.map(|folder| folder.display().to_string());
        Ok(Self { entries, recommended, offline: store::is_offline(preferences), folder, free })
    }
}

impl From<Choice> for EntryFacts {
    fn from(choice: Choice) -> Self {
        let check = choice.fit.check;
        Self {
            fit: check.fit,
            peak: check.peak,
            free: check.free,
            missing: check.missing(),
            precision: choice.fit.precision,
            parameters: choice.parameters,
            speed: choice.speed,
        }
    }
}

/// Names of the models on this machine that can be used, by what they are for.
#[derive(Debug, Default)]
struct Installed {
    speech: BTreeSet<String>,
    speakers: BTreeSet<String>,
    embedding: BTreeSet<String>,
}

impl Installed {
    /// What a model is for, where it is here and not for transcribing.
    fn other_purpose(&self, id: &str) -> Option<ModelKind> {
        match id {
            _ if self.speakers.contains(id) => Some(ModelKind::Speakers),
            _ if self.embedding.contains(id) => Some(ModelKind::TextEmbedding),
            _ => None,
        }
    }

    fn contains(&self, id: &str) -> bool {
        self.speech.contains(id) || self.other_purpose(id).is_some()
    }
}

/// What there is of the catalogue and the store but for installed models that transcribe, and
/// the name of the model to take.
fn entries(
    known: &[KnownModel],
    stored: &[Model],
    installed: &Installed,
    recommendation: &Recommendation,
) -> (Vec<CatalogEntry>, Option<String>) {
    let advice = recommendation.advice();
    let choices = advice.map_or(&[][..], |advice| &advice.choices);
    let recommended = recommendation.model().map(str::to_owned);
    let mut entries: Vec<CatalogEntry> = Vec::new();
    for model in stored {
        let state = match &model.state {
            StoredState::Ready if installed.other_purpose(&model.id).is_some() => InstallState::Installed,
            StoredState::Ready => continue,
            StoredState::Interrupted { done, total } => {
                InstallState::Interrupted { done: *done, total: *total }
            }
            StoredState::Damaged { files } => InstallState::Damaged { files: files.clone() },
        };
        let known = known.iter().find(|known| known.id == model.id);
        let mut entry = entry(&model.id, known, advice);
        entry.downloadable = match &model.origin {
            Some(Origin::Import { .. } | Origin::Copy { .. }) => false,
            Some(_) => true,
            None => entry.downloadable,
        };
        match state {
            InstallState::Interrupted { total: Some(total), .. } => {
                entry.bytes = Some(total).filter(|total| *total > 0).or(entry.bytes);
            }
            InstallState::Installed => entry.bytes = Some(model.bytes),
            _ => {}
        }
        entry.purpose = installed.other_purpose(&model.id).unwrap_or(entry.purpose);
        entries.push(CatalogEntry { state, ..entry });
    }
    let is_new = |known: &&KnownModel| {
        let begun = entries.iter().any(|entry| entry.id == known.id);
        !begun
            && !installed.contains(&known.id)
            && (known.own || is_no_speech_model(known) || recommend::is_candidate(known))
    };
    let mut rest: Vec<CatalogEntry> =
        known.iter().filter(is_new).map(|known| entry(&known.id, Some(known), advice)).collect();
    rest.retain(|entry| entry.downloadable);
    let place = |entry: &CatalogEntry| {
        let place = choices.iter().position(|choice| choice.fit.model == entry.id);
        (recommended.as_ref() != Some(&entry.id), place.unwrap_or(usize::MAX))
    };
    rest.sort_by_key(place);
    entries.extend(rest);
    (entries, recommended)
}

/// Those that do something else than transcribe are offered too.
fn is_no_speech_model(known: &KnownModel) -> bool {
    matches!(known.kind, ModelKind::Speakers | ModelKind::TextEmbedding)
}

fn entry(id: &str, known: Option<&KnownModel>, advice: Option<&Advice>) -> CatalogEntry {
    let megabytes = known.and_then(|known| known.approx_megabytes);
    let choice = advice.and_then(|advice| best(advice, id));
    CatalogEntry {
        id: id.to_owned(),
        purpose: known.map_or(ModelKind::Speech, |known| known.kind),
        state: InstallState::Offered,
        bytes: megabytes.map(|megabytes| megabytes * 1_000_000),
        languages: known.and_then(|known| known.languages.clone()),
        licence: known.and_then(|known| known.licence.clone()),
        slow: advice
            .zip(choice.as_ref())
            .is_some_and(|(advice, choice)| !recommend::is_fast(advice.device.kind, choice)),
        facts: choice.map(EntryFacts::from),
        downloadable: known.is_some_and(|known| known.wanted().is_ok()),
    }
}

/// In the precision that keeps most of it among those that fit best.
fn best(advice: &Advice, id: &str) -> Option<Choice> {
    let all = advice.choices.iter().chain(&advice.where_named);
    let of_it = all.filter(|choice| choice.fit.model == id);
    let better = |best: &'_ Choice, next: &Choice| next.fit.check.fit > best.fit.check.fit;
    of_it.reduce(|best, next| if better(best, next) { next } else { best }).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::example;
    use crate::fit::DeviceMemory;
    use memory::DeviceKind;
    use memory::bytes::GIB;
    use memory::fit::Fit;
    use transcript::Task;

    fn catalog(
        free: u64,
        language: Option<&str>,
        stored: &[Model],
        installed: &[&str],
    ) -> (Vec<CatalogEntry>, Option<String>) {
        let catalogue = Catalogue::public().unwrap();
        let room = DeviceMemory { kind: DeviceKind::Host, name: "the CPU".into(), free, total: 32 * GIB };
        let job = example(language, Task::Transcribe, &Preferences::default());
        let candidates = recommend::of_catalogue(&catalogue);
        let advice = recommend::for_devices(&[room], Vec::new(), &candidates, &[], &job);
        let named = |speakers: bool| {
            let names = installed.iter().filter(|name| (**name == "community-1") == speakers);
            names.map(|name| (*name).to_owned()).collect()
        };
        let installed = Installed { speech: named(false), speakers: named(true), ..Installed::default() };
        entries(&catalogue.models, stored, &installed, &advice)
    }

    fn model(id: &str, state: StoredState, origin: Option<Origin>) -> Model {
        Model { id: id.into(), state, bytes: 1, origin, folder: std::path::PathBuf::new() }
    }

    #[test]
    fn the_recommended_one_is_first_and_the_others_say_whether_they_fit() {
        let (entries, recommended) = catalog(8 * GIB, None, &[], &[]);
        assert_eq!(recommended.as_deref(), Some("whisper-small"));
        assert_eq!(entries[0].id, "whisper-small");
        assert_eq!(entries[0].bytes, Some(967_000_000));
        let slow: Vec<_> = entries.iter().filter(|it| it.slow).map(|it| it.id.as_str()).collect();
        assert!(slow.contains(&"whisper-large-v3") && !slow.contains(&"whisper-small"), "{slow:?}");
        let fit = |id: &str| {
            let entry = entries.iter().find(|entry| entry.id == id).unwrap();
            entry.facts.as_ref().map(|facts| facts.fit)
        };
        assert_eq!(fit("whisper-tiny"), Some(Fit::Comfortable));
        // English alone, where any language may come.
        assert_eq!(fit("whisper-tiny.en"), None);
        // Not recommended where no language is named, and it works there all the same.
        assert_eq!(fit("parakeet-tdt-0.6b-v3"), Some(Fit::Comfortable));
        // A model that tells speakers apart is offered behind those that transcribe.
        let speakers = entries.iter().find(|entry| entry.id == "community-1").unwrap();
        assert!(speakers.downloadable && speakers.facts.is_none());
        // Files of whisper.cpp and other kinds of models are not for the picker.
        assert!(
            entries.iter().all(|entry| !entry.id.starts_with("ggml") && !entry.id.contains("segmentation"))
        );
    }

    #[test]
    fn a_large_model_on_a_small_machine_is_offered_with_what_it_lacks() {
        let (entries, _) = catalog(GIB, None, &[], &[]);
        let large = entries.iter().find(|entry| entry.id == "whisper-large-v3").unwrap();
        let facts = large.facts.as_ref().unwrap();
        assert_eq!(facts.fit, Fit::DoesNotFit);
        assert!(facts.missing > 0);
    }

    #[test]
    fn what_was_begun_comes_first_and_what_is_installed_not_at_all() {
        let hub = |repository: &str| Origin::Hub { repository: repository.into(), revision: "main".into() };
        let half = StoredState::Interrupted { done: 5, total: Some(10) };
        let stored = [
            model("mine", half.clone(), Some(hub("me/mine"))),
            model("whisper-base", StoredState::Damaged { files: vec!["model.safetensors".into()] }, None),
            model("copied", half, Some(Origin::Import { path: "/x".into() })),
            model("whisper-tiny", StoredState::Ready, None),
        ];
        let (entries, _) = catalog(8 * GIB, None, &stored, &["whisper-tiny"]);
        let begun: Vec<_> = entries
            .iter()
            .take(3)
            .map(|entry| (entry.id.as_str(), entry.downloadable, entry.bytes))
            .collect();
        assert_eq!(
            begun,
            [
                ("mine", true, Some(10)),
                ("whisper-base", true, Some(290_000_000)),
                ("copied", false, Some(10))
            ]
        );
        for id in ["whisper-tiny", "whisper-base"] {
            let count = entries.iter().filter(|entry| entry.id == id).count();
            assert_eq!(count, usize::from(id == "whisper-base"), "{id}");
        }
        assert_eq!(entries[3].id, "whisper-small");
    }

    /// It is not among the models to transcribe with, and has to be removed somewhere.
    #[test]
    fn an_installed_model_that_tells_speakers_apart_is_listed() {
        let stored = [model("community-1", StoredState::Ready, None)];
        let (entries, _) = catalog(8 * GIB, None, &stored, &["community-1"]);
        let of_it: Vec<_> = entries.iter().filter(|entry| entry.id == "community-1").collect();
        let [entry] = of_it.as_slice() else { panic!("{of_it:?}") };
        assert_eq!((&entry.state, entry.purpose), (&InstallState::Installed, ModelKind::Speakers));
        assert_eq!(entry.bytes, Some(1));
    }
}
