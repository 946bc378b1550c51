use candle_core::{D, DType, IndexOp, Tensor};
use models::decoder::CrossScores;
use models::whisper::Whisper;
use transcript::Task;

use super::decode::task_tokens;
use super::logits_filter::TIMESTAMP_STEP;
use super::rating::probabilities;
use super::words::split_words;
use crate::alignment::Attended;
use crate::{Control, timings};

/// A word with its times in seconds from the window's start.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedWord {
    /// The word, with the white space before it.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// When it begins, in seconds from the beginning of the window.
    pub start: f64,
    /// When it ends, in seconds.
    pub end: f64,
    /// The mean probability of its tokens, 0 to 1.
    pub probability: f32,
    /// The decoder's last hidden state before its first token, of length 1; empty where none was asked for.
    pub state: Vec<f32>,
    /// The user's correction, where it stands in place of what the model wrote.
    pub recalled: Option<Recalled>,
}

/// A correction of the user in place of what the model wrote, both without punctuation around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// What the model wrote.
    pub heard: String,
    /// What is written.
    pub word: String,
}

/// Tokens whose logits are there at once: the vocabulary is the widest thing
/// in the model, and a full window has a hundred tokens and more.
const LOGIT_BLOCK: usize = 16;

/// What was said in one window.
#[derive(Debug, Clone)]
pub struct Said<'a> {
    /// ISO code; ignored by an English-only model.
    pub language: &'a str,
    /// Transcribe, or translate into English.
    pub task: Task,
    /// Text tokens alone.
    pub tokens: Vec<u32>,
    /// The window's real length in frames of 10 ms.
    pub frames: usize,
    /// Whether each word is to have the decoder's state.
    pub states: bool,
}

/// Where each word of what was said in some windows is spoken: dynamic time warping over the cross-attention of the
/// alignment heads, in a second, teacher-forced pass (`find_alignment` of openai/whisper's `timing.py`).
///
/// `audio` is the encoder's output, (windows, source positions, width), `said` one per window. A card takes all windows
/// at once; on the host one is work enough.
///
/// # Errors
/// Where computing fails, or the job was cancelled.
pub fn align(
    model: &Whisper,
    audio: &Tensor,
    said: &[Said],
    control: &Control,
) -> Result<Vec<Vec<AlignedWord>>, models::Error> {
    let together = if model.device.is_cpu() { 1 } else { said.len().max(1) };
    let mut aligned = Vec::with_capacity(said.len());
    for (number, said) in said.chunks(together).enumerate() {
        let audio = audio.narrow(0, number * together, said.len())?;
        let aligning = || align_together(model, &audio, said, control);
        aligned.extend(control.timings().of(timings::WORD_TIMES, aligning)?);
    }
    Ok(aligned)
}

fn align_together(
    model: &Whisper,
    audio: &Tensor,
    said: &[Said],
    control: &Control,
) -> Result<Vec<Vec<AlignedWord>>, models::Error> {
    let windows: Vec<Forced> = said.iter().map(|said| Forced::new(model, said)).collect();
    let spoken: Vec<usize> = (0..said.len()).filter(|window| windows[*window].is_spoken()).collect();
    if spoken.is_empty() {
        return Ok(vec![Vec::new(); said.len()]);
    }
    let count = spoken.iter().map(|window| windows[*window].tokens.len()).max().unwrap_or_default();
    // A shorter text is filled up: no token sees what follows it.
    let fill = |window: &usize| {
        let tokens = &windows[*window].tokens;
        tokens.iter().copied().chain(std::iter::repeat(model.vocabulary.end_of_text)).take(count)
    };
    let tokens: Vec<u32> = spoken.iter().flat_map(fill).collect();
    let audio = match spoken.len() == said.len() {
        true => audio.clone(),
        false => {
            let each: Vec<_> =
                spoken.iter().map(|window| audio.narrow(0, *window, 1)).collect::<Result<_, _>>()?;
            Tensor::cat(&each, 0)?
        }
    };
    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    let mut scores = CrossScores { heads: model.alignment_heads.clone(), found: Vec::new() };
    let mut state = model.decoder.start(&audio, 1, count)?;
    let hidden = model.decoder.forward(&tokens, &mut state, Some(&mut scores), &tick)?;
    drop(state);

    // The hidden states that predict the text tokens, and these.
    let texts: Vec<&[u32]> = spoken.iter().map(|window| windows[*window].text()).collect();
    let before = |(row, window): (usize, &usize)| {
        let Forced { start, text_tokens, .. } = &windows[*window];
        hidden.i((row, *start..start + text_tokens))
    };
    let before: Vec<Tensor> = spoken.iter().enumerate().map(before).collect::<Result<_, _>>()?;
    let before = Tensor::cat(&before, 0)?;
    drop(hidden);
    let mut probable = Vec::with_capacity(before.dim(0)?);
    let block = LOGIT_BLOCK * spoken.len();
    for (number, tokens) in texts.concat().chunks(block).enumerate() {
        let logits = model.decoder.logits(&before.narrow(0, number * block, tokens.len())?)?;
        let text = logits.i((.., ..model.vocabulary.end_of_text as usize))?;
        probable.extend(probabilities(&text, tokens)?);
    }
    let states = match said.iter().any(|said| said.states) {
        true => unit_rows(&before)?,
        false => vec![Vec::new(); before.dim(0)?],
    };
    drop(before);
    if scores.found.is_empty() {
        return Ok(vec![Vec::new(); said.len()]);
    }

    let mut aligned = vec![Vec::new(); said.len()];
    // The filters of one window run beside what the card has yet to do for the next ones.
    rayon::in_place_scope(|scope| {
        let places = aligned.iter_mut().zip(said.iter().zip(&windows));
        let places = places.filter(|(_, (_, forced))| forced.is_spoken());
        let (mut probable, mut states) = (&probable[..], &states[..]);
        for (row, (aligned, (said, forced))) in places.enumerate() {
            let (own, rest) = probable.split_at(forced.text_tokens);
            let (own_states, states_behind) = states.split_at(forced.text_tokens);
            (probable, states) = (rest, states_behind);
            let shares = forced.shares(&scores.found, row)?;
            scope.spawn(move |_| *aligned = forced.words(model, said.language, own, own_states, shares));
        }
        Ok::<_, models::Error>(())
    })?;
    Ok(aligned)
}

/// The rows of a matrix, each of length 1.
fn unit_rows(rows: &Tensor) -> Result<Vec<Vec<f32>>, models::Error> {
    let mut rows = rows.to_dtype(DType::F32)?.to_vec2::<f32>()?;
    for row in &mut rows {
        let length = row.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        row.iter_mut().for_each(|value| *value /= length);
    }
    Ok(rows)
}

/// The tokens of a window that the decoder is made to write.
struct Forced {
    tokens: Vec<u32>,
    /// Where among them the token before the text is.
    start: usize,
    /// How many tokens of text follow it.
    text_tokens: usize,
    /// Positions of the encoder that the window has.
    positions: usize,
}

impl Forced {
    fn new(model: &Whisper, said: &Said) -> Self {
        let vocabulary = &model.vocabulary;
        let mut tokens = vec![vocabulary.start_of_transcript];
        tokens.extend(task_tokens(model, said.language, said.task));
        let start = tokens.len();
        tokens.push(vocabulary.no_timestamps);
        // Longer than the model can hold: align what fits, the rest gets the end.
        let room = model.config.dimensions.text_context as usize - tokens.len() - 1;
        let text_tokens = said.tokens.len().min(room);
        tokens.extend_from_slice(&said.tokens[..text_tokens]);
        tokens.push(vocabulary.end_of_text);
        Self { tokens, start, text_tokens, positions: said.frames / 2 }
    }

    fn text(&self) -> &[u32] {
        &self.tokens[self.start + 1..][..self.text_tokens]
    }

    fn is_spoken(&self) -> bool {
        self.text_tokens > 0 && self.positions > 0
    }

    /// The softmax over time of all heads' scores in one row: (heads, tokens, positions), row-major.
    fn shares(&self, heads: &[Tensor], row: usize) -> Result<Vec<f32>, models::Error> {
        // A card waits for each answer that is sent; the host has less in memory at once.
        let together = if heads.iter().all(|head| head.device().is_cpu()) { 1 } else { heads.len().max(1) };
        let mut shares = Vec::with_capacity(heads.len() * self.tokens.len() * self.positions);
        for heads in heads.chunks(together) {
            let scores = |head: &Tensor| head.i((row..=row, ..self.tokens.len(), ..self.positions));
            let scores: Vec<_> = heads.iter().map(scores).collect::<Result<_, _>>()?;
            let scores = Tensor::cat(&scores, 0)?.to_dtype(DType::F32)?.contiguous()?;
            let softmax = candle_nn::ops::softmax(&scores, D::Minus1)?;
            shares.extend(softmax.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(shares)
    }

    /// The words of the text with their times.
    fn words(
        &self,
        model: &Whisper,
        language: &str,
        probabilities: &[f32],
        states: &[Vec<f32>],
        shares: Vec<f32>,
    ) -> Vec<AlignedWord> {
        let words = split_words(&model.vocabulary, language, &self.tokens[self.start + 1..]);
        if words.len() <= 1 {
            return Vec::new();
        }
        // Rows of the no-timestamps token to the last text token: each row's
        // attention is where the *next* token is spoken.
        let attended = Attended { shares, rows: self.tokens.len(), positions: self.positions };
        let starts = attended.starts_of(self.start..self.tokens.len() - 1);
        let jumps: Vec<f64> = starts.into_iter().map(|position| position as f64 * TIMESTAMP_STEP).collect();
        // The last word is the end of text (and what is torn off before it).
        let count = words.len() - 1;
        let mut aligned = Vec::with_capacity(count);
        let mut first = 0;
        for (text, tokens) in words.into_iter().take(count) {
            let end = first + tokens.len();
            let probability = probabilities[first..end].iter().sum::<f32>() / tokens.len() as f32;
            let state = states[first].clone();
            aligned.push(AlignedWord {
                text,
                tokens,
                start: jumps[first],
                end: jumps[end],
                probability,
                state,
                recalled: None,
            });
            first = end;
        }
        aligned
    }
}
