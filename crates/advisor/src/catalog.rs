//! What a user chooses from beside the models that are installed: those of the
//! catalogue, and what lies unfinished or damaged in the store, each with how
//! it would do on this machine.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hub::{Catalogue, KnownModel, Model, Origin, StoredState};
use wire::{Failure, Job};

use crate::recommend::{self, Advice, Choice, Recommendation};
use crate::{list_models, store};
use config::Preferences;

/// A model that could be had.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The model's name.
    pub id: String,
    /// How much of it is there.
    pub stands: Stands,
    /// To be downloaded; for what came in part, of the whole, where known.
    pub bytes: Option<u64>,
    /// `en`, `99+`: as the catalogue has it.
    pub languages: Option<String>,
    /// As in the catalogue: an SPDX identifier.
    pub licence: Option<String>,
    /// Slower than most recordings on this device, as far as anybody knows.
    pub slow: bool,
    /// In the precision that suits it best; `None` where nobody knows the
    /// network before it is there, or where it can't do the job.
    pub choice: Option<Choice>,
    /// Whether the network can bring it, or what it lacks.
    pub can_be_had: bool,
}

/// How much of a model is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    /// Nothing.
    Offered,
    /// Its download goes on where it ended.
    Interrupted {
        /// Bytes on disk.
        done: u64,
        /// Bytes of the whole, where that is known.
        total: Option<u64>,
    },
    /// Files that are missing or are not what they were.
    Damaged {
        /// The names of those files.
        files: Vec<String>,
    },
}

/// The models that can be installed or repaired.
#[derive(Debug, Clone, PartialEq)]
pub struct Shelf {
    /// What was begun first, then the recommended one, then the best first.
    pub offers: Vec<Offer>,
    /// The name of the model to take, which may be installed already.
    pub recommended: Option<String>,
    /// The user forbids any use of the network.
    pub offline: bool,
    /// Where models go, and how many bytes are free there.
    pub folder: Option<PathBuf>,
    /// Bytes that are free there.
    pub free: Option<u64>,
}

impl Shelf {
    /// As it is now, for jobs like `job`. Waits for the card's driver and the disk.
    ///
    /// # Errors
    /// Where the catalogue or the store can't be read.
    pub fn now(preferences: &Preferences, job: &Job) -> Result<Self, Failure> {
        let store = store::store().ok();
        let entries = match &store {
            Some(store) => Catalogue::with_own(store.folder()),
            None => Catalogue::public(),
        };
        let entries = entries.map_err(store::failure)?.models;
        let stored = match &store {
            Some(store) => store.list().map_err(store::failure)?,
            None => Vec::new(),
        };
        let advice = recommend::now(preferences, job)?;
        let installed = list_models().into_iter().map(|model| model.name).collect();
        let (offers, recommended) = offers(&entries, &stored, &installed, &advice);
        let folder = store.map(|store| store.folder().to_owned());
        // It need not be there yet.
        let free = folder.iter().flat_map(|folder| folder.ancestors()).find_map(hub::platform::free_space);
        Ok(Self { offers, recommended, offline: store::is_offline(preferences), folder, free })
    }
}

/// What there is of the catalogue and the store that is not installed, and the
/// name of the model to take.
fn offers(
    entries: &[KnownModel],
    stored: &[Model],
    installed: &BTreeSet<String>,
    recommendation: &Recommendation,
) -> (Vec<Offer>, Option<String>) {
    let advice = recommendation.advice();
    let choices = advice.map_or(&[][..], |advice| &advice.choices);
    let recommended = recommendation.model().map(str::to_owned);
    let mut offers: Vec<Offer> = Vec::new();
    for model in stored {
        let stands = match &model.state {
            StoredState::Ready => continue,
            StoredState::Interrupted { done, total } => Stands::Interrupted { done: *done, total: *total },
            StoredState::Damaged { files } => Stands::Damaged { files: files.clone() },
        };
        let entry = entries.iter().find(|entry| entry.id == model.id);
        let mut offer = offer(&model.id, entry, advice);
        offer.can_be_had = match &model.origin {
            Some(Origin::Import { .. }) => false,
            Some(_) => true,
            None => offer.can_be_had,
        };
        if let Stands::Interrupted { total: Some(total), .. } = stands {
            offer.bytes = Some(total).filter(|total| *total > 0).or(offer.bytes);
        }
        offers.push(Offer { stands, ..offer });
    }
    let is_new = |entry: &&KnownModel| {
        let begun = offers.iter().any(|offer| offer.id == entry.id);
        !begun && !installed.contains(&entry.id) && (entry.own || recommend::is_candidate(entry))
    };
    let mut rest: Vec<Offer> =
        entries.iter().filter(is_new).map(|entry| offer(&entry.id, Some(entry), advice)).collect();
    rest.retain(|offer| offer.can_be_had);
    let place = |offer: &Offer| {
        let place = choices.iter().position(|choice| choice.fit.model == offer.id);
        (recommended.as_ref() != Some(&offer.id), place.unwrap_or(usize::MAX))
    };
    rest.sort_by_key(place);
    offers.extend(rest);
    (offers, recommended)
}

fn offer(id: &str, entry: Option<&KnownModel>, advice: Option<&Advice>) -> Offer {
    let megabytes = entry.and_then(|entry| entry.approx_megabytes);
    let choice = advice.and_then(|advice| best(advice, id));
    Offer {
        id: id.to_owned(),
        stands: Stands::Offered,
        bytes: megabytes.map(|megabytes| megabytes * 1_000_000),
        languages: entry.and_then(|entry| entry.languages.clone()),
        licence: entry.and_then(|entry| entry.licence.clone()),
        slow: advice
            .zip(choice.as_ref())
            .is_some_and(|(advice, choice)| !recommend::is_fast(advice.room.kind, choice)),
        choice,
        can_be_had: entry.is_some_and(|entry| entry.wanted().is_ok()),
    }
}

/// In the precision that keeps most of it among those that fit best.
fn best(advice: &Advice, id: &str) -> Option<Choice> {
    let of_it = advice.choices.iter().filter(|choice| choice.fit.model == id);
    let better = |best: &'_ Choice, next: &Choice| next.fit.check.fit > best.fit.check.fit;
    of_it.reduce(|best, next| if better(best, next) { next } else { best }).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::example;
    use crate::fit::Room;
    use memory::DeviceKind;
    use memory::bytes::GIB;
    use memory::fit::Fit;
    use transcript::Task;

    fn shelf(
        free: u64,
        language: Option<&str>,
        stored: &[Model],
        installed: &[&str],
    ) -> (Vec<Offer>, Option<String>) {
        let catalogue = Catalogue::public().unwrap();
        let room = Room { kind: DeviceKind::Host, name: "the CPU".into(), free, total: 32 * GIB };
        let job = example(language, Task::Transcribe, &Preferences::default());
        let candidates = recommend::of_catalogue(&catalogue);
        let advice = recommend::for_devices(&[room], &candidates, &[], &job);
        let installed = installed.iter().map(|name| (*name).to_owned()).collect();
        offers(&catalogue.models, stored, &installed, &advice)
    }

    fn model(id: &str, state: StoredState, origin: Option<Origin>) -> Model {
        Model { id: id.into(), state, bytes: 1, origin, folder: PathBuf::new() }
    }

    #[test]
    fn the_recommended_one_is_first_and_the_others_say_whether_they_fit() {
        let (offers, recommended) = shelf(8 * GIB, None, &[], &[]);
        assert_eq!(recommended.as_deref(), Some("whisper-small"));
        assert_eq!(offers[0].id, "whisper-small");
        assert_eq!(offers[0].bytes, Some(967_000_000));
        let slow: Vec<_> = offers.iter().filter(|it| it.slow).map(|it| it.id.as_str()).collect();
        assert!(slow.contains(&"whisper-large-v3") && !slow.contains(&"whisper-small"), "{slow:?}");
        let fit = |id: &str| {
            let offer = offers.iter().find(|offer| offer.id == id).unwrap();
            offer.choice.as_ref().map(|choice| choice.fit.check.fit)
        };
        assert_eq!(fit("whisper-tiny"), Some(Fit::Comfortable));
        // English alone, where any language may come.
        assert_eq!(fit("whisper-tiny.en"), None);
        // Files of whisper.cpp and other kinds of models are not for the picker.
        assert!(
            offers.iter().all(|offer| !offer.id.starts_with("ggml") && !offer.id.contains("segmentation"))
        );
    }

    #[test]
    fn a_large_model_on_a_small_machine_is_offered_with_what_it_lacks() {
        let (offers, _) = shelf(GIB, None, &[], &[]);
        let large = offers.iter().find(|offer| offer.id == "whisper-large-v3").unwrap();
        let check = &large.choice.as_ref().unwrap().fit.check;
        assert_eq!(check.fit, Fit::DoesNotFit);
        assert!(check.missing() > 0);
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
        let (offers, _) = shelf(8 * GIB, None, &stored, &["whisper-tiny"]);
        let begun: Vec<_> =
            offers.iter().take(3).map(|offer| (offer.id.as_str(), offer.can_be_had, offer.bytes)).collect();
        assert_eq!(
            begun,
            [
                ("mine", true, Some(10)),
                ("whisper-base", true, Some(290_000_000)),
                ("copied", false, Some(10))
            ]
        );
        for id in ["whisper-tiny", "whisper-base"] {
            let count = offers.iter().filter(|offer| offer.id == id).count();
            assert_eq!(count, usize::from(id == "whisper-base"), "{id}");
        }
        assert_eq!(offers[3].id, "whisper-small");
    }
}
