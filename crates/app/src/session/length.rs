//! How long recordings are, according to their headers: cheap enough for a thousand
//! files, and not exact. A file whose header says nothing is opened by a player, so that
//! files which are no recordings fail when they are added and not hours later. The engine
//! has the last word.

mod headers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::{AudioTrack, ErrorCode, FILMS, Failure, JobId};

use super::Inner;
use super::queue_journal::Outputs;
use supervisor::player::Player;
use supervisor::recordings::has_ending;

/// Lengths that are read in one go before followers get an update.
const AT_ONCE: usize = 20;

/// The ending of a file without pictures that may have several sound tracks.
const MATROSKA_SOUND: &str = "mka";

/// The length of a recording before any of it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Length {
    #[default]
    NotAsked,
    /// Its header does not say, or in no way that is understood here.
    Unknown,
    Seconds(f64),
}

impl Length {
    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::NotAsked | Self::Unknown => None,
        }
    }
}

/// Of what the file's header says; most of what is in use can be read.
pub fn of(file: &Path) -> Length {
    match headers::seconds(file) {
        Ok(Some(seconds)) => Length::Seconds(seconds),
        // What is wrong with a file is best said by what decodes it.
        Ok(None) | Err(_) => Length::Unknown,
    }
}

/// What a file says of itself before any of it is decoded.
type Looked = (Length, Vec<AudioTrack>);

/// The same, with the audio tracks of those that may have several; and of those that say nothing,
/// whether they can be decoded at all.
///
/// # Errors
/// Where a file is certainly no recording.
fn look(file: &Path, prober: &mut Option<&Player>) -> Result<Looked, Failure> {
    use ErrorCode as Code;
    let length = of(file);
    // A header says how long the pictures are, and not that there is no sound.
    let is_in_doubt =
        length == Length::Unknown || has_ending(file, FILMS) || has_ending(file, &[MATROSKA_SOUND]);
    let unknown = || Ok((length, Vec::new()));
    let Some(process) = prober.filter(|_| is_in_doubt) else { return unknown() };
    match process.probe(file) {
        Ok(probed) => {
            let told = probed.seconds.filter(|_| length == Length::Unknown).map(Length::Seconds);
            Ok((told.unwrap_or(length), probed.tracks))
        }
        Err(failure) => match failure.code {
            Code::UnknownFormat
            | Code::FileIncomplete
            | Code::NoAudioTrack
            | Code::UnsupportedCodec
            | Code::NeedsFfmpeg
            | Code::FileEmpty
            | Code::AudioBroken => Err(failure),
            // A player that dies is no judge; one that waits for a disk would do
            // so for each of the others.
            Code::PlayerFailed => {
                *prober = None;
                unknown()
            }
            // A disk may be back when its turn comes.
            _ => unknown(),
        },
    }
}

/// Asks for the lengths of what is in the queue, as long as the session lives.
pub async fn run(inner: Arc<Inner>) {
    loop {
        let some: Vec<(JobId, PathBuf)> = {
            let shared = inner.lock();
            let unmeasured = shared.queue.unmeasured().take(AT_ONCE);
            unmeasured.map(|entry| (entry.id, entry.file.clone())).collect()
        };
        if inner.lock().closed {
            return;
        }
        let prober = inner.prober.get().cloned();
        if some.is_empty() {
            // An idle player need not hold memory.
            let _ = tokio::task::spawn_blocking(move || prober.map(|prober| prober.rest())).await;
            inner.unmeasured.notified().await;
            continue;
        }
        let ids: Vec<JobId> = some.iter().map(|(id, _)| *id).collect();
        let asked = tokio::task::spawn_blocking(move || {
            let mut prober = prober.as_deref();
            some.iter().map(|(_, file)| look(file, &mut prober)).collect()
        });
        let lengths: Vec<_> =
            asked.await.unwrap_or_else(|_| vec![Ok((Length::Unknown, Vec::new())); ids.len()]);
        inner.learn(ids.into_iter().zip(lengths));
        if inner.lock().queue.is_shortest_first() {
            inner.wake.notify_one();
        }
    }
}

impl Inner {
    fn learn(&self, looked: impl Iterator<Item = (JobId, Result<Looked, Failure>)>) {
        let mut journal = self.journal();
        let refused: Vec<(JobId, Outputs)> = self.change(|shared| {
            let mut refused = Vec::new();
            for (id, looked) in looked {
                match looked {
                    Ok((length, tracks)) => shared.queue.measured(id, length, tracks),
                    Err(failure) => {
                        shared.queue.measured(id, Length::Unknown, Vec::new());
                        if shared.queue.refuse(id, failure) {
                            refused.extend(shared.queue.get(id).map(|entry| (id, Outputs::of(entry))));
                        }
                    }
                }
            }
            refused
        });
        for (id, outputs) in refused {
            journal.set_aside(id, &outputs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/sample.flac");

    /// Of the sample, from tests/data/sample.json.
    const SECONDS: f64 = 7.758;

    /// The sample in another form, if ffmpeg is there and knows that one.
    fn converted(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
        let file = folder.join(name);
        let ffmpeg = std::process::Command::new("ffmpeg")
            .args(["-v", "error", "-i", SAMPLE])
            .args(options)
            .arg(&file)
            .output();
        ffmpeg.is_ok_and(|it| it.status.success()).then_some(file)
    }

    #[test]
    fn headers_say_how_long_recordings_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = vec![PathBuf::from(SAMPLE)];
        for (name, options) in [
            ("a.wav", &[][..]),
            ("a.aiff", &[]),
            ("variable.mp3", &["-q:a", "4"]),
            ("no count.mp3", &["-b:a", "96k", "-write_xing", "0", "-id3v2_version", "0"]),
            ("slow.mp3", &["-ar", "16000", "-b:a", "32k"]),
            ("a.m4a", &[]),
            ("index at the front.mp4", &["-movflags", "+faststart"]),
            ("a.ogg", &["-c:a", "libvorbis"]),
            ("a.opus", &[]),
            ("a.mka", &[]),
            ("a.webm", &["-c:a", "libopus"]),
        ] {
            match converted(folder.path(), name, options) {
                Some(file) => files.push(file),
                None => println!("skipped: there is no ffmpeg that makes {name}"),
            }
        }
        for file in files {
            let found = of(&file).seconds().unwrap_or_else(|| panic!("{} says nothing", file.display()));
            // Codecs pad to whole frames.
            assert!((found - SECONDS).abs() < 0.1, "{}: {found} s", file.display());
        }
    }

    #[test]
    fn what_says_nothing_or_lies_is_of_unknown_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        let sample = std::fs::read(SAMPLE).unwrap();
        let endless = [&b"\x00\x00\x00\x08ftyp"[..], &b"\x00\x00\x00\x08free".repeat(5000)].concat();
        for bytes in [
            Vec::new(),
            b"Dear Sir, ".repeat(500),
            sample[..20].to_vec(),
            b"RIFF\xff\xff\xff\xffWAVE".to_vec(),
            b"RIFF\x00\x00\x00\x00WAVEdata\x08\x00\x00\x00\x00\x00\x00\x00".to_vec(),
            b"\x00\x00\x00\x08ftyp\xff\xff\xff\xffmoov".to_vec(),
            b"\x00\x00\x00\x08ftyp\x00\x00\x00\x01moov\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
            endless,
            b"\x1a\x45\xdf\xa3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
            b"ID3\x04\x00\x00\x7f\x7f\x7f\x7f\xff\xfb".to_vec(),
            [&b"OggS\x00\x02"[..], &[0; 20], &b"\x01\x1e\x01vorbis"[..]].concat(),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(of(&path), Length::Unknown, "{:?}", bytes.escape_ascii().take(60).collect::<Vec<_>>());
        }
        assert_eq!(of(&folder.path().join("gone.wav")), Length::Unknown);
    }
}
