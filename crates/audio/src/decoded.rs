//! What decoders give out.

/// A piece of decoded sound at the codec's rate, one vector per channel.
#[derive(Debug, Default)]
pub(crate) struct DecodedPiece {
    /// Hertz.
    pub(crate) rate: u32,
    /// Samples of each channel, all of the same length.
    pub(crate) planes: Vec<Vec<f32>>,
    /// SeekIndex of the channel of low-frequency effects, which has no speech.
    pub(crate) low_frequency: Option<usize>,
}

impl DecodedPiece {
    pub(crate) fn frames(&self) -> usize {
        self.planes.first().map_or(0, Vec::len)
    }

    /// Drops frames at both ends.
    pub(crate) fn trim(&mut self, start: usize, end: usize) {
        for plane in &mut self.planes {
            plane.truncate(plane.len().saturating_sub(end));
            plane.drain(..start.min(plane.len()));
        }
    }

    pub(crate) fn truncate(&mut self, frames: usize) {
        for plane in &mut self.planes {
            plane.truncate(frames);
        }
    }

    /// Replaces the samples by `frames` of silence.
    pub(crate) fn silence(&mut self, frames: usize) {
        for plane in &mut self.planes {
            plane.clear();
            plane.resize(frames, 0.0);
        }
    }
}

/// The result of decoding a further piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeStep {
    /// There is a new piece, which may be empty.
    Piece,
    /// The recording has ended.
    End,
}
