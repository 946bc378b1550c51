use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

/// Far above any real message (a day of speech is a few megabytes of JSON),
/// far below what a garbled length would make us allocate.
pub const MAX_FRAME_BYTES: u32 = 256 << 20;

/// Why a message could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The pipe failed or ended within a message.
    #[error("the stream between host and engine broke: {0}")]
    Io(#[from] io::Error),
    /// The announced length, in bytes, is above [`MAX_FRAME_BYTES`].
    #[error("a message of {0} bytes is longer than any real one: the stream is garbled")]
    TooLong(u32),
    /// The message is not the JSON that was expected.
    #[error("a message could not be read: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Writes one message: its length as 4 bytes, little-endian, then JSON.
/// Flushes, since the other side waits for whole messages.
///
/// # Errors
///
/// Fails when the stream does, or for a message above [`MAX_FRAME_BYTES`].
pub fn write_frame(out: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong(length));
    }
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&body)?;
    out.flush()?;
    Ok(())
}

/// Reads one message; `None` where the stream ends between two messages.
///
/// # Errors
///
/// Fails when the stream does, when it ends within a message, and for a message that is
/// too long or not a `T`.
pub fn read_frame<T: DeserializeOwned>(input: &mut impl Read) -> Result<Option<T>, FrameError> {
    let mut length = [0; 4];
    let first = loop {
        match input.read(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    input.read_exact(&mut length[first..])?;
    let length = u32::from_le_bytes(length);
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong(length));
    }
    // Grows with what arrives, so that a garbled length below the maximum does
    // not allocate memory for bytes that never come.
    let mut body = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() < length as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(Some(serde_json::from_slice(&body)?))
}
