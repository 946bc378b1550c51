//! How likely each next token is: on the host from whole rows of logits, on a card by a kernel that sends the likeliest
//! alone.

use candle_core::{D, Tensor};
use models::boost::{Boost, Progress};
use models::choose::Chance;
#[cfg(feature = "cuda")]
use models::choose::{Chooser, Question};
use models::log_sum_exp;
use models::whisper::Whisper;

use super::decode::WindowOptions;
use super::logits_filter::LogitsFilter;
use super::scores::{Scores, drawn};

/// What is asked of a row.
pub struct Asked<'a> {
    /// The filter of its window.
    pub filter: LogitsFilter<'a>,
    /// The tokens so far.
    pub sampled: &'a [u32],
    /// How the next one is drawn if it is.
    pub chance: Option<Chance>,
    /// How far it is on the way to words to expect; `None`: nothing is added to any token.
    pub progress: Option<&'a Progress>,
}

/// Rates the tokens of all rows of a step.
pub struct Rating<'a> {
    boost: Option<&'a Boost>,
    #[cfg(feature = "cuda")]
    on_card: Option<(Chooser, usize)>,
}

impl<'a> Rating<'a> {
    /// For windows that are decoded together, whose words to expect are the same.
    #[cfg_attr(not(feature = "cuda"), allow(clippy::unnecessary_wraps, unused_variables))]
    pub fn new(model: &Whisper, options: &[WindowOptions<'a>]) -> Result<Self, models::Error> {
        let boost = options.first().and_then(|options| options.boost);
        #[cfg(feature = "cuda")]
        let on_card = match options.first() {
            Some(first) if model.device.is_cuda() => {
                let alike = |other: &WindowOptions| {
                    (other.suppress, other.timestamps, other.beam_size)
                        == (first.suppress, first.timestamps, first.beam_size)
                };
                let count = if first.beam_size > 1 { first.beam_size + 1 } else { 1 };
                let starts = boost.map(Boost::starts).unwrap_or_default();
                let (suppress, timestamps) = (first.suppress, first.timestamps);
                let chooser = || Chooser::new(&model.device, &model.vocabulary, suppress, timestamps, starts);
                options.iter().all(alike).then(chooser).transpose()?.map(|chooser| (chooser, count))
            }
            _ => None,
        };
        Ok(Self {
            boost,
            #[cfg(feature = "cuda")]
            on_card,
        })
    }

    /// `logits` is (rows, vocabulary).
    pub fn scores<'b>(
        &self,
        logits: &Tensor,
        rows: impl Iterator<Item = Asked<'b>>,
    ) -> Result<Vec<Scores>, models::Error> {
        #[cfg(feature = "cuda")]
        if let Some((chooser, count)) = &self.on_card {
            let rows: Vec<_> = rows
                .map(|asked| Question {
                    limits: asked.filter.limits(asked.sampled),
                    chance: asked.chance,
                    bonuses: self.boost.zip(asked.progress).map(|(boost, at)| boost.bonuses(at)),
                })
                .collect();
            let found = chooser.choose(logits, &rows, *count)?;
            return Ok(found.into_iter().map(Scores::Candidates).collect());
        }
        let logits: Vec<Vec<f32>> = logits.to_vec2()?;
        let score = |(mut logits, asked): (Vec<f32>, Asked)| {
            asked.filter.apply(&mut logits, asked.sampled);
            let bonuses = self.boost.zip(asked.progress).map(|(boost, at)| boost.all_bonuses(at));
            let bonuses = bonuses.unwrap_or_default();
            match asked.chance {
                Some(chance) => Scores::Candidates(drawn(&logits, &bonuses, chance)),
                None => Scores::Logits { logits, bonuses },
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
