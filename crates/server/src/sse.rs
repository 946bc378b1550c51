//! Server-sent events (the HTML standard, section 9.2).

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;

/// Between two comments on a stream on which nothing happens, so that nothing between client and server takes the
/// connection for dead.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that wait for a slow client.
const WAITING: usize = 16;

pub fn channel() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(WAITING)
}

pub fn event(name: &str, data: &impl Serialize) -> Bytes {
    // JSON has no line breaks outside of strings, and escapes them within.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// An event that names itself, in its field `event`. No text comes before that field, so that none is taken for it.
pub fn named(event: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_default();
    let name =
        data.split_once("\"event\":\"").and_then(|(_, rest)| rest.split('"').next()).unwrap_or("message");
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

pub fn comment() -> Bytes {
    Bytes::from_static(b": still here\n\n")
}
