//! A real `sshd` with SFTP on loopback, and a line to it that breaks.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::nats::{PATIENCE, free_port};

/// A server that lets this user in with a key of its own; ended when it is dropped.
pub struct Sshd {
    child: Child,
    pub port: u16,
    folder: tempfile::TempDir,
}

const PROGRAM: &str = "/usr/sbin/sshd";

impl Sshd {
    /// `None`, with the reason printed, where it is not installed.
    pub fn start() -> Option<Self> {
        if !Path::new(PROGRAM).is_file() || Command::new("ssh").arg("-V").output().is_err() {
            println!("skipped: sshd is not installed (scripts/setup.sh test)");
            return None;
        }
        // Where it is run by root it wants this folder, which packages leave to the init system.
        let _ = std::fs::create_dir_all("/run/sshd");
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["host", "other", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path(name))
                .status();
            assert!(made.unwrap().success());
        }
        std::fs::copy(path("user.pub"), path("authorized")).unwrap();
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nPidFile none\nAuthorizedKeysFile {keys}\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\nLogLevel ERROR\nMaxStartups 100\n",
            host = path("host").display(),
            keys = path("authorized").display(),
        );
        std::fs::write(path("config"), config).unwrap();
        let mut server = Command::new(PROGRAM);
        server.args(["-D", "-e", "-f"]).arg(path("config"));
        let child = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let sshd = Self { child, port, folder };
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(since.elapsed() < PATIENCE, "sshd does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(sshd)
    }

    /// The private key that it knows.
    pub fn key(&self) -> String {
        self.folder.path().join("user").display().to_string()
    }

    /// A file of known hosts with the server's key, or another's in its place, at these ports.
    pub fn known_hosts(&self, key: &str, ports: &[u16]) -> String {
        let public = std::fs::read_to_string(self.folder.path().join(format!("{key}.pub"))).unwrap();
        let public: Vec<&str> = public.split(' ').take(2).collect();
        let line = |port: &u16| format!("[127.0.0.1]:{port} {}\n", public.join(" "));
        // A name that has to be told from two names.
        let file = self.folder.path().join(format!("known {key} {ports:?}"));
        std::fs::write(&file, ports.iter().map(line).collect::<String>()).unwrap();
        file.display().to_string()
    }

    pub fn address(port: u16, folder: &Path) -> String {
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(user.stdout).unwrap();
        format!("sftp://{}@127.0.0.1:{port}{}", user.trim(), folder.display())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line to a port that breaks so many times after so many bytes from there. Returns its own port, and how often it
/// broke.
pub fn breaking_line(to: u16, times: usize, after: usize) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broke = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&broke);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)) else { return };
            let (mut up, mut up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut up, &mut up_to);
                let _ = up_to.shutdown(Shutdown::Write);
            });
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || {
                let mut left = after;
                let mut piece = [0; 16 << 10];
                while let Ok(read @ 1..) = server.read(&mut piece) {
                    if read >= left && counter.load(Ordering::Relaxed) < times {
                        counter.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    left = left.saturating_sub(read);
                    if client.write_all(&piece[..read]).is_err() {
                        break;
                    }
                }
                let _ = client.shutdown(Shutdown::Both);
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    (port, broke)
}
