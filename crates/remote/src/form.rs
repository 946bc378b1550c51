//! A form with a recording that is read from the disk while it is sent.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use wire::{ErrorCode, Failure};

const PIECE: usize = 64 << 10;
/// Pieces that were read and wait for the network.
const WAITING: usize = 4;

/// The body of a request: the fields, then the recording.
#[derive(Debug)]
pub struct Form {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
    sent: Arc<AtomicU64>,
}

/// A form that is ready to be sent.
#[derive(Debug)]
pub struct Prepared {
    pub body: Form,
    /// The value of the header `Content-Type`.
    pub kind: String,
    /// Bytes of the body.
    pub bytes: u64,
    /// How many of them were sent.
    pub sent: Arc<AtomicU64>,
}

impl Form {
    /// Opens the recording. Waits for the disk; must be called within a tokio runtime.
    pub fn prepare(fields: &[(&str, String)], file: &Path, boundary: &str) -> Result<Prepared, Failure> {
        let failure = |error: io::Error| {
            let code = match error.kind() {
                io::ErrorKind::NotFound => ErrorCode::FileNotFound,
                _ => ErrorCode::FileUnreadable,
            };
            Failure::new(code, format!("The recording can't be read ({error}).")).file(file)
        };
        let mut recording = File::open(file).map_err(failure)?;
        let length = recording.metadata().map_err(failure)?.len();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (head, tail) = (head(fields, &name, boundary), format!("\r\n--{boundary}--\r\n"));
        let bytes = head.len() as u64 + length + tail.len() as u64;
        let (to_body, pieces) = mpsc::channel(WAITING);
        tokio::task::spawn_blocking(move || {
            let _ = read(&mut recording, length, head.into(), tail.into(), &to_body);
        });
        let sent = Arc::new(AtomicU64::new(0));
        let body = Self { pieces, left: bytes, sent: Arc::clone(&sent) };
        Ok(Prepared { body, kind: format!("multipart/form-data; boundary={boundary}"), bytes, sent })
    }
}

fn head(fields: &[(&str, String)], name: &str, boundary: &str) -> String {
    // As browsers do it (the HTML standard, "multipart/form-data").
    let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut head = String::new();
    for (field, value) in fields {
        head +=
            &format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
    }
    head + &format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    )
}

/// Sends everything; an error where nobody takes it any more.
fn read(
    recording: &mut File,
    length: u64,
    head: Bytes,
    tail: Bytes,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), mpsc::error::SendError<io::Result<Bytes>>> {
    pieces.blocking_send(Ok(head))?;
    let mut left = length;
    while left > 0 {
        let mut piece = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
        match recording.read(&mut piece) {
            // It was longer when its length was announced.
            Ok(0) => return pieces.blocking_send(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                piece.truncate(count);
                left -= count as u64;
                pieces.blocking_send(Ok(piece.into()))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return pieces.blocking_send(Err(error)),
        }
    }
    pieces.blocking_send(Ok(tail))
}

impl Body for Form {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.pieces.poll_recv(context).map(|piece| {
            piece.map(|piece| {
                let piece = piece?;
                self.left = self.left.saturating_sub(piece.len() as u64);
                self.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                Ok(Frame::data(piece))
            })
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
