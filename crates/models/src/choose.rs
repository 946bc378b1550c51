//! What may be written next, and how likely it is: the few numbers that a search needs of a row of logits.

use std::ops::Range;

#[cfg(feature = "cuda")]
use candle_core::{Device, Tensor};

#[cfg(feature = "cuda")]
use crate::Error;
#[cfg(feature = "cuda")]
use crate::whisper::Vocabulary;

/// What the rules of timestamps allow in one row, besides tokens that are never allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// It is the first token of its window.
    pub is_first: bool,
    /// Text tokens, which are below the timestamps, are allowed from here on.
    pub text_from: u32,
    /// The timestamps that are allowed.
    pub times: Range<u32>,
}

/// How a token is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// What logits are divided by before the softmax; above 0.
    pub temperature: f32,
    /// A random number from 0 to 1: where in the shares of the tokens, in the order of the vocabulary, the token lies.
    pub number: f32,
}

/// What is asked of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is allowed.
    pub limits: Limits,
    /// `None` asks for the likeliest tokens, else the one that is drawn.
    pub chance: Option<Chance>,
    /// What is added to the logits of tokens before one is chosen, besides that of the beginnings of phrases or more than
    /// it, in the order of tokens; `None`: nothing is, nor to beginnings.
    pub bonuses: Option<Vec<(u32, f32)>>,
}

/// The likeliest tokens of one row, or the one that was drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates {
    /// The logarithm of the sum of the exponentials of all logits that are allowed.
    pub total: f32,
    /// Token and logit, without a bonus; in the order of their sums, the largest first, of equals the earlier token.
    /// Fewer than were asked for where no more are allowed.
    pub best: Vec<(u32, f32)>,
    /// The token with the largest logit, whatever is added to others; `None` where none is allowed.
    pub own: Option<u32>,
}

/// Finds [`Candidates`] on a CUDA device: per row a few numbers are sent to the host, whatever the vocabulary.
#[cfg(feature = "cuda")]
#[derive(Debug)]
pub struct Chooser {
    /// A byte per token: 1 never allowed, 2 not as the first one.
    forbidden: Tensor,
    /// What is added to the logit of each token that begins a phrase; of one element where there is nothing to expect.
    starts: Tensor,
    timestamps: u32,
    /// The rules of timestamps hold.
    is_timed: bool,
}

#[cfg(feature = "cuda")]
pub(crate) mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

#[cfg(feature = "cuda")]
impl Chooser {
    /// For the vocabulary of a model on `device`. `suppressed` are never allowed, besides those that the vocabulary
    /// names. `starts` is what is added to the logits of tokens that begin a phrase.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device has no memory left.
    pub fn new(
        device: &Device,
        vocabulary: &Vocabulary,
        suppressed: &[u32],
        is_timed: bool,
        starts: &[(u32, f32)],
    ) -> Result<Self, Error> {
        let mut forbidden = vec![0u8; vocabulary.size];
        let never = vocabulary.suppressed.iter().chain(suppressed);
        let never = never.chain(is_timed.then_some(&vocabulary.no_timestamps)).map(|token| (*token, 1));
        let first = vocabulary.begin_suppressed.iter().map(|token| (*token, 2));
        for (token, bit) in never.chain(first) {
            if let Some(bits) = forbidden.get_mut(token as usize) {
                *bits |= bit;
            }
        }
        Ok(Self::of(device, forbidden, vocabulary.timestamp_begin, is_timed, starts)?)
    }

    fn of(
        device: &Device,
        forbidden: Vec<u8>,
        timestamps: u32,
        is_timed: bool,
        starts: &[(u32, f32)],
    ) -> candle_core::Result<Self> {
        let size = forbidden.len();
        let mut bonuses = vec![0f32; if starts.is_empty() { 1 } else { size }];
        for (token, bonus) in starts {
            if let Some(slot) = bonuses.get_mut(*token as usize) {
                *slot = *bonus;
            }
        }
        Ok(Self {
            forbidden: Tensor::from_vec(forbidden, size, device)?,
            starts: Tensor::new(bonuses, device)?,
            timestamps,
            is_timed,
        })
    }

    /// Whether the kernel finds what is known: of ten tokens, of which the last four are timestamps.
    pub(crate) fn is_right(device: &Device) -> candle_core::Result<bool> {
        const LOGITS: [f32; 10] = [9.0, 1.0, 4.0, 4.0, 8.0, 2.0, 3.0, 3.5, 3.5, 9.0];
        let chooser = Self::of(device, vec![1, 0, 0, 0, 2, 0, 0, 0, 0, 0], 6, true, &[(1, 2.5)])?;
        let logits = Tensor::new(&[LOGITS, LOGITS], device)?;
        let logits = Tensor::cat(&[&logits, &logits.narrow(0, 0, 1)?], 0)?;
        let row = |text_from, times, chance, bonuses| Question {
            limits: Limits { is_first: true, text_from, times },
            chance,
            bonuses,
        };
        // Two timestamps together are likelier than any text; one is not, and the third of five tokens is drawn; of two
        // tokens that are expected the one with more is likelier than all others.
        let chance = Some(Chance { temperature: 2.0, number: 0.6 });
        let rows = [
            row(0, 7..9, None, None),
            row(1, 6..7, chance, None),
            row(1, 6..7, None, Some(vec![(1, 2.0), (5, 3.5)])),
        ];
        let found = chooser.launch(&logits, &rows, 2)?;
        let expected = [
            [4.193_147, 3.5, 3.5, 7.0, 8.0, 7.0],
            [4.937_27, 4.0, f32::NEG_INFINITY, 3.0, -1.0, 2.0],
            [4.937_27, 2.0, 4.0, 5.0, 2.0, 2.0],
        ]
        .concat();
        Ok(found
            .iter()
            .zip(expected)
            .all(|(found, expected)| *found == expected || (found - expected).abs() < 1e-3))
    }

    /// The `count` likeliest tokens of each row of `logits`, (rows, vocabulary) in 32 bits, or the one that is drawn.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails, has no memory left, or shapes do not agree.
    pub fn choose(&self, logits: &Tensor, rows: &[Question], count: usize) -> Result<Vec<Candidates>, Error> {
        let width = 2 + 2 * count;
        let found = self.launch(logits, rows, count)?;
        let candidates = |row: &[f32]| {
            let (values, tokens) = row[1..].split_at(count);
            let (tokens, own) = tokens.split_at(count);
            let allowed = values.iter().zip(tokens).take_while(|(_, token)| **token >= 0.0);
            Candidates {
                total: row[0],
                best: allowed.map(|(value, token)| (*token as u32, *value)).collect(),
                own: own.first().filter(|token| **token >= 0.0).map(|token| *token as u32),
            }
        };
        Ok(found.chunks_exact(width).map(candidates).collect())
    }

    fn launch(&self, logits: &Tensor, asked: &[Question], count: usize) -> candle_core::Result<Vec<f32>> {
        use candle_core::cuda_backend::WrapErr;
        use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
        use candle_core::{Storage, bail};

        /// As in the kernel.
        const THREADS: u32 = 256;
        /// Words of a question.
        const ROW: usize = 9;
        let (rows, width) = logits.dims2()?;
        if rows != asked.len() || width != self.forbidden.dim(0)? || rows == 0 || count == 0 {
            bail!("{rows} rows of {width} logits for {} questions, {count} tokens of each", asked.len());
        }
        let device = logits.device().as_cuda_device()?;
        // Behind the words of all rows are the bonuses, each a token and its nats.
        let mut at = rows * ROW;
        let mut flat = Vec::with_capacity(at);
        for Question { limits, chance, bonuses } in asked {
            let Chance { temperature, number } = chance.unwrap_or(Chance { temperature: 0.0, number: 0.0 });
            let [temperature, number] = [temperature, number].map(f32::to_bits);
            let Limits { is_first, text_from, times } = limits;
            let has_starts = bonuses.is_some() && self.starts.elem_count() > 1;
            let count = bonuses.as_ref().map_or(0, Vec::len);
            flat.extend([u32::from(*is_first), *text_from, times.start, times.end, temperature, number]);
            flat.extend([u32::from(has_starts), at as u32, count as u32]);
            at += 2 * count;
        }
        let bonuses = asked.iter().filter_map(|asked| asked.bonuses.as_ref()).flatten();
        flat.extend(bonuses.flat_map(|(token, bonus)| [*token, bonus.to_bits()]));
        let flat = device.clone_htod(&flat)?;
        let logits = logits.contiguous()?;
        let ((logits, layout), (forbidden, _), (starts, _)) = (
            logits.storage_and_layout(),
            self.forbidden.storage_and_layout(),
            self.starts.storage_and_layout(),
        );
        let (Storage::Cuda(logits), Storage::Cuda(forbidden), Storage::Cuda(starts)) =
            (&*logits, &*forbidden, &*starts)
        else {
            bail!("tokens are chosen on a CUDA device only")
        };
        let logits = logits.as_cuda_slice::<f32>()?.slice(layout.start_offset()..);
        let forbidden = forbidden.as_cuda_slice::<u8>()?;
        let starts = starts.as_cuda_slice::<f32>()?;
        let function = device.get_or_load_custom_func("choose_f32", "steno_choose", kernels::CHOOSE)?;
        // SAFETY: the kernel writes every element.
        let out = unsafe { device.alloc::<f32>(rows * (2 + 2 * count))? };
        let (width, count) = (width as u32, count as u32);
        let (timestamps, is_timed) = (self.timestamps, u32::from(self.is_timed));
        let mut launch = function.builder();
        launch.arg(&logits).arg(forbidden).arg(starts).arg(&flat).arg(&out);
        launch.arg(&width).arg(&timestamps).arg(&count).arg(&is_timed);
        let config =
            LaunchConfig { grid_dim: (rows as u32, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are those of the kernel; each block reads its row of logits, all of `forbidden`,
        // `starts` if its question says that they are as long, its question and its bonuses, and writes its row of `out`.
        unsafe { launch.launch(config) }.w()?;
        device.clone_dtoh(&out)
    }
}
