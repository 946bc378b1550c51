//! The `steno serve` of another machine that transcribes in place of this one: which it is, and its token, which lies in
//! a file of its own that this user alone can read.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use advisor::store;
use hub::{Connections, Token};
use remote::{Access, Client};
use serde::{Deserialize, Serialize};
use wire::{ErrorCode, Failure};

use super::{AppState, Session};
use config::Preferences;

/// Beside the file of what the window remembers.
const TOKEN_FILE: &str = "server-token";

/// Which machine transcribes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Recordings that are begun from now on go there.
    pub on: bool,
    /// Such as `http://studio:8642`; empty where none was entered.
    pub address: String,
    /// A model of that machine; `None`: it chooses.
    pub model: Option<String>,
}

/// What a job there needs.
#[derive(Debug, Clone)]
pub struct MachineInUse {
    /// With scheme and port.
    pub address: String,
    /// Host and port, for the user.
    pub place: String,
    /// `None`: the machine chooses.
    pub model: Option<String>,
    /// `None` where it needs none.
    pub token: Option<Token>,
    /// Where every connection is written down.
    pub log: Connections,
}

/// Where a job is that another machine does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// With scheme and port.
    pub address: String,
    /// The machine knows the job by this.
    pub key: String,
}

impl MachineInUse {
    /// `None` where it is off or its address can't be one.
    pub fn of(machine: &Machine, token: Option<Token>) -> Option<Self> {
        let url = remote::origin(&machine.address).ok().filter(|_| machine.on)?;
        let host = url.host_str().unwrap_or_default();
        let place = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some(Self { address: url.into(), place, model: machine.model.clone(), token, log: log() })
    }

    /// # Errors
    /// As [`Access::client`].
    pub fn client(&self, preferences: &Preferences) -> Result<Client, Failure> {
        let access = access(&self.address, self.token.clone(), preferences)?;
        Access { log: self.log.clone(), ..access }.client()
    }
}

/// The log of every connection of this user.
pub fn log() -> Connections {
    store::connections_log().map_or_else(Connections::nowhere, Connections::in_file)
}

fn access(address: &str, token: Option<Token>, preferences: &Preferences) -> Result<Access, Failure> {
    let (offline, proxy) = (store::is_offline(preferences), store::proxy(preferences)?);
    Ok(Access { address: address.to_owned(), token, proxy, offline, log: log() })
}

impl AppState {
    /// Which machine transcribes, as it was entered.
    pub fn machine(&self) -> Machine {
        self.remembered().machine
    }

    /// Whether there is a token for it.
    pub fn has_machine_token(&self) -> bool {
        self.machine_token().is_some()
    }

    fn machine_token(&self) -> Option<Token> {
        read_token(self.token_file().as_deref()?)
    }

    fn token_file(&self) -> Option<PathBuf> {
        self.remembered_file().and_then(Path::parent).map(|folder| folder.join(TOKEN_FILE))
    }

    /// Sets which machine transcribes, and remembers it. `token`: another one; empty: none. A token is for one machine:
    /// without a new one, another address has none. Waits for the disk.
    ///
    /// # Errors
    /// `BadSettings` for an address or a token that can't be one, `NetworkOff` where it is switched on and the user
    /// forbids the network; then all stays as it is. `OutputUnwritable` where the token can't be kept.
    pub fn change_machine(&self, machine: Machine, token: Option<&str>) -> Result<(), Failure> {
        let is_named = !machine.address.trim().is_empty();
        let same_place =
            |before: &Machine| match (remote::origin(&before.address), remote::origin(&machine.address)) {
                (Ok(before), Ok(now)) => before.origin() == now.origin(),
                _ => false,
            };
        if is_named || machine.on {
            remote::origin(&machine.address)?;
        }
        if machine.on {
            access(&machine.address, None, &self.session.preferences())?.client()?;
        }
        let token = match token.map(str::trim) {
            Some("") => None,
            Some(text) => Some(parse_token(text)?),
            None => self.machine_token().filter(|_| same_place(&self.machine())),
        };
        let file = self
            .token_file()
            .ok_or_else(|| Failure::new(ErrorCode::OutputUnwritable, "There is no folder for the token."))?;
        write_token(&file, token.as_ref()).map_err(|error| {
            let message = format!("The token can't be kept ({error}).");
            Failure::new(ErrorCode::OutputUnwritable, message).file(file.as_path())
        })?;
        self.remember(|remembered| remembered.machine = machine.clone());
        self.session.use_machine(MachineInUse::of(&machine, token));
        Ok(())
    }

    /// The models of the machine at this address, which also shows that it can be used. `token`: `None` for the one that
    /// is kept, if that is for this machine.
    ///
    /// # Errors
    /// Why it can't be used.
    pub async fn test_machine(&self, address: &str, token: Option<&str>) -> Result<Vec<String>, Failure> {
        let url = remote::origin(address)?;
        let token = match token.map(str::trim) {
            Some("") => None,
            Some(text) => Some(parse_token(text)?),
            None => {
                let own =
                    remote::origin(&self.machine().address).is_ok_and(|own| own.origin() == url.origin());
                self.machine_token().filter(|_| own)
            }
        };
        let client = access(address, token, &self.session.preferences())?.client()?;
        let models = client.models().await.map_err(|trouble| trouble.failure)?;
        // The name by which OpenAI's clients leave the choice to the server.
        Ok(models.into_iter().filter(|model| model != "whisper-1").collect())
    }

    /// The machine in use as it was remembered.
    pub(super) fn remembered_machine(machine: &Machine, file: Option<&Path>) -> Option<MachineInUse> {
        let token = file.and_then(Path::parent).and_then(|folder| read_token(&folder.join(TOKEN_FILE)));
        MachineInUse::of(machine, token)
    }
}

impl Session {
    /// Recordings that are begun from now on are transcribed there; `None`: here. What was begun here goes on here.
    pub fn use_machine(&self, machine: Option<MachineInUse>) {
        self.change(|shared| {
            shared.machine = machine;
            shared.hold_or_release();
        });
    }
}

/// Whether what is sent to this address can be read on its way.
pub fn is_open(address: &str) -> bool {
    remote::origin(address).is_ok_and(|url| url.scheme() == "http" && !hub::is_this_machine(&url))
}

fn parse_token(text: &str) -> Result<Token, Failure> {
    Token::new(text).ok_or_else(|| {
        Failure::new(ErrorCode::BadSettings, "This can't be a token: it has letters, digits and signs only.")
            .remedy("Copy it as `steno serve --create-token NAME` printed it.")
    })
}

fn read_token(file: &Path) -> Option<Token> {
    Token::new(&std::fs::read_to_string(file).ok()?)
}

/// Whole or not at all, and readable for this user alone from its first byte on.
fn write_token(file: &Path, token: Option<&Token>) -> io::Result<()> {
    let Some(token) = token else {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // On Unix such a file has mode 0600; elsewhere it has the folder's, which is the user's.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(new, "{}", token.secret())?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}
