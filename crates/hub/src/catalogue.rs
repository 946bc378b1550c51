use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::pull::{ModelSource, Wanted};
use crate::{Error, files};

/// The public models, as part of the program.
const PUBLIC: &str = include_str!("../data/catalogue.json");

/// The user's own entries, in the store's folder.
const OWN: &str = "catalogue.json";

/// Models that can be downloaded. Fields whose value is unknown are `None`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Catalogue {
    /// In the order in which they are shown.
    pub models: Vec<KnownModel>,
}

/// A model of the catalogue: what is known of it, and where it can be had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownModel {
    /// The name by which users ask for it.
    pub id: String,
    /// What it is for.
    pub kind: ModelKind,
    /// The architecture: `whisper` or `parakeet`, in a catalogue of one's own `canary`.
    pub family: Option<String>,
    /// Of its weights: `safetensors`, `ggml`.
    pub format: Option<String>,
    /// On the hub: `owner/name`.
    pub repository: Option<String>,
    /// A commit, where one was pinned beforehand.
    pub revision: Option<String>,
    /// The files that make it up.
    pub files: Option<Vec<String>>,
    /// Weights of the network.
    pub parameters_million: Option<f64>,
    /// Size of its files.
    pub approx_megabytes: Option<u64>,
    /// Mel bins of its input.
    pub mel_bins: Option<u32>,
    /// Checksum of its only file, as its publisher gives it.
    pub sha1: Option<String>,
    /// Checksum of `model.safetensors`, as its publisher gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// `en`, `99+`, ...: for people.
    pub languages: Option<String>,
    /// Whether it translates to English.
    pub translates_to_english: Option<bool>,
    /// SPDX identifier, where there is one.
    pub licence: Option<String>,
    /// As published.
    pub word_error_rate: Option<ErrorRates>,
    /// Why it can't be downloaded, or what to know of it.
    pub note: Option<String>,
    /// A file on any server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A folder or file on this machine, used where it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The user added it.
    #[serde(default)]
    pub own: bool,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Transcribing.
    Speech,
    /// Telling speakers apart: all networks that it takes.
    Speakers,
    /// Comparing voices.
    SpeakerEmbedding,
    /// Finding where speakers change.
    SpeakerSegmentation,
    /// Comparing texts.
    TextEmbedding,
}

/// In percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorRates {
    /// On LibriSpeech's `test-clean`.
    pub librispeech_clean: Option<f64>,
    /// On LibriSpeech's `test-other`.
    pub librispeech_other: Option<f64>,
    /// Mean over the eight sets of the Open ASR leaderboard.
    pub average_of_8: Option<f64>,
    /// Where the figures were published.
    pub source: Option<String>,
}

/// A model that the user added to the catalogue: a name and a location.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserEntry {
    /// The name by which the user asks for it.
    pub id: String,
    /// Where it is.
    #[serde(flatten)]
    pub place: ModelLocation,
}

/// Where a model of the user's is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelLocation {
    /// `owner/name` on the hub.
    Repository(String),
    /// The address of a file on any server.
    Url(String),
    /// A folder or file on this machine.
    Path(PathBuf),
}

impl Catalogue {
    /// The entries that come with the program.
    ///
    /// # Errors
    ///
    /// Fails where the catalogue inside the program can't be read.
    pub fn public() -> Result<Self, Error> {
        serde_json::from_str(PUBLIC).map_err(|error| Error::Invalid {
            path: "catalogue.json".into(),
            problem: error.to_string(),
            remedy: "Install Steno again.".into(),
        })
    }

    /// As [`Self::public`], followed by what the user added to this store.
    ///
    /// # Errors
    ///
    /// Fails where the store's `catalogue.json` exists and can't be read.
    pub fn with_own(store: &Path) -> Result<Self, Error> {
        let mut catalogue = Self::public()?;
        for own in own(store)? {
            catalogue.models.retain(|entry| entry.id != own.id);
            catalogue.models.push(own.entry());
        }
        Ok(catalogue)
    }

    /// The model of this name.
    pub fn find(&self, id: &str) -> Option<&KnownModel> {
        self.models.iter().find(|entry| entry.id == id)
    }

    /// The entry of a repository in the layout of the Hugging Face cache: one
    /// without a file of its own among several.
    pub fn of_repository(&self, repository: &str) -> Option<&KnownModel> {
        let is_it = |entry: &&KnownModel| entry.repository.as_deref() == Some(repository);
        self.models.iter().find(|entry| is_it(entry) && entry.format.as_deref() != Some("ggml"))
    }

    /// What `steno models pull NAME` stands for: an entry, `owner/name` on the
    /// hub, or the address of a file.
    ///
    /// # Errors
    ///
    /// Fails with `UnknownModel` for another name, and as [`KnownModel::wanted`].
    pub fn wanted(&self, name: &str) -> Result<Wanted, Error> {
        if let Some(entry) = self.find(name) {
            return entry.wanted();
        }
        if name.starts_with("https://") || name.starts_with("http://") {
            let file = name.split(['?', '#']).next().unwrap_or(name).rsplit('/').next().unwrap_or_default();
            let id = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
            return Wanted::new(id, ModelSource::Url(name.into()));
        }
        match name.split_once('/') {
            Some((owner, model)) if files::is_plain_name(owner) && files::is_plain_name(model) => {
                let known = self.of_repository(name);
                known.map_or_else(|| Wanted::of_repository(model, name), KnownModel::wanted)
            }
            _ => Err(Error::UnknownModel { name: name.into() }),
        }
    }
}

impl UserEntry {
    fn entry(self) -> KnownModel {
        let mut entry = KnownModel {
            id: self.id,
            kind: ModelKind::Speech,
            family: None,
            format: None,
            repository: None,
            revision: None,
            files: None,
            parameters_million: None,
            approx_megabytes: None,
            mel_bins: None,
            sha1: None,
            sha256: None,
            languages: None,
            translates_to_english: None,
            licence: None,
            word_error_rate: None,
            note: None,
            url: None,
            path: None,
            own: true,
        };
        match self.place {
            ModelLocation::Repository(repository) => entry.repository = Some(repository),
            ModelLocation::Url(url) => entry.url = Some(url),
            ModelLocation::Path(path) => entry.path = Some(path),
        }
        entry
    }

    /// Adds it to the store's own entries, in place of one of the same name.
    ///
    /// # Errors
    ///
    /// Fails with `BadName` for a name that can't be a folder's, and where the store's list can't
    /// be read or written.
    pub fn save(self, store: &Path) -> Result<(), Error> {
        if !files::is_plain_name(&self.id) {
            return Err(Error::BadName { name: self.id });
        }
        let mut entries = own(store)?;
        entries.retain(|entry| entry.id != self.id);
        entries.push(self);
        files::write_json(&store.join(OWN), &entries)
    }

    /// Forgets an entry; whether there was one.
    ///
    /// # Errors
    ///
    /// Fails where the store's list can't be read or written.
    pub fn forget(store: &Path, id: &str) -> Result<bool, Error> {
        let mut entries = own(store)?;
        let before = entries.len();
        entries.retain(|entry| entry.id != id);
        if entries.len() == before {
            return Ok(false);
        }
        files::write_json(&store.join(OWN), &entries)?;
        Ok(true)
    }
}

fn own(store: &Path) -> Result<Vec<UserEntry>, Error> {
    Ok(files::read_json(&store.join(OWN))?.unwrap_or_default())
}

impl KnownModel {
    /// What to download. Which files make up a model is never guessed.
    ///
    /// # Errors
    ///
    /// Fails with `NotOffered` where the model can't be downloaded, with the reason.
    pub fn wanted(&self) -> Result<Wanted, Error> {
        let not_offered = |why: &str, remedy: &str| Error::NotOffered {
            id: self.id.clone(),
            why: why.into(),
            remedy: remedy.into(),
        };
        if let Some(path) = &self.path {
            let why = format!("it is on this computer, at {}", path.display());
            return Err(not_offered(&why, "It can be used as it is."));
        }
        if let Some(url) = &self.url {
            return Wanted::new(&self.id, ModelSource::Url(url.clone()));
        }
        let Some(repository) = &self.repository else {
            return Err(not_offered("it is not known where it is", "Add it with `steno models add`."));
        };
        // The user added the repository, and means all that is in it.
        if self.own {
            return Wanted::of_repository(&self.id, repository);
        }
        let Some(names) = &self.files else {
            let why = self.note.as_deref().unwrap_or("it is not known which of its files are needed");
            return Err(not_offered(why, "Import it where you have it: `steno models import PATH`."));
        };
        let mut wanted = Wanted::of_repository(&self.id, repository)?;
        wanted.files = Some(names.clone());
        wanted.sha1 = self.sha1.clone();
        wanted.sha256 = self.sha256.clone();
        if let ModelSource::Hub { revision, .. } = &mut wanted.source {
            revision.clone_from(&self.revision);
        }
        wanted.is_speech = self.kind == ModelKind::Speech;
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_stays_empty() {
        let catalogue = Catalogue::public().unwrap();
        let source: serde_json::Value = serde_json::from_str(PUBLIC).unwrap();
        let listed = source["models"].as_array().unwrap();
        assert_eq!(catalogue.models.len(), listed.len());
        for (entry, listed) in catalogue.models.iter().zip(listed) {
            let ours = serde_json::to_value(entry).unwrap();
            for (field, value) in listed.as_object().unwrap() {
                // A number is the same with and without a fraction of 0.
                let same = &ours[field] == value
                    || ours[field].as_f64().zip(value.as_f64()).is_some_and(|(a, b)| a == b);
                assert!(same, "{}: {field} is {}, listed as {value}", entry.id, ours[field]);
            }
        }
    }

    #[test]
    fn names_lead_to_files_and_none_is_guessed() {
        let catalogue = Catalogue::public().unwrap();
        let tiny = catalogue.wanted("whisper-tiny").unwrap();
        assert_eq!(tiny.files.as_ref().unwrap().len(), 5);
        // The repository's own name means the same, with the same pins.
        assert_eq!(catalogue.wanted("openai/whisper-tiny").unwrap(), tiny);
        let turbo = catalogue.wanted("whisper-large-v3-turbo").unwrap();
        let ModelSource::Hub { revision: Some(revision), .. } = turbo.source else { panic!("{turbo:?}") };
        assert_eq!(revision, "41f01f3fe87f28c78e2fbf8b568835947dd65ed9");
        assert!(catalogue.wanted("ggml-tiny").unwrap().sha1.is_some());
        let speakers = catalogue.wanted("community-1").unwrap();
        assert_eq!(speakers.files.as_ref().map(Vec::len), Some(4));
        assert!(!speakers.is_speech);
        let parakeet = catalogue.wanted("parakeet-tdt-0.6b-v3").unwrap();
        assert!(parakeet.is_speech && parakeet.sha256.is_some_and(|hex| hex.len() == 64));
        // A part of a model can't be pulled, so that none is listed.
        assert!(catalogue.models.iter().all(|entry| entry.kind != ModelKind::SpeakerEmbedding));
        assert_eq!(catalogue.wanted("someone/their-model").unwrap().id, "their-model");
        assert_eq!(catalogue.wanted("https://example.org/a/ggml-x.bin?download=true").unwrap().id, "ggml-x");
        for (name, part) in [
            ("canary-1b-v2", "no model named"),
            ("whisper-huge", "no model named"),
            ("../x", "no model named"),
            ("a/../b", "no model named"),
        ] {
            let error = catalogue.wanted(name).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }

    #[test]
    fn users_add_entries_and_forget_them() {
        let store = tempfile::tempdir().unwrap();
        let add = |id: &str, place: ModelLocation| UserEntry { id: id.into(), place }.save(store.path());
        add("mine", ModelLocation::Repository("me/mine".into())).unwrap();
        add("mine", ModelLocation::Url("https://example.org/ggml-mine.bin".into())).unwrap();
        add("here", ModelLocation::Path("/models/here".into())).unwrap();
        assert!(add("../x", ModelLocation::Path("/".into())).is_err());
        let catalogue = Catalogue::with_own(store.path()).unwrap();
        assert_eq!(
            catalogue.wanted("mine").unwrap().source,
            ModelSource::Url("https://example.org/ggml-mine.bin".into())
        );
        assert!(catalogue.wanted("here").unwrap_err().to_string().contains("/models/here"));
        assert!(UserEntry::forget(store.path(), "mine").unwrap());
        assert!(!UserEntry::forget(store.path(), "mine").unwrap());
        assert!(Catalogue::with_own(store.path()).unwrap().find("mine").is_none());
    }
}
