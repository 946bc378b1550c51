/// A piece of decoded sound as the codec gave it, one vector per channel.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// Hertz.
    pub(crate) rate: u32,
    pub(crate) planes: Vec<Vec<f32>>,
    /// The plane of low-frequency effects, which carries no speech.
    pub(crate) low_frequency: Option<usize>,
}

impl Decoded {
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

    /// Makes it `frames` of silence in the form it has.
    pub(crate) fn silence(&mut self, frames: usize) {
        for plane in &mut self.planes {
            plane.clear();
            plane.resize(frames, 0.0);
        }
    }
}

/// Where a decoder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is a new piece, perhaps an empty one.
    Piece,
    End,
}
