//! How likely each next token is: on the host from whole rows of logits, on a card by a kernel that sends the likeliest
//! alone.

use candle_core::{D, Tensor};
use models::choose::Chance;
#[cfg(feature = "cuda")]
use models::choose::{Chooser, Question};
use models::log_sum_exp;
use models::whisper::Whisper;

use super::decode::WindowOptions;
use super::logits_filter::LogitsFilter;
use super::scores::{Scores, drawn};

/// Rates the tokens of all rows of a step.
pub struct Rating {
    #[cfg(feature = "cuda")]
    on_card: Option<(Chooser, usize)>,
}

impl Rating {
    /// For windows that are decoded together.
    #[cfg_attr(not(feature = "cuda"), allow(clippy::unnecessary_wraps, unused_variables))]
    pub fn new(model: &Whisper, options: &[WindowOptions]) -> Result<Self, models::Error> {
        #[cfg(feature = "cuda")]
        let on_card = match options.first() {
            Some(first) if model.device.is_cuda() => {
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

    /// `logits` is (rows, vocabulary); per row the filter of its window, the tokens sampled so far, and how the next one
    /// is drawn if it is.
    pub fn scores<'a>(
        &self,
        logits: &Tensor,
        rows: impl Iterator<Item = (LogitsFilter<'a>, &'a [u32], Option<Chance>)>,
    ) -> Result<Vec<Scores>, models::Error> {
        #[cfg(feature = "cuda")]
        if let Some((chooser, count)) = &self.on_card {
            let rows: Vec<_> = rows
                .map(|(filter, sampled, chance)| Question { limits: filter.limits(sampled), chance })
                .collect();
            let found = chooser.choose(logits, &rows, *count)?;
            return Ok(found.into_iter().map(Scores::Candidates).collect());
        }
        let logits: Vec<Vec<f32>> = logits.to_vec2()?;
        let score = |(mut logits, (filter, sampled, chance)): (Vec<f32>, (LogitsFilter, &[u32], _))| {
            filter.apply(&mut logits, sampled);
            match chance {
                Some(chance) => Scores::Candidates(drawn(&logits, chance)),
                None => Scores::Logits(logits),
            }
        };
        Ok(logits.into_iter().zip(rows).map(score).collect())
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
