//! Recordings on a server with SFTP. The connection is `ssh`'s, the program that every system has, with the user's own
//! keys, agent, configuration and known hosts; what is asked over it is SFTP's.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hub::{Connections, Open, Purpose};
use russh_sftp::client::SftpSession;
use russh_sftp::client::error::Error;
use russh_sftp::client::fs::Metadata;
use russh_sftp::protocol::StatusCode;
use serde::{Deserialize, Serialize};
use supervisor::recordings;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;
use wire::{ErrorCode, Failure, FilePath};

use super::{PATIENCE, Trouble, copy, create};

const SCHEME: &str = "sftp://";
/// Attempts in a row that bring next to nothing.
const ATTEMPTS: u32 = 5;
/// Fewer bytes are next to nothing.
const LEAST_BYTES: u64 = 16 << 10;
/// After the first of these attempts; it doubles with each.
const PAUSE: Duration = Duration::from_millis(500);
/// Of what `ssh` says on standard error.
const LONGEST_COMPLAINT: u64 = 4096;
/// For `ssh` to say why it ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A file or folder on a server: `sftp://user@host:port/path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// `None`: as `ssh` is configured.
    pub user: Option<String>,
    /// A name or an address, or what the user's configuration of `ssh` calls it.
    pub host: String,
    /// `None`: as `ssh` is configured.
    pub port: Option<u16>,
    /// Absolute; `/~/` at its start stands for the user's home folder there.
    pub path: String,
}

/// A recording on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Where it is.
    pub remote: Remote,
    /// Its size.
    pub bytes: u64,
    /// When it was changed, in milliseconds since 1970.
    pub modified: Option<i64>,
}

/// How servers are reached.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// A private key in place of the user's own.
    pub key: Option<PathBuf>,
    /// A file of known hosts in place of the user's own.
    pub known_hosts: Option<PathBuf>,
    /// Where every connection is written down.
    pub log: Connections,
    /// The user forbids any use of the network.
    pub offline: bool,
}

impl Remote {
    /// `None` where the text is no such address; a failure where it is one that can't be used.
    pub fn parse(text: &str) -> Option<Result<Self, Failure>> {
        let rest = text.strip_prefix(SCHEME)?;
        let parsed = || {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let (user, place) = match authority.rsplit_once('@') {
                Some((user, place)) => (Some(user), place),
                None => (None, authority),
            };
            let (host, port) = match place.strip_prefix('[') {
                Some(address) => {
                    let (host, port) = address.split_once(']')?;
                    (host, port.strip_prefix(':'))
                }
                None => match place.rsplit_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (place, None),
                },
            };
            let port = match port {
                Some(port) => Some(port.parse::<u16>().ok()?),
                None => None,
            };
            // What `ssh` would take for an option, or another program for a password.
            let is_plain = |text: &str| {
                !text.is_empty()
                    && !text.starts_with('-')
                    && text
                        .chars()
                        .all(|letter| letter.is_ascii_graphic() && !"'\"\\;&|<>$`".contains(letter))
            };
            let fits = is_plain(host)
                && user.is_none_or(|user| is_plain(user) && !user.contains(':'))
                && !path.contains('\0');
            let path = match path {
                "~" => ".".to_owned(),
                path => path.strip_prefix("~/").map_or_else(|| format!("/{path}"), str::to_owned),
            };
            let path = if path.is_empty() { ".".to_owned() } else { path };
            fits.then(|| Self { user: user.map(str::to_owned), host: host.to_owned(), port, path })
        };
        Some(parsed().ok_or_else(|| {
            Failure::new(ErrorCode::BadSettings, "This address can't be used.")
                .file(FilePath::from(text))
                .remedy("Write it as sftp://USER@HOST/FOLDER; /~/ at its start is your home folder there. Passwords are not supported: use a key or an agent.")
        }))
    }

    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match self.path.strip_prefix('/') {
            Some(path) => write!(f, "/{path}"),
            None => write!(f, "/~/{}", self.path),
        }
    }
}

impl RemoteFile {
    /// Its file name.
    pub fn name(&self) -> &str {
        self.remote.file_name()
    }
}

/// A connection under way; `ssh` ends with it.
struct Session {
    sftp: SftpSession,
    _child: Child,
    open: Open,
}

/// Whether another attempt may help.
enum Obstacle {
    Passing(Failure),
    Lasting(Failure),
}

impl Obstacle {
    fn failure(self) -> Failure {
        match self {
            Self::Passing(failure) | Self::Lasting(failure) => failure,
        }
    }
}

impl Ssh {
    /// The recordings that lie in a folder, or the one file; hidden ones are passed over, as in folders here.
    ///
    /// # Errors
    /// `NetworkOff`; `NetworkFailed` where the server can't be reached, is not known or refuses the user;
    /// `FileNotFound`; `NoRecordings`.
    pub async fn list(&self, remote: &Remote, recursive: bool) -> Result<Vec<RemoteFile>, Failure> {
        let session = self.connect(remote).await.map_err(Obstacle::failure)?;
        let about = |error: Error| refused(remote, &error).failure();
        let found = session.sftp.metadata(remote.path.as_str()).await.map_err(about)?;
        let mut files = Vec::new();
        if !found.file_type().is_dir() {
            files.push(remote_file(remote, remote.path.clone(), &found));
            return Ok(files);
        }
        let mut folders = vec![(remote.path.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let entries = session.sftp.read_dir(folder.as_str()).await.map_err(about)?;
            for entry in entries {
                if entry.file_name().starts_with('.') {
                    continue;
                }
                let (kind, path) = (entry.file_type(), entry.path());
                if kind.is_dir() && recursive && depth < recordings::DEEPEST {
                    folders.push((path, depth + 1));
                } else if !kind.is_dir() && recordings::is_recording(Path::new(&path)) {
                    // A link is what it leads to.
                    let metadata = if kind.is_symlink() {
                        session.sftp.metadata(path.as_str()).await.map_err(about)?
                    } else {
                        entry.metadata()
                    };
                    if metadata.file_type().is_file() {
                        files.push(remote_file(remote, path, &metadata));
                    }
                }
            }
        }
        files.sort_by(|a, b| a.remote.path.cmp(&b.remote.path));
        if files.is_empty() {
            let remedy =
                if recursive { "Name another folder." } else { "Add --recursive to search subfolders." };
            let message = "There is no audio or video file in this folder.";
            return Err(Failure::new(ErrorCode::NoRecordings, message)
                .file(FilePath::from(remote.to_string().as_str()))
                .remedy(remedy));
        }
        Ok(files)
    }

    /// Writes a recording to a file, once, whatever becomes of connections meanwhile.
    pub(crate) async fn fetch(&self, remote: &Remote, bytes: u64, file: &Path) -> Result<(), Failure> {
        let mut out = create(file).await?;
        let (mut done, mut attempts) = (0, 0);
        loop {
            let before = done;
            let obstacle = match self.go_on(remote, bytes, &mut done, &mut out, file).await {
                Ok(()) => return Ok(()),
                Err(obstacle) => obstacle,
            };
            attempts = if done - before >= LEAST_BYTES { 1 } else { attempts + 1 };
            match obstacle {
                Obstacle::Passing(_) if attempts < ATTEMPTS => {
                    tokio::time::sleep(PAUSE * (1 << attempts)).await;
                }
                obstacle => return Err(obstacle.failure()),
            }
        }
    }

    /// From where the connection before broke.
    async fn go_on(
        &self,
        remote: &Remote,
        bytes: u64,
        done: &mut u64,
        out: &mut tokio::fs::File,
        file: &Path,
    ) -> Result<(), Obstacle> {
        let mut session = self.connect(remote).await?;
        let about = |error: Error| refused(remote, &error);
        let mut source = session.sftp.open(remote.path.as_str()).await.map_err(about)?;
        let size = source.metadata().await.map_err(about)?.len();
        if size != bytes {
            let message = format!("The recording has {size} bytes and had {bytes} when it was submitted.");
            return Err(Obstacle::Lasting(
                Failure::new(ErrorCode::FileUnreadable, message)
                    .file(FilePath::from(remote.to_string().as_str()))
                    .remedy("Submit it again."),
            ));
        }
        let broke = |error: &std::io::Error| {
            Obstacle::Passing(unreachable(remote, &format!("the connection broke: {error}")))
        };
        source.seek(std::io::SeekFrom::Start(*done)).await.map_err(|error| broke(&error))?;
        let copied = copy(&mut source, out, file).await;
        let now = tokio::fs::metadata(file).await.map_or(*done, |metadata| metadata.len());
        session.open.bytes = now - *done;
        *done = now;
        match copied {
            Ok(_) if now == bytes => Ok(()),
            Ok(_) => Err(broke(&std::io::ErrorKind::UnexpectedEof.into())),
            Err(Trouble::Source(error)) => Err(broke(&error)),
            Err(Trouble::Disk(failure)) => Err(Obstacle::Lasting(failure)),
        }
    }

    async fn connect(&self, remote: &Remote) -> Result<Session, Obstacle> {
        let Remote { user, host, port, .. } = remote;
        if self.offline {
            let message = format!("The network is switched off, so {host} can't be reached.");
            return Err(Obstacle::Lasting(
                Failure::new(ErrorCode::NetworkOff, message)
                    .remedy("Unset STENO_OFFLINE, and network.off in the config file."),
            ));
        }
        let open = self.log.begin(host, &Purpose::Recordings);
        let open = open.map_err(|error| Obstacle::Lasting(advisor::store::failure(error)))?;
        let mut ssh = Command::new("ssh");
        // Nothing is asked, no unknown host is taken for a known one, and nothing but SFTP goes over the connection.
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RequestTTY=no",
            "ConnectTimeout=20",
            "ServerAliveInterval=15",
        ] {
            ssh.arg("-o").arg(option);
        }
        if let Some(key) = &self.key {
            ssh.arg("-i").arg(key).args(["-o", "IdentitiesOnly=yes"]);
        }
        if let Some(known) = &self.known_hosts {
            // A list of files for `ssh`, in which a name with a space has quotes and a percent sign is two.
            let known = known.to_string_lossy().replace('%', "%%");
            let option = format!("UserKnownHostsFile=\"{known}\"");
            ssh.arg("-o").arg(option).args(["-o", "GlobalKnownHostsFile=none"]);
        }
        if let Some(user) = user {
            ssh.arg("-l").arg(user);
        }
        if let Some(port) = port {
            ssh.arg("-p").arg(port.to_string());
        }
        ssh.args(["-s", "--", host, "sftp"]);
        ssh.env("LC_ALL", "C").kill_on_drop(true);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ssh.spawn().map_err(|error| {
            let message = format!("ssh can't be started ({error}).");
            Obstacle::Lasting(
                Failure::new(ErrorCode::NetworkFailed, message).remedy("Install the OpenSSH client."),
            )
        })?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Obstacle::Passing(unreachable(remote, "ssh has no pipes")));
        };
        let complaint = tokio::spawn(read_complaint(errors));
        let begun = tokio::time::timeout(PATIENCE, SftpSession::new(tokio::io::join(output, input))).await;
        match begun {
            Ok(Ok(sftp)) => Ok(Session { sftp, _child: child, open }),
            Ok(Err(error)) => Err(why(remote, complaint, &error.to_string()).await),
            Err(_) => Err(Obstacle::Passing(unreachable(remote, "it does not answer"))),
        }
    }
}

async fn read_complaint(errors: ChildStderr) -> String {
    let mut said = Vec::new();
    let mut rest = errors.take(LONGEST_COMPLAINT);
    // What was read before an error counts.
    let _ = rest.read_to_end(&mut said).await;
    let mut rest = rest.into_inner();
    // Never block what `ssh` says later.
    let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&said).into_owned()
}

/// `ssh` has one exit code for everything: what it says tells whether another attempt may help.
async fn why(remote: &Remote, complaint: JoinHandle<String>, error: &str) -> Obstacle {
    let said = tokio::time::timeout(LAST_WORDS, complaint).await;
    let said = said.ok().and_then(Result::ok).unwrap_or_default();
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let failure = unreachable(remote, last.unwrap_or(error));
    let host = &remote.host;
    if said.contains("Host key verification failed")
        || said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED")
    {
        return Obstacle::Lasting(failure.remedy(format!(
            "Its key is not the one in the file of known hosts. Compare it with the one that the server's keeper \
             names, then add it: ssh-keyscan {host}."
        )));
    }
    if said.contains("Permission denied") || said.contains("Too many authentication failures") {
        return Obstacle::Lasting(
            failure.remedy(
                "Add your key on the server, load it into the agent, or name it with --ssh-key FILE.",
            ),
        );
    }
    Obstacle::Passing(failure)
}

fn unreachable(remote: &Remote, problem: &str) -> Failure {
    let message = format!(
        "{} can't be reached over SFTP ({}).",
        remote.host,
        wire::printable(problem.trim_end_matches('.'))
    );
    Failure::new(ErrorCode::NetworkFailed, message).remedy(format!("Try: sftp {}.", remote.host))
}

/// What the server says of a path.
fn refused(remote: &Remote, error: &Error) -> Obstacle {
    let of = |code, message: &str, remedy: &str| {
        let failure = Failure::new(code, message).remedy(remedy);
        Obstacle::Lasting(failure.file(FilePath::from(remote.to_string().as_str())))
    };
    match error {
        Error::Status(status) if status.status_code == StatusCode::NoSuchFile => {
            of(ErrorCode::FileNotFound, "There is no such file or folder.", "Check the name.")
        }
        Error::Status(status) if status.status_code == StatusCode::PermissionDenied => {
            of(ErrorCode::FileUnreadable, "The server does not allow to read it.", "Check its permissions.")
        }
        error => Obstacle::Passing(unreachable(remote, &error.to_string())),
    }
}

fn remote_file(remote: &Remote, path: String, metadata: &Metadata) -> RemoteFile {
    RemoteFile {
        remote: Remote { path, ..remote.clone() },
        bytes: metadata.len(),
        modified: metadata.mtime.map(|seconds| i64::from(seconds) * 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_and_wrong_ones_are_refused() {
        let remote = |user: Option<&str>, host: &str, port, path: &str| Remote {
            user: user.map(str::to_owned),
            host: host.into(),
            port,
            path: path.into(),
        };
        for (text, expected) in [
            ("sftp://me@host/data/2024", remote(Some("me"), "host", None, "/data/2024")),
            ("sftp://host:2222/data", remote(None, "host", Some(2222), "/data")),
            ("sftp://[::1]:22/a b.wav", remote(None, "::1", Some(22), "/a b.wav")),
            ("sftp://me@host/~/talks", remote(Some("me"), "host", None, "talks")),
        ] {
            assert_eq!(Remote::parse(text).unwrap().unwrap(), expected, "{text}");
        }
        let round = Remote::parse("sftp://me@host:22/~/talks").unwrap().unwrap();
        assert_eq!(round.to_string(), "sftp://me@host:22/~/talks");
        for wrong in [
            "sftp://",
            "sftp:///data",
            "sftp://-oProxyCommand=x/data",
            "sftp://me:secret@host/",
            "sftp://h:x/",
            "sftp://a;b/",
        ] {
            assert_eq!(Remote::parse(wrong).unwrap().unwrap_err().code, ErrorCode::BadSettings, "{wrong}");
        }
        assert!(Remote::parse("talk.wav").is_none() && Remote::parse("/data/sftp").is_none());
    }
}
