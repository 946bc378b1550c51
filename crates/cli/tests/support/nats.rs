//! A real `nats-server` on loopback, and a client that hears what is published.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any of it takes on a starved machine; reached only by a hang.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A server with JetStream; ended when it is dropped.
pub struct Nats {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
    options: Vec<String>,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(port: u16, folder: &std::path::Path, options: &[String]) -> Child {
    let mut server = Command::new("nats-server");
    server.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(folder).args(options);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

impl Nats {
    /// `None`, with the reason printed, where it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// As [`Nats::start`], with further options of `nats-server`.
    pub fn start_with(options: &[&str]) -> Option<Self> {
        Self::until_it_starts(|| Self::try_to_start(options))
    }

    /// `None` where it ended at once: another program has one of its ports by now.
    fn try_to_start(options: &[&str]) -> Option<Self> {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let mut nats = Self { child: spawn(port, folder.path(), &options), port, folder, options };
        nats.answers().then_some(nats)
    }

    /// As `start` says, which is tried until it succeeds; `None`, with the reason printed, where it is not installed.
    fn until_it_starts<T>(start: impl Fn() -> Option<T>) -> Option<T> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            println!("skipped: nats-server is not installed (scripts/setup.sh test)");
            return None;
        }
        let since = Instant::now();
        loop {
            let started = start();
            if started.is_some() {
                return started;
            }
            assert!(since.elapsed() < PATIENCE, "nats-server does not start");
        }
    }

    /// So many servers that are one cluster and keep copies of each other's streams.
    pub fn cluster(count: usize) -> Option<Vec<Self>> {
        Self::until_it_starts(|| Self::try_to_start_cluster(count))
    }

    fn try_to_start_cluster(count: usize) -> Option<Vec<Self>> {
        let routes: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let all = all.join(",");
        let one = |(number, port): (usize, &u16)| {
            let (name, own) = (format!("n{number}"), format!("nats://127.0.0.1:{port}"));
            Self::try_to_start(&["-n", &name, "--cluster_name", "test", "--cluster", &own, "--routes", &all])
        };
        routes.iter().enumerate().map(one).collect()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// As a power cut would end it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// With what it had on its disk.
    pub fn start_again(&mut self) {
        self.child = spawn(self.port, self.folder.path(), &self.options);
        assert!(self.answers(), "nats-server does not start again");
    }

    /// Waits until it takes connections; `false` if it ended instead.
    fn answers(&mut self) -> bool {
        let since = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let mut line = String::new();
                if BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO") {
                    return true;
                }
            }
            assert!(since.elapsed() < PATIENCE, "nats-server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub fn listen(&self, subject: &str) -> Listener {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut listener = Listener { writer: stream.try_clone().unwrap(), reader: BufReader::new(stream) };
        listener
            .writer
            .write_all(format!("CONNECT {{\"verbose\":false}}\r\nSUB {subject} 1\r\nPING\r\n").as_bytes())
            .unwrap();
        while listener.line() != "PONG" {}
        listener
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hears the messages of a subject.
pub struct Listener {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Listener {
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.reader.read_line(&mut line).unwrap() > 0, "nats-server ended");
        line.trim_end().to_owned()
    }

    /// The answer to a request, such as one to the API of JetStream.
    pub fn ask(&mut self, subject: &str) -> Vec<u8> {
        self.writer.write_all(format!("SUB answer 2\r\nPUB {subject} answer 0\r\n\r\n").as_bytes()).unwrap();
        loop {
            let (told, body) = self.next();
            if told == "answer" {
                return body;
            }
        }
    }

    /// The next message: its subject and what is in it.
    pub fn next(&mut self) -> (String, Vec<u8>) {
        loop {
            let line = self.line();
            let parts: Vec<&str> = line.split(' ').collect();
            let has_headers = match parts[0] {
                "MSG" => false,
                "HMSG" => true,
                "PING" => {
                    self.writer.write_all(b"PONG\r\n").unwrap();
                    continue;
                }
                _ => continue,
            };
            let total: usize = parts[parts.len() - 1].parse().unwrap();
            let headers: usize = if has_headers { parts[parts.len() - 2].parse().unwrap() } else { 0 };
            let mut body = vec![0; total + 2];
            self.reader.read_exact(&mut body).unwrap();
            return (parts[1].to_owned(), body[headers..total].to_vec());
        }
    }
}
