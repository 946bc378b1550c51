//! Frames: whatever is cut, garbled or foreign gives an error, never a panic
//! and never an allocation of the size that a garbled length claims.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, helpers included")]

use std::io::{self, Cursor, Read};

use wire::{Command, Event, FilePath, FrameError, Job, MAX_FRAME_BYTES, read_frame, write_frame};

fn framed(messages: &[Command]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        write_frame(&mut bytes, message).unwrap();
    }
    bytes
}

fn commands() -> Vec<Command> {
    vec![
        Command::Hello { protocol: 7 },
        Command::Transcribe(Box::new(Job::new(3, "/tmp/Gespräch.m4a", "/models/base"))),
        Command::Cancel { id: 3 },
    ]
}

#[test]
fn messages_come_out_in_the_order_they_went_in_and_then_the_stream_ends() {
    let mut input = Cursor::new(framed(&commands()));
    for expected in commands() {
        assert_eq!(read_frame::<Command>(&mut input).unwrap(), Some(expected));
    }
    assert_eq!(read_frame::<Command>(&mut input).unwrap(), None);
    assert_eq!(read_frame::<Command>(&mut input).unwrap(), None, "an ended stream stays ended");
}

#[test]
fn a_stream_cut_at_any_byte_gives_whole_messages_and_then_an_error() {
    let bytes = framed(&commands());
    let ends: Vec<usize> = (0..=3).map(|n| framed(&commands()[..n]).len()).collect();
    for cut in 0..bytes.len() {
        let mut input = Cursor::new(&bytes[..cut]);
        let mut whole = 0;
        let error = loop {
            match read_frame::<Command>(&mut input) {
                Ok(Some(_)) => whole += 1,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        assert_eq!(whole, ends.iter().filter(|end| **end <= cut).count() - 1, "cut at {cut}");
        match error {
            None => assert!(ends.contains(&cut), "cut at {cut}: a broken message went unnoticed"),
            Some(FrameError::Io(e)) => assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof, "cut at {cut}"),
            Some(other) => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn any_single_flipped_bit_gives_a_message_or_an_error() {
    let bytes = framed(&commands()[..2]);
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut garbled = bytes.clone();
            garbled[position] ^= 1 << bit;
            let mut input = Cursor::new(garbled);
            while let Ok(Some(_)) = read_frame::<Command>(&mut input) {}
        }
    }
}

/// Ends after one megabyte; remembers the largest piece it was asked for.
struct Short {
    given: usize,
    largest_request: usize,
}

impl Read for Short {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.largest_request = self.largest_request.max(buffer.len());
        let count = buffer.len().min((1 << 20) - self.given);
        buffer[..count].fill(b' ');
        self.given += count;
        Ok(count)
    }
}

#[test]
fn a_garbled_length_allocates_only_what_arrives() {
    // Just below the maximum, so that the check of the length lets it pass.
    let length = (MAX_FRAME_BYTES - 1).to_le_bytes();
    let mut rest = Short { given: 0, largest_request: 0 };
    let result = read_frame::<Event>(&mut Cursor::new(length).chain(&mut rest));
    assert!(matches!(result, Err(FrameError::Io(_))), "{result:?}");
    assert!(rest.largest_request < 16 << 20, "asked for {} bytes at once", rest.largest_request);
}

#[test]
fn foreign_input_is_refused() {
    let too_long = (MAX_FRAME_BYTES + 1).to_le_bytes().to_vec();
    let not_json = [&5u32.to_le_bytes()[..], b"hello"].concat();
    let other_json = framed_text(r#"{"command":"make_coffee"}"#);
    let wrong_type = framed_text(r#"{"command":"ping","nonce":"seven"}"#);
    let not_utf8 = [&2u32.to_le_bytes()[..], &[0xff, 0xfe]].concat();
    let empty = 0u32.to_le_bytes().to_vec();
    for (name, bytes, too_big) in [
        ("a length beyond the maximum", too_long, true),
        ("a terminal's text", b"steno --help\n".to_vec(), true),
        ("a message that is no JSON", not_json, false),
        ("an unknown command", other_json, false),
        ("a number that is none", wrong_type, false),
        ("bytes that are no UTF-8", not_utf8, false),
        ("an empty message", empty, false),
    ] {
        match read_frame::<Command>(&mut Cursor::new(bytes)) {
            Err(FrameError::TooLong(_)) if too_big => {}
            Err(FrameError::Malformed(_)) if !too_big => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}

fn framed_text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Gives one byte at a time and an `Interrupted` before each, as a signal does.
struct Trickle<R>(R, bool);

impl<R: Read> Read for Trickle<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = buffer.len().min(1);
        self.0.read(&mut buffer[..count])
    }
}

#[test]
fn messages_survive_a_slow_and_interrupted_pipe() {
    let mut input = Trickle(Cursor::new(framed(&commands())), false);
    for expected in commands() {
        assert_eq!(read_frame::<Command>(&mut input).unwrap(), Some(expected));
    }
    assert_eq!(read_frame::<Command>(&mut input).unwrap(), None);
}

#[test]
fn a_path_of_any_bytes_arrives_as_it_was() {
    let mut paths: Vec<FilePath> =
        ["", "/a b/ü.wav", "日本語.flac", "{\"raw\":[1]}", "line\nbreak"].map(FilePath::from).into();
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        let every_byte = (1..=255).collect();
        for bytes in [vec![0xff], b"caf\xe9.mp3".to_vec(), every_byte] {
            paths.push(FilePath::from(std::ffi::OsString::from_vec(bytes)));
        }
    }
    for path in paths {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &path).unwrap();
        assert_eq!(read_frame::<FilePath>(&mut Cursor::new(bytes)).unwrap(), Some(path));
    }
}
