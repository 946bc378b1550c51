//! A running `steno serve` and a client that says exactly what a test wants, also what no client should.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Sandbox;

/// Longer than any answer takes on a starved machine; reached only by a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server of a sandbox, killed when it is dropped.
pub struct Serving {
    pub child: Child,
    pub address: String,
    errors: BufReader<std::process::ChildStderr>,
}

impl Serving {
    pub fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        Self::of(sandbox.command(&[&["serve", "--listen", "127.0.0.1:0"], options].concat()))
    }

    pub fn with_engine(sandbox: &Sandbox, engine: &Path, options: &[&str]) -> Self {
        Self::of(sandbox.command_with(engine, &[&["serve", "--listen", "127.0.0.1:0"], options].concat()))
    }

    /// Waits until it listens.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut serving = Self { child, address: String::new(), errors };
        let mut line = String::new();
        while serving.address.is_empty() {
            let said = std::mem::take(&mut line);
            assert!(serving.errors.read_line(&mut line).unwrap() > 0, "the server ended: {said}");
            if let Some((_, rest)) = line.split_once("://") {
                rest.split(". ").next().unwrap().clone_into(&mut serving.address);
            }
        }
        serving
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and returns what it had said on standard error since it listens.
    pub fn end(mut self) -> String {
        // SAFETY: the child has not been waited for, so the number is still its own.
        #[cfg(unix)]
        unsafe {
            libc::kill(self.child.id() as i32, libc::SIGTERM);
        }
        let mut said = String::new();
        self.errors.read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }

    pub fn ask(&self, method: &str, path: &str) -> Answer {
        Ask::new(method, path).to(&self.address)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path)
    }

    /// A job for a recording with this content, by whose first line the scripted engine goes.
    pub fn add(&self, content: &str, fields: &[(&str, &str)]) -> Answer {
        Ask::new("POST", "/jobs").form(fields, Some(("talk.wav", content.as_bytes()))).to(&self.address)
    }

    /// The id of a job that is accepted.
    #[track_caller]
    pub fn accepted(&self, content: &str) -> String {
        let added = self.add(content, &[]).is(202).json();
        added["id"].as_str().unwrap().to_owned()
    }

    pub fn transcribe(&self, content: &str, fields: &[(&str, &str)]) -> Answer {
        self.speech("transcriptions", content, fields)
    }

    pub fn speech(&self, kind: &str, content: &str, fields: &[(&str, &str)]) -> Answer {
        let fields = [&[("model", "whisper-1")], fields].concat();
        let ask = Ask::new("POST", &format!("/v1/audio/{kind}"));
        ask.form(&fields, Some(("talk.wav", content.as_bytes()))).to(&self.address)
    }

    /// Waits until the job is over.
    #[track_caller]
    pub fn over(&self, id: &str) -> Value {
        // The last event comes when it is.
        self.get(&format!("/jobs/{id}/events")).is(200);
        self.get(&format!("/jobs/{id}")).is(200).json()
    }

    /// The jobs in the order in which they were accepted.
    pub fn jobs(&self) -> Vec<Value> {
        self.get("/jobs").is(200).json()["jobs"].as_array().unwrap().clone()
    }

    /// Waits until the job runs.
    pub fn runs(&self, id: &str) {
        let since = Instant::now();
        while self.get(&format!("/jobs/{id}")).json()["state"] != "running" {
            assert!(since.elapsed() < PATIENCE, "{id} does not run");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request.
pub struct Ask {
    head: String,
    has_host: bool,
    body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Self {
        Self { head: format!("{method} {path} HTTP/1.1\r\n"), has_host: false, body: Vec::new() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.has_host |= name == "host";
        self.head += &format!("{name}: {value}\r\n");
        self
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string().into_bytes();
        self.header("content-type", "application/json")
    }

    pub fn form(mut self, fields: &[(&str, &str)], file: Option<(&str, &[u8])>) -> Self {
        const BOUNDARY: &str = "0123456789-boundary";
        let mut body = Vec::new();
        if let Some((name, content)) = file {
            let head = format!(
                "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
            );
            body.extend(head.as_bytes());
            body.extend(content);
            body.extend(b"\r\n");
        }
        for (name, value) in fields {
            let part =
                format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend(part.as_bytes());
        }
        body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.body = body;
        self.header("content-type", &format!("multipart/form-data; boundary={BOUNDARY}"))
    }

    /// Head and body as they are sent.
    pub fn bytes(mut self, address: &str) -> Vec<u8> {
        if !self.has_host {
            self.head += &format!("host: {address}\r\n");
        }
        let length = self.body.len();
        let head = format!("{}connection: close\r\ncontent-length: {length}\r\n\r\n", self.head);
        [head.as_bytes(), &self.body].concat()
    }

    pub fn to(self, address: &str) -> Answer {
        self.try_to(address).unwrap()
    }

    /// `None` where the server was killed meanwhile.
    pub fn try_to(self, address: &str) -> Option<Answer> {
        let mut stream = connect(address)?;
        // A refusal may come before everything is sent.
        let _ = stream.write_all(&self.bytes(address));
        Answer::read(&mut stream)
    }
}

pub fn connect(address: &str) -> Option<TcpStream> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(stream)
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads until the server closes the connection. `None` where that comes too early.
    pub fn read(stream: &mut impl Read) -> Option<Self> {
        let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        let since = Instant::now();
        // What came before a connection broke is looked at all the same.
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
            assert!(since.elapsed() < PATIENCE, "no end: {}", String::from_utf8_lossy(&all));
        }
        let end = all.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(all[..end].to_vec()).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let body = all.split_off(end + 4);
        let mut answer = Self { status, headers, body };
        if answer.header("transfer-encoding").is_some() {
            answer.body = without_chunks(&answer.body)?;
        } else if let Some(length) = answer.header("content-length") {
            (answer.body.len() >= length.parse().ok()?).then_some(())?;
        }
        Some(answer)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Of server-sent events: their names and data.
    pub fn events(&self) -> Vec<(String, Value)> {
        let text = self.text();
        let read = |block: &str| {
            let (name, data) = block.strip_prefix("event: ")?.split_once("\ndata: ")?;
            Some((name.to_owned(), serde_json::from_str(data).unwrap()))
        };
        text.split("\n\n").filter_map(read).collect()
    }

    /// The code and the parameter of an error.
    #[track_caller]
    pub fn error(&self) -> (String, Option<String>) {
        let json = self.json();
        let error = json["error"].as_object().unwrap_or_else(|| panic!("no error: {json}"));
        assert!(error["message"].as_str().unwrap().len() > 10 && error["type"].is_string(), "{json}");
        (error["code"].as_str().unwrap().to_owned(), error["param"].as_str().map(str::to_owned))
    }
}

/// `None` where the last chunk is missing.
fn without_chunks(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend(body.get(end + 2..end + 2 + size)?);
        body = body.get(end + 4 + size..)?;
    }
}
