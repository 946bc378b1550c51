use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a program branches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The user forbids the use of the network.
    NetworkOff,
    /// A server can't be reached or answers with an error.
    NetworkFailed,
    /// Asks for a token, or for terms that were not accepted.
    Refused,
    /// There is no such model or file.
    NotFound,
    /// A file is not what was promised.
    Corrupt,
    /// Another program works on the model.
    InUse,
    /// No space is left.
    DiskFull,
    /// A file can't be read or written.
    Unreadable,
    /// A file, a name or an address is not what it must be.
    Invalid,
    /// The caller stopped it.
    Cancelled,
}

/// Why there is no model. [`Error::message`] says what happened,
/// [`Error::remedy`] what to do.
#[derive(Debug, thiserror::Error)]
#[error("{} {}", self.message(), self.remedy())]
pub enum Error {
    /// The network is switched off for this program.
    NetworkOff {
        /// The server.
        host: String,
    },
    /// A server can't be reached, or the connection broke.
    Unreachable {
        /// The server.
        host: String,
        /// What went wrong, in words.
        problem: String,
    },
    /// No connection can be made at all: the system has no certificates to check servers by.
    NoCertificates {
        /// What went wrong, in words.
        problem: String,
    },
    /// A server sent next to nothing for this long.
    TooSlow {
        /// The server.
        host: String,
        /// How long it was given.
        window: Duration,
    },
    /// The server asks for a token, or for terms to be accepted.
    Refused {
        /// What was asked for.
        what: String,
        /// The server.
        host: String,
        /// Whether a token was sent.
        had_token: bool,
    },
    /// The server has no such file.
    NotThere {
        /// What was asked for.
        what: String,
        /// The server.
        host: String,
    },
    /// The server answered with another status.
    Status {
        /// What was asked for.
        what: String,
        /// The server.
        host: String,
        /// The HTTP status.
        status: u16,
        /// What the server asked to wait, where it did.
        wait: Option<Duration>,
    },
    /// The server says what can't be true.
    Implausible {
        /// The server.
        host: String,
        /// What it says, as an object: "a size of ...".
        answer: String,
    },
    /// Another file than the one that was pinned.
    Changed {
        /// The file's name.
        file: String,
        /// Checksum or size at the first download.
        pinned: String,
        /// What came instead.
        found: String,
    },
    /// The checksum of a file is another than promised.
    Corrupt {
        /// The file's name.
        file: String,
        /// What was promised.
        promised: String,
        /// What came instead.
        found: String,
    },
    /// A file has another size, in bytes, than promised.
    WrongSize {
        /// The file's name.
        file: String,
        /// What was promised.
        promised: u64,
        /// What came instead.
        found: u64,
    },
    /// There is not enough space; amounts in bytes, where they are known.
    DiskFull {
        /// What filled it.
        during: Filling,
        /// The folder in question.
        folder: PathBuf,
        /// Bytes needed.
        needed: Option<u64>,
        /// Bytes free.
        free: Option<u64>,
    },
    /// Another program works on the model.
    InUse {
        /// The model's name.
        id: String,
        /// Process id of the other program.
        pid: Option<u32>,
    },
    /// No model has this name.
    UnknownModel {
        /// The name as it was given.
        name: String,
    },
    /// The model is known but can't be downloaded.
    NotOffered {
        /// The model's name.
        id: String,
        /// The reason, as part of a sentence.
        why: String,
        /// What the user can do, in a sentence.
        remedy: String,
    },
    /// The name can't be that of a folder.
    BadName {
        /// The name as it was given.
        name: String,
    },
    /// Something else has this name.
    Exists {
        /// The model's name.
        id: String,
        /// The folder in question.
        folder: PathBuf,
    },
    /// What lies at the path is not what it must be.
    Invalid {
        /// The file or folder in question.
        path: PathBuf,
        /// What went wrong, in words.
        problem: String,
        /// What the user can do, in a sentence.
        remedy: String,
    },
    /// An engine that is offered can't be used.
    Engine {
        /// Of its list of files.
        address: String,
        /// What went wrong, in words.
        problem: String,
        /// What the user can do, in a sentence.
        remedy: String,
    },
    /// The operating system refused.
    Io {
        /// The file or folder in question.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The caller stopped it.
    Cancelled,
}

/// What a disk has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// What is downloaded; the part that is there stays.
    Download,
    /// A copy of a model of this machine.
    Import,
    /// The models, on their way to another disk.
    Move,
}

impl Error {
    /// Of a file that could not be written or read.
    pub fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let during = Filling::Download;
                Self::DiskFull { during, folder: path.into(), needed: None, free: None }
            }
            _ => Self::Io { path: path.into(), source },
        }
    }

    /// The same, where a full disk was filled by something else.
    pub(crate) fn during(self, during: Filling) -> Self {
        match self {
            Self::DiskFull { folder, needed, free, .. } => Self::DiskFull { during, folder, needed, free },
            other => other,
        }
    }

    /// What a program branches on.
    pub fn code(&self) -> Code {
        match self {
            Self::NetworkOff { .. } => Code::NetworkOff,
            Self::Unreachable { .. }
            | Self::NoCertificates { .. }
            | Self::TooSlow { .. }
            | Self::Status { .. } => Code::NetworkFailed,
            Self::Refused { .. } => Code::Refused,
            Self::NotThere { .. } | Self::UnknownModel { .. } | Self::NotOffered { .. } => Code::NotFound,
            Self::Implausible { .. }
            | Self::Changed { .. }
            | Self::Corrupt { .. }
            | Self::WrongSize { .. } => Code::Corrupt,
            Self::InUse { .. } => Code::InUse,
            Self::DiskFull { .. } => Code::DiskFull,
            Self::BadName { .. } | Self::Exists { .. } | Self::Invalid { .. } | Self::Engine { .. } => {
                Code::Invalid
            }
            Self::Io { .. } => Code::Unreadable,
            Self::Cancelled => Code::Cancelled,
        }
    }

    /// The file or folder that it is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::DiskFull { folder: path, .. }
            | Self::Exists { folder: path, .. }
            | Self::Invalid { path, .. }
            | Self::Io { path, .. } => Some(path),
            _ => None,
        }
    }

    /// What happened, in a sentence or two.
    pub fn message(&self) -> String {
        match self {
            Self::NetworkOff { host } => {
                format!("{host} was not contacted: network access is turned off.")
            }
            Self::NoCertificates { problem } => format!("Nothing can be downloaded: {problem}."),
            Self::Unreachable { host, problem } => format!("{host} can't be reached ({problem})."),
            Self::TooSlow { host, window } => {
                format!("{host} sent almost nothing for {} s, several times.", window.as_secs().max(1))
            }
            Self::Refused { what, host, had_token: false } => {
                format!("{host} does not provide {what} without an account, or has no such model.")
            }
            Self::Refused { what, host, had_token: true } => {
                format!("{host} does not provide {what} for this token.")
            }
            Self::NotThere { what, host } => format!("{host} has no {what}."),
            Self::Status { what, host, status: 429, wait } => match wait {
                Some(wait) => {
                    format!(
                        "{host} limits requests: wait {} s before you ask for {what} again.",
                        wait.as_secs()
                    )
                }
                None => format!("{host} received too many requests for {what}."),
            },
            Self::Status { what, host, status, .. } => {
                format!("{host} answered the request for {what} with status {status}.")
            }
            Self::Implausible { host, answer } => {
                format!("{host} gave an answer that can't be right: {answer}. It was not used.")
            }
            Self::Changed { file, pinned, found } => format!(
                "{file} has changed since the first download: it has {}, it had {}.",
                short(found),
                short(pinned)
            ),
            Self::Corrupt { file, promised, found } => format!(
                "{file} arrived damaged: its checksum is {}, but must be {}.",
                short(found),
                short(promised)
            ),
            Self::WrongSize { file, promised, found } => {
                format!("{file} has {found} bytes, but must have {promised}.")
            }
            Self::DiskFull { needed: Some(needed), free, .. } => match free {
                Some(free) => {
                    format!("{} is needed, but only {} is free on the disk.", size(*needed), size(*free))
                }
                None => format!("There is not enough disk space for {}.", size(*needed)),
            },
            Self::DiskFull { .. } => "The disk is full.".into(),
            Self::InUse { id, pid: Some(pid) } => {
                format!("Another program (process {pid}) is using the model {id}.")
            }
            Self::InUse { id, pid: None } => format!("Another program is using the model {id}."),
            Self::UnknownModel { name } => format!("There is no model named \"{name}\"."),
            Self::NotOffered { id, why, .. } => format!("The model {id} can't be downloaded: {why}."),
            Self::BadName { name } => format!("\"{name}\" is not a valid model name."),
            Self::Exists { id, .. } => format!("A model named {id} already exists."),
            Self::Invalid { problem, .. } => format!("This can't be used as a model: {problem}."),
            Self::Engine { address, problem, .. } => {
                format!(
                    "The engine offered at {} can't be used: {problem}.",
                    crate::files::printable(address)
                )
            }
            Self::Io { source, .. } => format!("This can't be read or written ({source})."),
            Self::Cancelled => "The download was stopped.".into(),
        }
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::NetworkOff { .. } => {
                "To allow it, leave out --offline, or unset STENO_OFFLINE, HF_HUB_OFFLINE, or network.off in the \
                 config file."
                    .into()
            }
            Self::NoCertificates { .. } => {
                "Install the system's certificates (the package is often called ca-certificates), then run the same \
                 command again."
                    .into()
            }
            Self::Unreachable { .. } | Self::TooSlow { .. } => {
                "Check the connection, the proxy and the mirror, then run the same command again: the download \
                 resumes where it stopped."
                    .into()
            }
            Self::Refused { had_token: false, .. } => {
                "If the model requires an account, accept its terms on its page and set HF_TOKEN to your token."
                    .into()
            }
            Self::Refused { .. } => {
                "Accept the model's terms on its page with the account that the token belongs to, or set HF_TOKEN \
                 to another one."
                    .into()
            }
            Self::NotThere { .. } => "Check the name; `steno models list --all` shows what is known.".into(),
            Self::Status { .. } => {
                "Run the same command again later: the download resumes where it stopped.".into()
            }
            Self::Implausible { .. } => {
                "Check the address of the hub or mirror (HF_ENDPOINT, network.hub), and any proxy in between."
                    .into()
            }
            Self::Changed { .. } => {
                "If its publisher replaced it and you trust the new one, download it with --renew.".into()
            }
            Self::Corrupt { .. } | Self::WrongSize { .. } => {
                "Run the same command again. If it fails again, a proxy or the server may be changing the files."
                    .into()
            }
            Self::DiskFull { during: Filling::Download, .. } => {
                "Free some disk space, or move the models to another disk with `steno models move FOLDER`. Then run \
                 the same command again: the download resumes where it stopped."
                    .into()
            }
            Self::DiskFull { during: Filling::Import, .. } => {
                "Free some disk space, or move the models to another disk with `steno models move FOLDER`. Then \
                 import it again."
                    .into()
            }
            Self::DiskFull { during: Filling::Move, .. } => {
                "Free some space on that disk, or choose a folder on another one.".into()
            }
            Self::InUse { .. } => "Wait until it has finished.".into(),
            Self::UnknownModel { .. } => {
                "`steno models list --all` shows what is known; a model on the hub can also be given as OWNER/NAME."
                    .into()
            }
            Self::NotOffered { remedy, .. } | Self::Invalid { remedy, .. } | Self::Engine { remedy, .. } => remedy.clone(),
            Self::BadName { .. } => {
                "Use letters, digits, dots, dashes and underscores, beginning with a letter or digit.".into()
            }
            Self::Exists { id, .. } => {
                format!("Choose another name with --name, or remove it first: `steno models remove {id}`.")
            }
            Self::Io { .. } => "Check its permissions, and that its disk is connected.".into(),
            Self::Cancelled => "Run the same command again: the download resumes where it stopped.".into(),
        }
    }
}

/// The beginning of a checksum tells two apart.
fn short(text: &str) -> &str {
    text.get(..12).unwrap_or(text)
}

/// Sizes of files as disks and downloads count them: powers of 1000.
fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes >= 1e9 { format!("{:.1} GB", bytes / 1e9) } else { format!("{:.0} MB", (bytes / 1e6).ceil()) }
}
