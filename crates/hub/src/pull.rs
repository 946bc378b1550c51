//! Downloads of models, and the only use of the network.
//!
//! Size and checksum are those of the hub's first answer, which is requested without
//! following its redirect. They are pinned (`.pins`): the same name must bring the same
//! commit and the same files from then on. The token goes to the hub's own address and
//! is decided anew for every redirect. A part is continued by a range with the tag of
//! the server that sent it; whether the whole is right, its checksum on disk decides.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::Deserialize;

use crate::client::{Client, Remote};
use crate::connections::{Connections, Purpose};
use crate::digest::Digest;
use crate::fetch::{self, Piece, fetch};
use crate::inspect::{inspect, is_no_speech_model, kind};
use crate::manifest::{Manifest, Origin, Stored};
use crate::meter::{Meter, TransferProgress, TransferStage};
use crate::retry::{Retries, Trouble};
use crate::settings::HubSettings;
use crate::store::{Model, Store};
use crate::{Control, Error, Filling, choice, engine_release, files, platform, plausible};

/// What a disk must have left when everything is there.
pub(crate) const MARGIN: u64 = 64 << 20;
/// A listing of a repository with thousands of files.
const LONGEST_LISTING: usize = 8 << 20;
const BRANCH: &str = "main";

/// A model that is to be in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What it will be called.
    pub id: String,
    /// Where to get it.
    pub source: ModelSource,
    /// Names of the files that make it up; `None`: as the repository has them.
    pub files: Option<Vec<String>>,
    /// Of the only file, by its publisher.
    pub sha1: Option<String>,
    /// Of `model.safetensors`, by its publisher.
    pub sha256: Option<String>,
    /// Whether its weights must be those of a speech network.
    pub is_speech: bool,
    /// Take what the name stands for now, even where that differs from
    /// the first download.
    pub renew: bool,
}

/// Where a model is downloaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// `revision`: a commit that was pinned beforehand.
    /// A repository of the hub.
    Hub {
        /// `owner/name`.
        repository: String,
        /// A commit; `None`: the latest of the main branch.
        revision: Option<String>,
    },
    /// A single file on any server.
    Url(String),
}

impl Wanted {
    /// A model to be downloaded as `id`.
    ///
    /// # Errors
    ///
    /// Fails with `BadName` for a name that can't be a folder's.
    pub fn new(id: &str, source: ModelSource) -> Result<Self, Error> {
        if !files::is_plain_name(id) {
            return Err(Error::BadName { name: id.into() });
        }
        Ok(Self {
            id: id.into(),
            source,
            files: None,
            sha1: None,
            sha256: None,
            is_speech: true,
            renew: false,
        })
    }

    /// All files of the model in this repository of the hub.
    ///
    /// # Errors
    ///
    /// Fails with `BadName` for a name that can't be a folder's.
    pub fn of_repository(id: &str, repository: &str) -> Result<Self, Error> {
        Self::new(id, ModelSource::Hub { repository: repository.into(), revision: None })
    }

    /// Under another name.
    ///
    /// # Errors
    ///
    /// Fails with `BadName` for a name that can't be a folder's.
    pub fn named(self, id: &str) -> Result<Self, Error> {
        Ok(Self { id: Self::new(id, self.source.clone())?.id, ..self })
    }
}

/// Downloads models into a store.
#[derive(Debug)]
pub struct Puller {
    client: Client,
}

impl Puller {
    /// A downloader that writes each connection to `log`.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` for a proxy whose address can't be read.
    pub fn new(settings: HubSettings, log: Connections) -> Result<Self, Error> {
        Ok(Self { client: Client::new(settings, log)? })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Downloads a model, from where an earlier attempt ended, and puts it into the
    /// store once all of it is verified. A model that is whole is left alone; of a
    /// damaged one only the damaged files are downloaded.
    ///
    /// On an error the store is unchanged, apart from what was downloaded.
    ///
    /// # Errors
    ///
    /// Fails with what [`Error`] lists; a download can be continued by asking for it again.
    pub async fn pull(
        &self,
        store: &Store,
        wanted: &Wanted,
        control: &Control,
        on_progress: &mut (dyn FnMut(TransferProgress) + Send),
    ) -> Result<Model, Error> {
        let _lock = store.lock(&wanted.id)?;
        let mut meter = Meter::new(on_progress);
        if !wanted.renew && store.prepare(&wanted.id)? {
            meter.stage(TransferStage::Installed, None);
            return store.model(&wanted.id);
        }
        let partial = store.partial(&wanted.id);
        let mut manifest = self.described(store, wanted, control, &mut meter).await?;
        room(&manifest, &partial, store.folder())?;
        meter.progress.total = manifest.bytes();
        meter.progress.done = came(&manifest, &partial);
        for number in 0..manifest.files.len() {
            self.file(&mut manifest, number, &partial, control, &mut meter).await?;
        }
        // Their checkpoints are pickles, which alone may be some: they are read without being run.
        if !is_no_speech_model(&partial)? {
            if wanted.is_speech {
                inspect(&partial)?;
            }
            for file in &manifest.files {
                kind(&partial.join(&file.name))?;
            }
        }
        meter.stage(TransferStage::Install, None);
        store.install(&manifest)?;
        meter.stage(TransferStage::Installed, None);
        store.model(&wanted.id)
    }

    /// What the model's files are: as an earlier attempt found them, checked
    /// against what the server says now where something is still to come.
    async fn described(
        &self,
        store: &Store,
        wanted: &Wanted,
        control: &Control,
        meter: &mut Meter<'_>,
    ) -> Result<Manifest, Error> {
        let partial = store.partial(&wanted.id);
        let begun = Manifest::read(&partial)?.filter(|begun| begun.is_of(&wanted.source) && !wanted.renew);
        if let Some(begun) = &begun
            && begun.missing(&partial).is_empty()
        {
            return Ok(begun.clone());
        }
        meter.stage(TransferStage::Look, None);
        let pinned = match begun {
            Some(begun) => Some(begun),
            None => store.pins(&wanted.id)?.filter(|pins| pins.is_of(&wanted.source) && !wanted.renew),
        };
        let found = self.look(wanted, pinned.as_ref(), control, meter).await?;
        if let Some(pinned) = &pinned {
            for file in &found.files {
                same(pinned, file)?;
            }
        }
        // What came of other files than these is of no use.
        discard_others(&partial, &found)?;
        let mut manifest = found;
        for file in &mut manifest.files {
            let known = pinned.as_ref().and_then(|pinned| pinned.file(&file.name));
            file.sha256 = known.and_then(|known| known.sha256.clone());
        }
        manifest.write(&partial)?;
        Ok(manifest)
    }

    /// Asks the server for what it has now.
    async fn look(
        &self,
        wanted: &Wanted,
        pinned: Option<&Manifest>,
        control: &Control,
        meter: &mut Meter<'_>,
    ) -> Result<Manifest, Error> {
        let why = Purpose::Facts { model: wanted.id.clone() };
        let hub = self.client.settings.endpoint.host_str().unwrap_or_default().to_owned();
        let (repository, mut revision) = match &wanted.source {
            ModelSource::Url(text) => {
                let url = parse(text)?;
                let name = file_name(&url)?;
                let remote = self.remote(&url, &why, control, meter).await?;
                if let Some(size) = remote.size {
                    plausible::size(url.host_str().unwrap_or_default(), &name, size)?;
                }
                let origin = Origin::Url { url: text.clone() };
                return Ok(manifest(wanted, origin, vec![stored(wanted, name, remote)]));
            }
            ModelSource::Hub { repository, revision } => {
                let commit = pinned.and_then(Manifest::revision).map(str::to_owned);
                (repository, commit.or_else(|| revision.clone()))
            }
        };
        let names = match (&wanted.files, pinned) {
            (Some(names), _) => names.clone(),
            (None, Some(pinned)) => pinned.files.iter().map(|file| file.name.clone()).collect(),
            (None, None) => {
                let listing = self.listing(repository, revision.as_deref(), control, meter).await?;
                plausible::commit(&hub, &listing.sha)?;
                revision = Some(listing.sha);
                choice::of(&wanted.id, listing.siblings.into_iter().map(|file| file.rfilename))?
            }
        };
        let mut found = Vec::new();
        for name in names {
            let url = self.address(repository, revision.as_deref().unwrap_or(BRANCH), &name)?;
            let remote = self.remote(&url, &why, control, meter).await?;
            if let Some(size) = remote.size {
                plausible::size(&hub, &name, size)?;
            }
            if let Some(commit) = &remote.commit {
                plausible::commit(&hub, commit)?;
            }
            // All files are those of one commit: the first answer names it.
            revision = revision.or_else(|| remote.commit.clone());
            found.push(stored(wanted, name, remote));
        }
        let revision = revision.unwrap_or_else(|| BRANCH.into());
        let origin = Origin::Hub { repository: repository.clone(), revision };
        Ok(manifest(wanted, origin, found))
    }

    async fn remote(
        &self,
        url: &Url,
        why: &Purpose,
        control: &Control,
        meter: &mut Meter<'_>,
    ) -> Result<Remote, Error> {
        let mut retries = Retries::at_first(&self.client.settings.limits, control);
        loop {
            control.ready().await?;
            let looked = tokio::select! {
                looked = self.client.look(url, why) => looked,
                () = control.interrupted() => Err(Trouble::Interrupted),
            };
            match looked {
                Ok(remote) => return Ok(remote),
                Err(trouble) => {
                    retries.after(trouble, &mut |error, wait| meter.wait(&error.message(), wait)).await?;
                }
            }
        }
    }

    async fn listing(
        &self,
        repository: &str,
        revision: Option<&str>,
        control: &Control,
        meter: &mut Meter<'_>,
    ) -> Result<Listing, Error> {
        let path = format!("api/models/{repository}/revision/{}", revision.unwrap_or(BRANCH));
        let url = self.below(&path)?;
        let why = Purpose::FileList { repository: repository.into() };
        let limit = self.client.settings.limits.answer;
        let mut retries = Retries::at_first(&self.client.settings.limits, control);
        let text = loop {
            control.ready().await?;
            let asked = async {
                let reply = self.client.get(&url, Default::default(), &why).await?;
                reply.text(LONGEST_LISTING, limit).await
            };
            let text = tokio::select! {
                text = asked => text,
                () = control.interrupted() => Err(Trouble::Interrupted),
            };
            match text {
                Ok(text) => break text,
                Err(trouble) => {
                    retries.after(trouble, &mut |error, wait| meter.wait(&error.message(), wait)).await?;
                }
            }
        };
        serde_json::from_slice(&text).map_err(|error| Error::Unreachable {
            host: url.host_str().unwrap_or_default().into(),
            problem: format!("its list of files can't be read ({error})"),
        })
    }

    /// Gets one file of the model, where it is not there yet.
    pub(crate) async fn file(
        &self,
        manifest: &mut Manifest,
        number: usize,
        partial: &Path,
        control: &Control,
        meter: &mut Meter<'_>,
    ) -> Result<(), Error> {
        let Some(stored) = manifest.files.get(number).cloned() else { return Ok(()) };
        let place = partial.join(&stored.name);
        if !manifest.missing(partial).contains(&stored.name) {
            return Ok(());
        }
        let url = match &manifest.origin {
            Origin::Hub { repository, revision } => self.address(repository, revision, &stored.name)?,
            Origin::Url { url } => parse(url)?,
            Origin::Release { list } => engine_release::beside(list, &stored.name)?,
            Origin::Import { path } => {
                let why = format!("it was imported from {path}");
                let remedy = "Import it again.".into();
                return Err(Error::NotOffered { id: manifest.id.clone(), why, remedy });
            }
            Origin::Copy { model, .. } => {
                let why = format!("it is a copy of {model} that was made on this machine");
                let remedy = "Make it again.".into();
                return Err(Error::NotOffered { id: manifest.id.clone(), why, remedy });
            }
        };
        // What was measured once holds from then on.
        let measured = stored.sha256.clone().map(Digest::Sha256);
        let digests: Vec<Digest> = stored.promised.iter().cloned().chain(measured).collect();
        let piece = Piece {
            url,
            name: &stored.name,
            why: Purpose::File { file: stored.name.clone(), model: manifest.id.clone() },
            part: part(partial, &stored.name),
            size: stored.size,
            digests: &digests,
        };
        files::create_parent(&place)?;
        let hashes = fetch(&self.client, &piece, control, meter).await?;
        if let Some(file) = manifest.files.get_mut(number) {
            (file.size, file.sha256) = (Some(hashes.size), Some(hashes.sha256));
        }
        manifest.damaged.retain(|name| *name != stored.name);
        manifest.write(partial)?;
        fs::rename(&piece.part, &place).map_err(|error| Error::io(&place, error))?;
        fetch::forget_tag(&piece.part);
        Ok(())
    }

    fn address(&self, repository: &str, revision: &str, name: &str) -> Result<Url, Error> {
        // One that was noted before commits were checked is none to ask for.
        if revision != BRANCH {
            plausible::commit(self.client.settings.endpoint.host_str().unwrap_or_default(), revision)?;
        }
        self.below(&format!("{repository}/resolve/{revision}/{name}"))
    }

    /// A mirror may be a folder of its server.
    fn below(&self, path: &str) -> Result<Url, Error> {
        parse(&format!("{}/{path}", self.client.settings.endpoint.as_str().trim_end_matches('/')))
    }
}

/// Of the hub's answer about a repository.
#[derive(Debug, Deserialize)]
struct Listing {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
}

/// What [`Wanted::sha256`] is of.
const WEIGHTS: &str = "model.safetensors";

/// Where a file grows.
pub(crate) fn part(partial: &Path, name: &str) -> PathBuf {
    partial.join(format!("{name}.part"))
}

fn manifest(wanted: &Wanted, origin: Origin, files: Vec<Stored>) -> Manifest {
    Manifest { version: Manifest::VERSION, id: wanted.id.clone(), origin, files, damaged: Vec::new() }
}

fn stored(wanted: &Wanted, name: String, remote: Remote) -> Stored {
    let published = wanted.sha1.clone().map(Digest::Sha1);
    let weights = wanted.sha256.clone().filter(|_| name == WEIGHTS).map(Digest::Sha256);
    let promised = remote.digest.into_iter().chain(weights).chain(published).collect();
    Stored { name, size: remote.size, promised, sha256: None }
}

/// Fails where the server now has another file than the one that was pinned.
fn same(pinned: &Manifest, found: &Stored) -> Result<(), Error> {
    let Some(known) = pinned.file(&found.name) else { return Ok(()) };
    let of_kind = |files: &Stored| files.promised.iter().find(|it| !matches!(it, Digest::Sha1(_))).cloned();
    let changed = |pinned: String, found: String, file: &str| {
        Err(Error::Changed { file: file.to_owned(), pinned, found })
    };
    match (of_kind(known), of_kind(found)) {
        (Some(pinned), Some(now)) if pinned != now => {
            changed(pinned.hex().to_owned(), now.hex().to_owned(), &found.name)
        }
        _ => match (known.size, found.size) {
            (Some(pinned), Some(now)) if pinned != now => {
                changed(format!("{pinned} bytes"), format!("{now} bytes"), &found.name)
            }
            _ => Ok(()),
        },
    }
}

/// Removes what lies in an unfinished model's folder and belongs to none of its
/// files.
pub(crate) fn discard_others(partial: &Path, manifest: &Manifest) -> Result<(), Error> {
    for name in files::names(partial)? {
        let path = partial.join(&name);
        let folder = format!("{name}/");
        if path.is_dir() && manifest.files.iter().any(|file| file.name.starts_with(&folder)) {
            for inner in files::names(&path)? {
                discard(&path.join(&inner), &format!("{folder}{inner}"), manifest)?;
            }
        } else {
            discard(&path, &name, manifest)?;
        }
    }
    Ok(())
}

/// Removes what is at `path` where the manifest has no file of this name.
fn discard(path: &Path, name: &str, manifest: &Manifest) -> Result<(), Error> {
    let stem = name.strip_suffix(".part").or_else(|| name.strip_suffix(".tag")).unwrap_or(name);
    if manifest.file(stem).is_some() || name == crate::MANIFEST {
        return Ok(());
    }
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(|error| Error::io(path, error))
}

/// Bytes that are there already.
pub(crate) fn came(manifest: &Manifest, partial: &Path) -> u64 {
    let of = |file: &Stored| {
        let whole = fetch::length(&partial.join(&file.name));
        if whole > 0 { whole } else { fetch::length(&part(partial, &file.name)) }
    };
    manifest.files.iter().map(of).sum()
}

pub(crate) fn room(manifest: &Manifest, partial: &Path, store: &Path) -> Result<(), Error> {
    let needed = manifest.bytes().saturating_sub(came(manifest, partial)).saturating_add(MARGIN);
    match platform::free_space(partial) {
        Some(free) if free < needed => Err(Error::DiskFull {
            during: Filling::Download,
            folder: store.into(),
            needed: Some(needed),
            free: Some(free),
        }),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|error| Error::Invalid {
        path: text.into(),
        problem: format!("it is not a valid address ({error})"),
        remedy: "Give the whole address, starting with https://.".into(),
    })
}

fn file_name(url: &Url) -> Result<String, Error> {
    let name = url.path().rsplit('/').next().unwrap_or_default();
    if files::is_plain_name(name) { Ok(name.into()) } else { Err(Error::BadName { name: name.into() }) }
}
