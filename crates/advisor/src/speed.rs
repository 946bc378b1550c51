//! How fast this machine is, where it was tried: what `steno models probe`
//! measures, and what follows from it for other models.

use std::path::PathBuf;

use memory::{Network, Precision};
use serde::{Deserialize, Serialize};
use transcript::save::{Existing, write_file};
use wire::{ErrorCode, Failure};

use config::folders;

const FILE: &str = "speeds.json";

/// Text tokens of a window of ordinary speech.
pub const TOKENS: u64 = 100;

/// Time that a weight of the decoder takes per token, in units of what one of
/// the encoder takes per position: a token alone reads every weight once and
/// does nothing else with it. From the table of CPU measurements in
/// docs/measurements.md, where it is 9 to 11 for tiny, base and small.
const DECODER_WEIGHT: u64 = 10;

const SECONDS_OF_A_WINDOW: f64 = 30.0;

/// Time in which the decoder learns a window, in times of hearing it with all tokens at once: between the rows of the table
/// of adapters in docs/measurements.md.
const LEARNING: f64 = 2.7;
/// The same where the encoder learns as well.
const LEARNING_WITH_ENCODER: f64 = 9.0;

/// One model, tried on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// As [`crate::fit::DeviceMemory`] calls it.
    pub device: String,
    /// How its weights were held.
    pub precision: Precision,
    /// Of the network that was measured.
    pub dimensions: Network,
    /// Seconds of recording per second.
    pub speed: f64,
    /// Windows beyond which more together are no faster; `None` where that was not measured.
    #[serde(default)]
    pub useful_batch: Option<u32>,
}

/// What was measured on this machine so far; a file that can't be read counts
/// as none.
pub fn measured() -> Vec<Measured> {
    let text = file().and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Remembers a measurement, in place of an earlier one of the same model on the
/// same device.
///
/// # Errors
/// `OutputUnwritable` where the file can't be written.
pub fn remember(new: Measured) -> Result<(), Failure> {
    let Some(file) = file() else { return Ok(()) };
    let mut all = measured();
    let is_same = |it: &Measured| {
        (&it.device, it.precision, it.dimensions) == (&new.device, new.precision, new.dimensions)
    };
    all.retain(|it| !is_same(it));
    all.push(new);
    let unwritable = |problem: String| {
        Failure::new(ErrorCode::OutputUnwritable, format!("The measured speed can't be saved ({problem})."))
            .file(file.as_path())
            .remedy("Check the permissions of its folder.")
    };
    let text = serde_json::to_vec_pretty(&all).map_err(|error| unwritable(error.to_string()))?;
    if let Some(folder) = file.parent() {
        folders::make_private(folder).map_err(|error| unwritable(error.to_string()))?;
    }
    write_file(&file, Existing::Replace, |out| out.write_all(&text))
        .map_err(|error| unwritable(error.message()))
}

fn file() -> Option<PathBuf> {
    Some(folders::steno_state()?.join(FILE))
}

/// Windows that are worth decoding together on a device, by the model nearest in size that was
/// tried there. `None` where none was.
pub fn useful_batch(
    measured: &[Measured],
    device: &str,
    precision: Precision,
    dimensions: &Network,
) -> Option<u32> {
    let tried: Vec<_> = measured.iter().filter(|it| it.useful_batch.is_some()).cloned().collect();
    nearest(&tried, device, precision, dimensions)?.useful_batch
}

/// What a model will do on a device, by the measured model nearest in size, in
/// the same precision where there is one: weights in fewer bits are widened as
/// they are used, which changes little. `None` where nothing was measured.
pub fn predict(
    measured: &[Measured],
    device: &str,
    precision: Precision,
    dimensions: &Network,
) -> Option<f64> {
    let nearest = nearest(measured, device, precision, dimensions)?;
    Some(nearest.speed * ratio(nearest, dimensions))
}

/// Seconds that adapters of a Whisper model take to learn a window of 30 s once on a device, from how fast it transcribes.
/// With `in_encoder`, those of the encoder learn too. `None` where nothing was measured.
pub fn to_learn(measured: &[Measured], device: &str, dimensions: &Network, in_encoder: bool) -> Option<f64> {
    let transcribing = SECONDS_OF_A_WINDOW / predict(measured, device, Precision::F32, dimensions)?;
    // All tokens of a window are learnt at once, as positions of the encoder are.
    let share = dimensions.work(TOKENS, 1) as f64 / cost(dimensions) as f64;
    let learning = if in_encoder { LEARNING_WITH_ENCODER } else { LEARNING };
    Some(learning * share * transcribing)
}

fn nearest<'a>(
    measured: &'a [Measured],
    device: &str,
    precision: Precision,
    dimensions: &Network,
) -> Option<&'a Measured> {
    measured.iter().filter(|it| it.device == device).min_by(|a, b| {
        let far = |it: &Measured| (it.precision != precision, ratio(it, dimensions).ln().abs());
        let (a, b) = (far(a), far(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

/// Work of what was measured, in works of another network.
fn ratio(measured: &Measured, dimensions: &Network) -> f64 {
    cost(&measured.dimensions) as f64 / cost(dimensions) as f64
}

/// Work for a window, in multiplications by a weight of the encoder.
pub(crate) fn cost(of: &Network) -> u64 {
    of.work(TOKENS, DECODER_WEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of docs/measurements.md: seconds for a window and 100 tokens.
    #[test]
    fn one_model_tells_of_the_others() {
        let of = |name: &str, seconds: f64| Measured {
            device: "the CPU".into(),
            precision: Precision::F32,
            dimensions: Network::of_public(name).unwrap(),
            speed: 30.0 / seconds,
            useful_batch: None,
        };
        let (tiny, base, small) = (of("tiny", 0.99), of("base", 1.69), of("small", 4.94));
        for (from, to) in [(&tiny, &base), (&base, &small), (&small, &base), (&tiny, &small)] {
            let predicted =
                predict(std::slice::from_ref(from), "the CPU", Precision::F32, &to.dimensions).unwrap();
            let error = predicted / to.speed - 1.0;
            assert!(error.abs() < 0.45, "{predicted:.1} for {:.1}", to.speed);
        }
        // The nearest counts.
        let both = [tiny, small.clone()];
        assert_eq!(predict(&both, "the CPU", Precision::F32, &small.dimensions), Some(small.speed));
        assert_eq!(predict(&both, "the CPU", Precision::Q8_0, &small.dimensions), Some(small.speed));
        assert_eq!(predict(&both, "a card", Precision::F32, &small.dimensions), None);
        // One frame of Parakeet stands for four positions of Whisper.
        let parakeet = Network::of_public("parakeet-tdt-0.6b-v3").unwrap();
        assert!(cost(&parakeet) < cost(&small.dimensions));
    }

    /// A machine of docs/measurements.md: seconds for a window and 110 tokens, and to learn one with all
    /// activations kept or computed again.
    #[test]
    fn how_long_learning_takes_follows_from_how_fast_a_model_hears() {
        let rows = [
            ("tiny", 1.05, false, 0.83, 0.86),
            ("base", 1.92, false, 1.71, 1.85),
            ("small", 4.92, false, 5.92, 5.74),
            ("tiny", 1.05, true, 2.59, 3.44),
            ("base", 1.92, true, 5.40, 6.96),
            ("small", 4.92, true, 15.41, 20.21),
        ];
        for (name, seconds, in_encoder, keeping, again) in rows {
            let measured = Measured {
                device: "the CPU".into(),
                precision: Precision::F32,
                dimensions: Network::of_public(name).unwrap(),
                speed: 30.0 / seconds,
                useful_batch: None,
            };
            let of =
                |device| to_learn(std::slice::from_ref(&measured), device, &measured.dimensions, in_encoder);
            let predicted = of("the CPU").unwrap();
            println!("{name}, {in_encoder}: {predicted:.2}");
            assert!(predicted > 0.85 * again && predicted < 1.5 * keeping, "{name}: {predicted:.1}");
            assert_eq!(of("a card"), None);
        }
    }

    #[test]
    fn a_batch_that_was_measured_is_that_of_the_nearest_model() {
        let of = |name: &str, useful_batch| Measured {
            device: "a card".into(),
            precision: Precision::F16,
            dimensions: Network::of_public(name).unwrap(),
            speed: 100.0,
            useful_batch,
        };
        let measured = [of("tiny", Some(64)), of("small", Some(16)), of("medium", None)];
        let batch = |device: &str, name: &str| {
            useful_batch(&measured, device, Precision::F16, &Network::of_public(name).unwrap())
        };
        assert_eq!(
            [batch("a card", "base"), batch("a card", "medium"), batch("the CPU", "base")],
            [Some(64), Some(16), None]
        );
    }
}
