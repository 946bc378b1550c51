use candle_core::{D, DType, IndexOp, Tensor};

use super::Canary;
use crate::Error;
use crate::boost::{Boost, Detour, Outcome, Progress, likeliest};
use crate::decoder::CrossScores;
use crate::fused::log_sum_exp;
use crate::largest::arg_max;
use crate::layers::Tick;

/// What was read in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Tokens with their probabilities, 0 to 1; that of the end not among them.
    pub tokens: Vec<(u32, f32)>,
    /// What each head of the later half of the layers attends to as it writes each token, and behind them the end:
    /// (heads, tokens + 1, frames), each row a softmax.
    pub shares: Vec<f32>,
}

impl Canary {
    /// The likeliest token after each other until the text ends, or at most [`CanaryDimensions::most_tokens`] of them.
    /// `frames` is the encoder's output for one window, (frames, width); `prompt` as
    /// [`CanaryTokens::prompt`](formats::CanaryTokens::prompt) has it; `boost` has words to expect, as
    /// [`Self::words_to_expect`] finds them.
    ///
    /// [`CanaryDimensions::most_tokens`]: memory::CanaryDimensions::most_tokens
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`] if memory runs out.
    pub fn read(
        &self,
        frames: &Tensor,
        prompt: &[u32],
        boost: Option<&Boost>,
        on_layer: &Tick,
    ) -> Result<Read, Error> {
        let of = &self.config.dimensions;
        let (layers, heads) = (of.decoder_layers as usize, of.decoder_heads as usize);
        let heads: Vec<(usize, usize)> =
            (layers / 2..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head))).collect();
        let most = memory::CanaryDimensions::most_tokens(frames.dim(0)? as u64).min(of.text_context) as usize;
        let mut state = self.decoder.start(&frames.unsqueeze(0)?, 1, most)?;
        let mut tokens: Vec<(u32, f32)> = Vec::new();
        // What is attended to as each token is written: (heads, frames).
        let mut rows: Vec<Vec<f32>> = Vec::new();
        let mut progress = Progress::default();
        // Where another token than the model's own choice was taken, and how far words to expect were before.
        let mut detour: Option<(Detour, Progress)> = None;
        let mut is_refused = false;
        let mut fed = prompt.to_vec();
        loop {
            let mut scores = CrossScores { heads: heads.clone(), found: Vec::new() };
            let hidden = self.decoder.forward(&fed, &mut state, Some(&mut scores), on_layer)?;
            let last = hidden.dim(1)? - 1;
            rows.push(shares(&scores, last)?);
            let logits: Vec<f32> = self.decoder.logits(&hidden.i((.., last))?)?.squeeze(0)?.to_vec1()?;
            let own = arg_max(&logits);
            let mut id = own;
            if let Some(boost) = boost.filter(|_| !std::mem::take(&mut is_refused)) {
                id = likeliest(&logits, own, boost.all_bonuses(&progress));
                if id != own && detour.is_none() {
                    detour = Some((Detour(tokens.len()), progress.clone()));
                }
            }
            let is_end = id as u32 == self.tokens.end;
            let log_probability = logits[id] - log_sum_exp(&logits);
            if !is_end {
                tokens.push((id as u32, log_probability.exp()));
            }
            if let Some(boost) = boost {
                match is_end {
                    true => boost.end(&mut progress),
                    false => boost.advance(&mut progress, id as u32, log_probability),
                }
            }
            if let Some((place, earlier)) = detour.take() {
                match progress.outcome(place) {
                    Outcome::Open => detour = Some((place, earlier)),
                    Outcome::Kept => {}
                    Outcome::Lost => {
                        let Detour(count) = place;
                        tokens.truncate(count);
                        rows.truncate(count);
                        progress = earlier;
                        is_refused = true;
                        fed = match tokens.last() {
                            Some((token, _)) => vec![*token],
                            None => prompt.to_vec(),
                        };
                        state.truncate((prompt.len() + count).saturating_sub(fed.len()));
                        continue;
                    }
                }
            }
            if is_end {
                break;
            }
            if state.length() >= state.capacity() {
                // A word to expect that is not complete is none, and the last token has no row behind it.
                let Detour(open) = detour.map_or(Detour(tokens.len()), |(place, _)| place);
                tokens.truncate(open.min(tokens.len() - 1));
                rows.truncate(tokens.len() + 1);
                break;
            }
            fed = vec![id as u32];
        }
        let length = frames.dim(0)?;
        let mut shares = Vec::with_capacity(heads.len() * rows.len() * length);
        for head in 0..heads.len() {
            rows.iter().for_each(|row| shares.extend_from_slice(&row[head * length..][..length]));
        }
        Ok(Read { tokens, shares })
    }
}

/// The softmax over the frames of all heads' scores in one row: (heads, frames), row-major.
fn shares(scores: &CrossScores, row: usize) -> Result<Vec<f32>, Error> {
    let of_row = scores.found.iter().map(|head| head.i((.., row))).collect::<Result<Vec<_>, _>>()?;
    let scores = Tensor::cat(&of_row, 0)?.to_dtype(DType::F32)?;
    Ok(candle_nn::ops::softmax(&scores, D::Minus1)?.flatten_all()?.to_vec1()?)
}
