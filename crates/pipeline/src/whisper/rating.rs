//! How likely each next token is: on the host from whole rows of logits, on a card by a kernel that sends the likeliest
//! alone.

use candle_core::{D, Tensor};
#[cfg(feature = "cuda")]
use models::choose::Chooser;
use models::log_sum_exp;
use models::whisper::Whisper;

use super::decode::WindowOptions;
use super::logits_filter::LogitsFilter;
use super::scores::Scores;

/// Rates the tokens of all rows of a step.
pub struct Rating {
    #[cfg(feature = "cuda")]
    on_card: Option<(Chooser, usize)>,
}

impl Rating {
    /// For windows that are decoded together. What is sampled above temperature 0 needs whole rows.
    #[cfg_attr(not(feature = "cuda"), allow(clippy::unnecessary_wraps, unused_variables))]
    pub fn new(model: &Whisper, options: &[WindowOptions]) -> Result<Self, models::Error> {
        #[cfg(feature = "cuda")]
        let on_card = match options.first() {
            Some(first)
                if model.device.is_cuda() && options.iter().all(|options| options.temperature == 0.0) =>
            {
                let alike = |other: &WindowOptions| {
                    (other.suppress, other.timestamps, other.beam_size)
                        == (first.suppress, first.timestamps, first.beam_size)
                };
                let count = if first.beam_size > 1 { first.beam_size + 1 } else { 1 };
                let chooser =
                    || Chooser::new(&model.device, &model.vocabulary, first.suppress, first.timestamps);
                options.iter().all(alike).then(chooser).transpose()?.map(|chooser| (chooser, count))
            }
            _ => None,
        };
        Ok(Self {
            #[cfg(feature = "cuda")]
            on_card,
        })
    }

    /// `logits` is (rows, vocabulary); per row the filter of its window and the tokens sampled so far.
    pub fn scores<'a>(
        &self,
        logits: &Tensor,
        rows: impl Iterator<Item = (LogitsFilter<'a>, &'a [u32])>,
    ) -> Result<Vec<Scores>, models::Error> {
        #[cfg(feature = "cuda")]
        if let Some((chooser, count)) = &self.on_card {
            let limits: Vec<_> = rows.map(|(filter, sampled)| filter.limits(sampled)).collect();
            let found = chooser.choose(logits, &limits, *count)?;
            return Ok(found.into_iter().map(Scores::Candidates).collect());
        }
        let mut logits: Vec<Vec<f32>> = logits.to_vec2()?;
        for (logits, (filter, sampled)) in logits.iter_mut().zip(rows) {
            filter.apply(logits, sampled);
        }
        Ok(logits.into_iter().map(Scores::Logits).collect())
    }
}

/// The probability of one token per row of `logits`, (rows, vocabulary). A card sends these alone.
pub fn probabilities(logits: &Tensor, tokens: &[u32]) -> Result<Vec<f32>, models::Error> {
    if logits.device().is_cpu() {
        let rows: Vec<Vec<f32>> = logits.to_vec2()?;
        let of = |(row, token): (&Vec<f32>, &u32)| (row[*token as usize] - log_sum_exp(row)).exp();
        return Ok(rows.iter().zip(tokens).map(of).collect());
    }
    let chosen = Tensor::from_slice(tokens, (tokens.len(), 1), logits.device())?;
    let chosen = logits.contiguous()?.gather(&chosen, D::Minus1)?.squeeze(1)?;
    Ok((chosen - logits.log_sum_exp(D::Minus1)?)?.exp()?.to_vec1()?)
}
