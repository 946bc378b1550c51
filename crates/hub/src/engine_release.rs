//! The engine for NVIDIA cards, as a release offers it: a list of files beside which the files lie. It is downloaded,
//! verified and put into place as models are, into a store of its own.

use std::path::PathBuf;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::connections::Purpose;
use crate::digest::Digest;
use crate::manifest::{Manifest, Origin, Stored};
use crate::meter::{Meter, TransferProgress, TransferStage};
use crate::pull::{self, Puller};
use crate::retry::{Retries, Trouble};
use crate::store::{Model, Store, StoredState};
use crate::{Control, Error, files, platform, plausible};

/// Its folder's name in the store of engines.
pub const ENGINE: &str = "cuda";

/// The program among its files.
const PROGRAM: &str = "steno-engine-cuda";

/// A list of a few files; nobody needs a longer one.
const LONGEST_LIST: usize = 1 << 20;

/// What a release offers. Written by scripts/package/engine.sh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineRelease {
    /// [`EngineRelease::FORMAT`] of the list.
    pub format: u32,
    /// The version of Steno whose engine it is.
    pub steno: String,
    /// As `std::env::consts::OS` says.
    pub system: String,
    /// As `std::env::consts::ARCH` says.
    pub architecture: String,
    /// The program and the libraries that it needs.
    pub files: Vec<OfferedFile>,
}

/// A file of the release, which lies beside the list under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedFile {
    /// With the folder that it lies in, if any: `cuda-libs/libcublas.so.13`.
    pub name: String,
    /// In bytes.
    pub size: Option<u64>,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// Of the list alone, so that one of a later format can be told from a damaged one.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl EngineRelease {
    /// Raised when an older program would misread the list.
    pub const FORMAT: u32 = 1;

    /// Reads a list that came from `address`, for the version `steno` on this machine.
    ///
    /// # Errors
    ///
    /// Fails with `Engine` for a list that can't be read or is of a later format, for another version, system or
    /// processor, and for a file without a size or a checksum, with a name that leads elsewhere, or listed twice.
    pub fn read(text: &[u8], address: &str, steno: &str) -> Result<Self, Error> {
        let wrong = |problem: String, remedy: &str| Error::Engine {
            address: address.into(),
            problem,
            remedy: remedy.into(),
        };
        let damaged =
            |problem: String| wrong(problem, "Try again later, or give another address with --manifest.");
        let unreadable =
            |error: serde_json::Error| damaged(format!("its list of files can't be read ({error})"));
        let Format { format } = serde_json::from_slice(text).map_err(unreadable)?;
        if format > Self::FORMAT {
            let problem =
                format!("its list of files is of format {format}, which this version of Steno can't read");
            return Err(wrong(problem, "Install a newer Steno."));
        }
        let release: Self = serde_json::from_slice(text).map_err(unreadable)?;
        if release.steno != steno {
            let problem =
                format!("it is of Steno {}, and this is Steno {steno}", files::printable(&release.steno));
            return Err(wrong(problem, "Give the address of this version's with --manifest."));
        }
        let here = (std::env::consts::OS, std::env::consts::ARCH);
        if (release.system.as_str(), release.architecture.as_str()) != here {
            let offered = files::printable(&format!("{} {}", release.system, release.architecture));
            let problem = format!("it is for {offered}, and this computer is {} {}", here.0, here.1);
            return Err(wrong(problem, "Give the address of one for this computer with --manifest."));
        }
        for (number, file) in release.files.iter().enumerate() {
            let name = files::printable(&file.name);
            if !files::is_plain_path(&file.name)
                || file.name == crate::MANIFEST
                || file.name.ends_with(".part")
            {
                return Err(damaged(format!("the file name {name:?} is not allowed")));
            }
            if release.files.iter().take(number).any(|other| other.name.eq_ignore_ascii_case(&file.name)) {
                return Err(damaged(format!("it lists {name} twice")));
            }
            match file.size {
                None | Some(0) => return Err(damaged(format!("it does not say how large {name} is"))),
                Some(size) => plausible::size(address, &file.name, size)?,
            }
            if file.sha256.len() != 64 || !file.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(damaged(format!("it has no valid checksum of {name}")));
            }
        }
        if !release.files.iter().any(|file| file.name == PROGRAM) {
            return Err(damaged(format!("{PROGRAM} is not among its files")));
        }
        Ok(release)
    }

    fn manifest(&self, address: &str) -> Manifest {
        let stored = |file: &OfferedFile| Stored {
            name: file.name.clone(),
            size: file.size,
            promised: vec![Digest::Sha256(file.sha256.to_ascii_lowercase())],
            sha256: None,
        };
        Manifest {
            version: Manifest::VERSION,
            id: ENGINE.into(),
            origin: Origin::Release { list: address.into() },
            files: self.files.iter().map(stored).collect(),
            damaged: Vec::new(),
        }
    }
}

impl Puller {
    /// Downloads the engine that the list at `address` offers, from where an earlier attempt ended, and puts it into
    /// the store once all of it is verified. The one that is there already is left alone; an older one is replaced.
    ///
    /// # Errors
    ///
    /// As [`EngineRelease::read`] and [`Puller::pull`]; with `Engine` for an address that anyone on the way could
    /// answer for.
    pub async fn pull_engine(
        &self,
        store: &Store,
        address: &str,
        control: &Control,
        on_progress: &mut (dyn FnMut(TransferProgress) + Send),
    ) -> Result<Model, Error> {
        let _lock = store.lock(ENGINE)?;
        let mut meter = Meter::new(on_progress);
        meter.stage(TransferStage::Look, None);
        let url = address_of(address)?;
        let text = list(self.client(), &url, control, &mut meter).await?;
        let release = EngineRelease::read(&text, address, env!("CARGO_PKG_VERSION"))?;
        let mut manifest = release.manifest(address);
        let whole = store.folder().join(ENGINE);
        if let Some(there) = Manifest::read(&whole).ok().flatten()
            && is_same(&there, &manifest)
            && store.prepare(ENGINE)?
        {
            meter.stage(TransferStage::Installed, None);
            return store.model(ENGINE);
        }
        let partial = store.unfinished(ENGINE)?;
        // What is verified already need not come again.
        if let Some(begun) = Manifest::read(&partial).ok().flatten().filter(|begun| is_same(begun, &manifest))
        {
            manifest.files = begun.files;
            manifest.damaged = begun.damaged;
        }
        pull::discard_others(&partial, &manifest)?;
        manifest.write(&partial)?;
        pull::room(&manifest, &partial, store.folder())?;
        meter.progress.total = manifest.bytes();
        meter.progress.done = pull::came(&manifest, &partial);
        for number in 0..manifest.files.len() {
            self.file(&mut manifest, number, &partial, control, &mut meter).await?;
        }
        meter.stage(TransferStage::Install, None);
        platform::make_executable(&partial.join(PROGRAM)).map_err(|error| Error::io(&partial, error))?;
        store.install(&manifest)?;
        meter.stage(TransferStage::Installed, None);
        store.model(ENGINE)
    }
}

/// The engine in this store; `None` where it is not there or not whole.
pub fn installed_engine(store: &Store) -> Option<PathBuf> {
    let model = store.model(ENGINE).ok().filter(|model| model.state == StoredState::Ready)?;
    Some(model.folder.join(PROGRAM))
}

/// Where a file of the release lies: beside its list.
pub(crate) fn beside(list: &str, name: &str) -> Result<Url, Error> {
    let url = address_of(list)?;
    url.join(name).map_err(|error| Error::Engine {
        address: list.into(),
        problem: format!("{name} has no valid address ({error})"),
        remedy: "Give another address with --manifest.".into(),
    })
}

/// Programs come over connections that nobody can change, or from this machine.
fn address_of(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).ok().filter(Url::has_host);
    let is_safe = |url: &Url| {
        url.scheme() == "https" || (url.scheme() == "http" && crate::settings::is_this_machine(url))
    };
    url.filter(is_safe).ok_or_else(|| Error::Engine {
        address: text.into(),
        problem: "its address does not begin with https://".into(),
        remedy: "Give the whole address of its list of files with --manifest.".into(),
    })
}

async fn list(
    client: &Client,
    url: &Url,
    control: &Control,
    meter: &mut Meter<'_>,
) -> Result<Vec<u8>, Error> {
    let limits = &client.settings.limits;
    let mut retries = Retries::at_first(limits, control);
    loop {
        control.ready().await?;
        let asked = async {
            let reply = client.get(url, Default::default(), &Purpose::EngineList).await?;
            reply.text(LONGEST_LIST, limits.answer).await
        };
        let text = tokio::select! {
            text = asked => text,
            () = control.interrupted() => Err(Trouble::Interrupted),
        };
        match text {
            Ok(text) => return Ok(text),
            Err(trouble) => {
                retries.after(trouble, &mut |error, wait| meter.wait(&error.message(), wait)).await?;
            }
        }
    }
}

/// Whether two lists are of the same bytes, wherever those came from.
fn is_same(one: &Manifest, other: &Manifest) -> bool {
    let bytes = |manifest: &Manifest| -> Vec<_> {
        manifest.files.iter().map(|file| (file.name.clone(), file.size, file.promised.clone())).collect()
    };
    bytes(one) == bytes(other)
}
