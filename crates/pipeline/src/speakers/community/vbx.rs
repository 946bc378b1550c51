//! Variational Bayes clustering of vectors (Landini and others, arXiv:2012.14952),
//! without the hidden Markov model: which of the speakers that a first clustering found
//! are the same.

/// How much the vectors count against the assumption that there is one speaker.
const FA: f64 = 0.07;
/// How much that assumption counts: the more, the fewer speakers.
const FB: f64 = 0.8;
const MOST_ROUNDS: usize = 20;
/// The first clustering is believed as far as the softmax of 7 says.
const FIRST_BELIEF: f64 = 7.0;
/// Rounds end when the bound of the evidence grows by less.
const LEAST_GAIN: f64 = 1e-4;

/// What the clustering found.
#[derive(Debug)]
pub struct Responsibilities {
    /// (vectors, speakers): the probability that a vector is of a speaker.
    pub of_vectors: Vec<Vec<f64>>,
    /// The share of each speaker.
    pub shares: Vec<f64>,
}

/// Clusters features whose variance within a speaker is 1 and between speakers
/// `between`, from the numbers of the first clustering on.
pub fn responsibilities(features: &[Vec<f64>], between: &[f64], first: &[usize]) -> Responsibilities {
    let speakers = first.iter().max().map_or(0, |last| last + 1);
    let (sure, unsure) = (FIRST_BELIEF.exp(), 1.0);
    let total = sure + unsure * (speakers.max(1) - 1) as f64;
    let belief =
        |own: usize| (0..speakers).map(move |other| if own == other { sure } else { unsure } / total);
    let mut of_vectors: Vec<Vec<f64>> = first.iter().map(|own| belief(*own).collect()).collect();
    let mut shares = vec![1.0 / speakers.max(1) as f64; speakers];
    let scaled: Vec<Vec<f64>> = features
        .iter()
        .map(|row| row.iter().zip(between).map(|(x, between)| x * between.sqrt()).collect())
        .collect();
    let constant = |row: &Vec<f64>| {
        let squares: f64 = row.iter().map(|x| x * x).sum();
        -0.5 * (squares + row.len() as f64 * (2.0 * std::f64::consts::PI).ln())
    };
    let constants: Vec<f64> = features.iter().map(constant).collect();
    let mut last = f64::NEG_INFINITY;
    for _ in 0..MOST_ROUNDS {
        let models: Vec<SpeakerModel> =
            (0..speakers).map(|speaker| SpeakerModel::of(&scaled, between, &of_vectors, speaker)).collect();
        let mut evidence = 0.0;
        for ((row, constant), of_vector) in scaled.iter().zip(&constants).zip(&mut of_vectors) {
            for ((chance, model), share) in of_vector.iter_mut().zip(&models).zip(&shares) {
                let product: f64 = row.iter().zip(&model.mean).map(|(x, mean)| x * mean).sum();
                *chance = FA * (product - model.spread + constant) + (share + 1e-8).ln();
            }
            let most = of_vector.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = of_vector.iter().map(|chance| (chance - most).exp()).sum();
            let log_sum = most + sum.ln();
            of_vector.iter_mut().for_each(|chance| *chance = (*chance - log_sum).exp());
            evidence += log_sum;
        }
        for (speaker, share) in shares.iter_mut().enumerate() {
            *share = of_vectors.iter().map(|row| row[speaker]).sum();
        }
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        let bound = evidence + FB * 0.5 * models.iter().map(|model| model.divergence).sum::<f64>();
        if bound - last < LEAST_GAIN {
            break;
        }
        last = bound;
    }
    Responsibilities { of_vectors, shares }
}

/// The distribution of a speaker's mean.
struct SpeakerModel {
    mean: Vec<f64>,
    /// Half of the expected square of the mean, weighted by the variances.
    spread: f64,
    /// Minus twice the divergence from what is assumed beforehand.
    divergence: f64,
}

impl SpeakerModel {
    fn of(scaled: &[Vec<f64>], between: &[f64], of_vectors: &[Vec<f64>], speaker: usize) -> Self {
        let count: f64 = of_vectors.iter().map(|row| row[speaker]).sum();
        let mut mean = vec![0.0; between.len()];
        for (row, of_vector) in scaled.iter().zip(of_vectors) {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += of_vector[speaker] * x);
        }
        let (mut spread, mut divergence) = (0.0, 0.0);
        for (mean, between) in mean.iter_mut().zip(between) {
            let variance = 1.0 / (1.0 + FA / FB * count * between);
            *mean *= FA / FB * variance;
            spread += 0.5 * (variance + *mean * *mean) * between;
            divergence += variance.ln() - variance - *mean * *mean + 1.0;
        }
        Self { mean, spread, divergence }
    }
}
