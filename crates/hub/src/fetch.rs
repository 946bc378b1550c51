use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{StatusCode, Url};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant as Deadline, timeout_at};

use crate::client::{Client, Reply};
use crate::connections::Purpose;
use crate::digest::{Digest, Hashes};
use crate::meter::{Meter, TransferStage};
use crate::pull::MARGIN;
use crate::retry::{Retries, Trouble};
use crate::{Control, Error, Filling, platform, plausible};

/// Pieces that may wait for the disk while the network goes on.
const AHEAD: usize = 16;

/// A file to get.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub url: Url,
    pub name: &'a str,
    pub why: Purpose,
    /// Where it grows. What lies there already is gone on from.
    pub part: PathBuf,
    pub size: Option<u64>,
    /// All of them must hold.
    pub digests: &'a [Digest],
}

/// Gets a file, however often the connection breaks, and verifies it on disk.
/// The part is left where it is: complete and right, or to be gone on from.
pub(crate) async fn fetch(
    client: &Client,
    file: &Piece<'_>,
    control: &Control,
    meter: &mut Meter<'_>,
) -> Result<Hashes, Error> {
    let mut retries = Retries::new(&client.settings.limits, control);
    // Bytes of another day may be wrong without the server's being to blame.
    let mut has_earlier = length(&file.part) > 0;
    loop {
        control.ready().await?;
        meter.stage(TransferStage::Download, Some(file.name));
        let before = length(&file.part);
        let outcome = match file.size {
            Some(size) if size == before && before > 0 => Ok(()),
            _ => attempt(client, file, control, meter).await,
        };
        if length(&file.part).saturating_sub(before) >= client.settings.limits.least_bytes {
            retries.progressed();
        }
        if let Err(trouble) = outcome {
            if control.is_paused() {
                meter.stage(TransferStage::Wait, Some(file.name));
            }
            let mut tell = |error: &Error, wait| meter.wait(&error.message(), wait);
            retries.after(trouble, &mut tell).await?;
            continue;
        }
        meter.stage(TransferStage::Verify, Some(file.name));
        let hashes = hashes(&file.part, file.digests, control).await?;
        let Err(wrong) = check(file, &hashes) else { return Ok(hashes) };
        meter.take_back(hashes.size);
        discard(&file.part)?;
        if !std::mem::take(&mut has_earlier) {
            return Err(wrong);
        }
    }
}

/// Where the tag is kept by which the server knows the file again.
fn tag_path(part: &Path) -> PathBuf {
    part.with_extension("tag")
}

pub(crate) fn discard(part: &Path) -> Result<(), Error> {
    for path in [part, &tag_path(part)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(path, error)),
            _ => {}
        }
    }
    Ok(())
}

/// Forgets the tag of a part that is complete.
pub(crate) fn forget_tag(part: &Path) {
    // One that stays behind is never looked at.
    let _ = fs::remove_file(tag_path(part));
}

pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// One request for the missing part. `Ok` where the file is complete.
async fn attempt(
    client: &Client,
    file: &Piece<'_>,
    control: &Control,
    meter: &mut Meter<'_>,
) -> Result<(), Trouble> {
    let mut have = length(&file.part);
    if file.size.is_some_and(|size| have > size) {
        meter.take_back(have);
        discard(&file.part)?;
        have = 0;
    }
    let reply = tokio::select! {
        reply = client.get(&file.url, range(file, have), &file.why) => reply?,
        () = control.interrupted() => return Err(Trouble::Interrupted),
    };
    let start = match reply.status() {
        StatusCode::PARTIAL_CONTENT => part_from(&reply, file, have)?,
        // It has nothing from there on: what lies here is no part of it.
        StatusCode::RANGE_NOT_SATISFIABLE => {
            meter.take_back(have);
            discard(&file.part)?;
            let found = have;
            let promised = file.size.unwrap_or(0);
            return Err(Trouble::passing(Error::WrongSize { file: file.name.into(), promised, found }));
        }
        // All of it: the first time, or because it changed, or since the
        // server knows no ranges.
        _ => 0,
    };
    if start == 0 {
        meter.take_back(have);
        whole_size(&reply, file)?;
        keep_tag(&reply, &file.part)?;
    }
    let end = match body(client, reply, file, start, control, meter).await {
        Err(trouble) if is_endless(file, &trouble) => {
            meter.take_back(length(&file.part));
            discard(&file.part)?;
            return Err(trouble);
        }
        other => other?,
    };
    match file.size {
        Some(size) if end < size => Err(Trouble::passing(Error::Unreachable {
            host: file.url.host_str().unwrap_or_default().into(),
            problem: "the connection ended early".into(),
        })),
        _ => Ok(()),
    }
}

/// Whether it ended a file whose size nobody stated. What came of it may be a
/// beginning of nothing, and only takes space.
fn is_endless(file: &Piece, trouble: &Trouble) -> bool {
    let too_much = |error: &Error| matches!(error, Error::Implausible { .. } | Error::DiskFull { .. });
    file.size.is_none() && trouble.is_final_with(too_much)
}

/// Fails where a file of unstated size must not become `bytes` long: it would be
/// larger than any of its name, or fill the disk, which has `free` bytes left.
fn may_become(file: &Piece, bytes: u64, free: Option<u64>) -> Result<(), Error> {
    if bytes > plausible::most(file.name) {
        let host = file.url.host_str().unwrap_or_default();
        return Err(plausible::too_large(host, file.name, None));
    }
    match free {
        Some(free) if free < MARGIN => {
            let folder = file.part.parent().unwrap_or(&file.part).into();
            Err(Error::DiskFull { during: Filling::Download, folder, needed: Some(MARGIN), free: Some(free) })
        }
        _ => Ok(()),
    }
}

fn range(file: &Piece, have: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if have == 0 {
        return headers;
    }
    if let Ok(value) = HeaderValue::from_str(&format!("bytes={have}-")) {
        headers.insert(RANGE, value);
    }
    let tag = fs::read(tag_path(&file.part)).ok().and_then(|tag| HeaderValue::from_bytes(&tag).ok());
    if let Some(tag) = tag {
        headers.insert(IF_RANGE, tag);
    }
    headers
}

/// Where a partial answer begins: where it was asked to, in a file of the
/// promised size.
fn part_from(reply: &Reply, file: &Piece, have: u64) -> Result<u64, Trouble> {
    let text = reply.header(CONTENT_RANGE).unwrap_or_default();
    let range = text.strip_prefix("bytes ").and_then(|text| text.split_once('/'));
    let start = range.and_then(|(range, _)| range.split_once('-')?.0.parse::<u64>().ok());
    let total = range.and_then(|(_, total)| total.parse::<u64>().ok());
    if let (Some(promised), Some(found)) = (file.size, total)
        && promised != found
    {
        return Err(Error::WrongSize { file: file.name.into(), promised, found }.into());
    }
    match start {
        Some(start) if start == have => Ok(start),
        _ => Err(Error::Unreachable {
            host: reply.url.host_str().unwrap_or_default().into(),
            problem: format!("it was asked for what follows byte {have} and sends \"{text}\""),
        }
        .into()),
    }
}

fn whole_size(reply: &Reply, file: &Piece) -> Result<(), Trouble> {
    let found: Option<u64> = reply.header(CONTENT_LENGTH).and_then(|text| text.parse().ok());
    match (file.size, found) {
        (Some(promised), Some(found)) if promised != found => {
            Err(Error::WrongSize { file: file.name.into(), promised, found }.into())
        }
        // The first to say it.
        (None, Some(found)) => {
            let host = reply.url.host_str().unwrap_or_default();
            Ok(plausible::size(host, file.name, found)?)
        }
        _ => Ok(()),
    }
}

/// Only a tag that stands for the very bytes may go with a range.
fn keep_tag(reply: &Reply, part: &Path) -> Result<(), Error> {
    let path = tag_path(part);
    match reply.header(ETAG).filter(|tag| tag.starts_with('"')) {
        Some(tag) => fs::write(&path, tag).map_err(|error| Error::io(&path, error)),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&path, error)),
            _ => Ok(()),
        },
    }
}

/// Writes the body behind `start`; returns the length of the file then. What
/// came is on disk however this ends.
async fn body(
    client: &Client,
    mut reply: Reply,
    file: &Piece<'_>,
    start: u64,
    control: &Control,
    meter: &mut Meter<'_>,
) -> Result<u64, Trouble> {
    let mut writer = Writer::open(&file.part, start)?;
    let mut end = start;
    let received = receive(client, &mut reply, &mut writer, &mut end, file, control, meter).await;
    // What the disk says goes before what the network says.
    writer.close().await.map_err(|error| Error::io(&file.part, error))?;
    received.map(|()| end)
}

async fn receive(
    client: &Client,
    reply: &mut Reply,
    writer: &mut Writer,
    end: &mut u64,
    file: &Piece<'_>,
    control: &Control,
    meter: &mut Meter<'_>,
) -> Result<(), Trouble> {
    let limits = &client.settings.limits;
    let mut window = (Instant::now(), 0);
    loop {
        let deadline = Deadline::from_std(window.0 + limits.window);
        let chunk = tokio::select! {
            chunk = timeout_at(deadline, reply.chunk()) => chunk,
            () = control.interrupted() => return Err(Trouble::Interrupted),
        };
        if let Ok(chunk) = chunk {
            let Some(bytes) = chunk? else { return Ok(()) };
            let count = bytes.len() as u64;
            if let Some(promised) = file.size.filter(|size| *end + count > *size) {
                let found = *end + count;
                return Err(Error::WrongSize { file: file.name.into(), promised, found }.into());
            }
            if file.size.is_none() {
                may_become(file, end.saturating_add(count), platform::free_space(&file.part))?;
            }
            *end += count;
            window.1 += count;
            meter.add(count);
            // The disk has trouble, which closing the writer will tell.
            if writer.write(bytes).await.is_err() {
                return Ok(());
            }
        }
        if window.0.elapsed() >= limits.window {
            if window.1 < limits.least_bytes {
                let host = reply.url.host_str().unwrap_or_default().to_owned();
                return Err(Trouble::passing(Error::TooSlow { host, window: limits.window }));
            }
            window = (Instant::now(), 0);
        }
    }
}

/// Writes on a thread of its own, so that a slow disk does not close the
/// connection and a slow network does not hold up the disk.
struct Writer {
    sender: mpsc::Sender<Vec<u8>>,
    task: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Goes on behind the first `start` bytes.
    fn open(path: &Path, start: u64) -> Result<Self, Error> {
        let open = || -> io::Result<File> {
            let file = OpenOptions::new().append(true).create(true).open(path)?;
            if file.metadata()?.len() > start {
                file.set_len(start)?;
            }
            Ok(file)
        };
        let mut file = open().map_err(|error| Error::io(path, error))?;
        let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(AHEAD);
        let task = spawn_blocking(move || {
            while let Some(piece) = pieces.blocking_recv() {
                file.write_all(&piece)?;
            }
            Ok(())
        });
        Ok(Self { sender, task })
    }

    async fn write(&self, piece: Vec<u8>) -> Result<(), ()> {
        self.sender.send(piece).await.map_err(drop)
    }

    async fn close(self) -> io::Result<()> {
        drop(self.sender);
        self.task.await.map_err(io::Error::other)?
    }
}

async fn hashes(part: &Path, digests: &[Digest], control: &Control) -> Result<Hashes, Error> {
    let also_sha1 = digests.iter().any(|digest| matches!(digest, Digest::Sha1(_)));
    let (path, control) = (part.to_owned(), control.clone());
    let hashed = spawn_blocking(move || {
        // A file of no bytes was never opened for writing.
        OpenOptions::new().append(true).create(true).open(&path)?.sync_all()?;
        Hashes::of_file(&path, also_sha1, &mut |_| control.is_cancelled())
    });
    let hashed = hashed.await.map_err(|error| Error::io(part, io::Error::other(error)))?;
    hashed.map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => Error::Cancelled,
        _ => Error::io(part, error),
    })
}

fn check(file: &Piece, hashes: &Hashes) -> Result<(), Error> {
    if let Some(promised) = file.size.filter(|size| *size != hashes.size) {
        return Err(Error::WrongSize { file: file.name.into(), promised, found: hashes.size });
    }
    match file.digests.iter().find(|digest| !hashes.are(digest)) {
        Some(digest) => Err(Error::Corrupt {
            file: file.name.into(),
            promised: digest.hex().into(),
            found: hashes.like(digest).into(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_stated_size_leaves_room_on_the_disk() {
        let file = |name| Piece {
            url: Url::parse("http://hub.invalid/us/model").unwrap(),
            name,
            why: Purpose::EngineList,
            part: "models/part".into(),
            size: None,
            digests: &[],
        };
        let (weights, json) = (file("model.safetensors"), file("config.json"));
        for (file, bytes, free, fits) in [
            (&weights, 10 << 30, Some(MARGIN), true),
            (&weights, 10 << 30, None, true),
            (&weights, 1, Some(MARGIN - 1), false),
            (&weights, u64::MAX, None, false),
            (&json, 1 << 20, Some(MARGIN), true),
            (&json, 10 << 30, Some(100 << 30), false),
        ] {
            assert_eq!(may_become(file, bytes, free).is_ok(), fits, "{} {bytes} {free:?}", file.name);
        }
    }
}
