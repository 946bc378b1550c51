use std::io::Write;

use candle_core::{IndexOp, Tensor};
use models::boost::{Boost, Progress};
use models::choose::Chance;
use models::whisper::Whisper;
use transcript::Task;

use super::logits_filter::LogitsFilter;
use super::rating::{Asked, Rating, probabilities};
use super::sampling::{Beams, Draw, Sequence, Step};
use super::scores::Scores;
use crate::{Control, timings};

/// How one window is decoded.
#[derive(Debug, Clone)]
pub struct WindowOptions<'a> {
    /// ISO code; ignored by an English-only model.
    pub language: &'a str,
    /// Transcribe, or translate into English.
    pub task: Task,
    /// Whether timestamp tokens are decoded.
    pub timestamps: bool,
    /// Tokens of previous text, the latest last.
    pub prompt: &'a [u32],
    /// Sequences searched at temperature 0; 1 is greedy.
    pub beam_size: usize,
    /// Sequences drawn above temperature 0.
    pub best_of: usize,
    /// How many finished sequences a beam search waits for, as a factor of its beams.
    pub patience: f32,
    /// Exponent of Google's length penalty; `None`: the mean per token decides.
    pub length_penalty: Option<f32>,
    /// The most tokens to decode; `None`: half of the decoder's positions.
    pub max_tokens: Option<usize>,
    /// Seconds.
    pub max_initial_timestamp: Option<f32>,
    /// Tokens that are never chosen, besides those of the model.
    pub suppress: &'a [u32],
    /// 0 takes the most likely token; above it tokens are sampled.
    pub temperature: f32,
    /// Seeds the sampling.
    pub seed: u64,
    /// Words to expect; the same for all windows that are decoded together.
    pub boost: Option<&'a Boost>,
    /// Whether the text is shown while it is written; of windows that are decoded together, that of the first.
    pub is_live: bool,
}

/// The best sequence of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Time tokens included, the end of text not.
    pub tokens: Vec<u32>,
    /// The text of the tokens.
    pub text: String,
    /// Per token, that of the end included; by the model, whatever words it was told to expect.
    pub mean_log_probability: f32,
    /// The same with what words to expect were worth: how sure the search is of the text.
    pub sureness: f32,
    /// The probability that the window has no speech, 0 to 1.
    pub no_speech_probability: f32,
    /// The length of the text over its length when compressed by zlib: repetition makes it large.
    pub compression_ratio: f32,
    /// The temperature that it was decoded at.
    pub temperature: f32,
}

/// Decodes one window, as openai/whisper's `DecodingTask.run`.
///
/// `audio` is the encoder's output for one window, (1, source positions, width).
///
/// # Errors
/// Where computing fails, and [`models::Error::Interrupted`] where the job was cancelled.
pub fn decode(
    model: &Whisper,
    audio: &Tensor,
    options: &WindowOptions,
    control: &Control,
) -> Result<Decoded, models::Error> {
    let mut decoded = decode_together(model, audio, std::slice::from_ref(options), control)?;
    decoded.pop().ok_or_else(|| mismatch("no window to decode"))
}

/// Decodes several windows at once, each as [`decode`] does it on its own:
/// none sees another, and one that is finished is computed no further.
///
/// `audio` is (windows, source positions, width), `options` one per window;
/// number of sequences and length of the prompt must be the same for all.
///
/// # Errors
/// As [`decode`].
pub fn decode_together(
    model: &Whisper,
    audio: &Tensor,
    options: &[WindowOptions],
    control: &Control,
) -> Result<Vec<Decoded>, models::Error> {
    control.timings().of(timings::DECODE, || decode_all(model, audio, options, control))
}

fn decode_all(
    model: &Whisper,
    audio: &Tensor,
    options: &[WindowOptions],
    control: &Control,
) -> Result<Vec<Decoded>, models::Error> {
    let vocabulary = &model.vocabulary;
    let starts: Vec<(Vec<u32>, usize)> = options.iter().map(|options| start_tokens(model, options)).collect();
    let mut searches: Vec<Search> =
        options.iter().map(|options| Search::new(options, vocabulary.end_of_text)).collect();
    let (Some((start, start_of_transcript_at)), Some(search), Some(first)) =
        (starts.first(), searches.first(), options.first())
    else {
        return Ok(Vec::new());
    };
    let (start_length, start_of_transcript_at, rows) = (start.len(), *start_of_transcript_at, search.rows());
    let alike = starts.iter().all(|(start, _)| start.len() == start_length)
        && searches.iter().all(|search| search.rows() == rows)
        && audio.dim(0)? == options.len();
    if !alike {
        return Err(mismatch("windows decoded together must have prompts and beams of the same number"));
    }
    let room = model.config.dimensions.text_context as usize - start_length;
    let lengths: Vec<usize> = options
        .iter()
        .map(|options| {
            options.max_tokens.unwrap_or(model.config.dimensions.text_context as usize / 2).min(room)
        })
        .collect();
    let length = lengths.iter().copied().max().unwrap_or_default();

    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    let rating = Rating::new(model, options)?;
    let mut state = model.decoder.start(audio, rows, start_length + length)?;
    let mut tokens: Vec<u32> = starts.iter().flat_map(|(start, _)| start.repeat(rows)).collect();
    let mut no_speech = vec![0.0; options.len()];
    // Numbers of the windows that are not finished, in the order of their rows.
    let mut open: Vec<usize> = (0..options.len()).collect();
    // How the open windows were before each step, back to where the first of them left the model's own choice.
    let mut earlier: Vec<(usize, Vec<Search>)> = Vec::new();
    let mut is_begun = false;
    let mut step = 0;
    while step < length {
        let hidden = model.decoder.forward(&tokens, &mut state, None, &tick)?;
        let count = hidden.dim(1)?;
        if !std::mem::replace(&mut is_begun, true)
            && let Some(token) = vocabulary.no_speech
        {
            for (window, probability) in no_speech.iter_mut().enumerate() {
                let hidden = hidden.i((window * rows..window * rows + 1, start_of_transcript_at))?;
                *probability = probabilities(&model.decoder.logits(&hidden)?, &[token])?[0];
            }
        }
        let logits = model.decoder.logits(&hidden.i((.., count - 1))?)?;
        drop(hidden);
        let filter = |window: usize| LogitsFilter::new(vocabulary, &options[window]);
        if first.boost.is_some() {
            earlier.push((step, searches.clone()));
        }
        let chances: Vec<_> = open.iter().flat_map(|window| searches[*window].chances()).collect();
        let sampled = open.iter().flat_map(|window| searches[*window].sequences().map(|row| (*window, row)));
        let asked = sampled.zip(chances).map(|((window, (sampled, progress)), chance)| Asked {
            filter: filter(window),
            sampled,
            chance,
            progress,
        });
        let scores = rating.scores(&logits, asked)?;
        drop(logits);
        let mut sources = Vec::with_capacity(scores.len());
        let mut kept = Vec::with_capacity(open.len());
        tokens.clear();
        let mut back_to: Option<usize> = None;
        for (place, window) in open.iter().copied().enumerate() {
            let first = place * rows;
            let search = &mut searches[window];
            let Step { sources: own, done } = search.step(&scores[first..first + rows]);
            sources.extend(own.into_iter().map(|row| first + row));
            let lost = search.lost();
            back_to = back_to.into_iter().chain(lost).min();
            if lost.is_some() || (!done && step + 1 < lengths[window]) {
                kept.push(place);
                tokens.extend(search.last_tokens());
            }
        }
        if first.is_live {
            control.live_text().tell(|| vocabulary.decode(searches[0].foremost()));
        }
        if kept.is_empty() {
            break;
        }
        state.reorder(&sources)?;
        if kept.len() < open.len() {
            state.keep(&kept)?;
            open = kept.into_iter().map(|place| open[place]).collect();
        }
        step += 1;
        let place = back_to.and_then(|to| earlier.iter().position(|(step, _)| *step == to));
        if let Some(place) = place {
            // All go back together, and the others choose what they chose: rows have the same number of tokens.
            let (to, before) = earlier.remove(place);
            earlier.truncate(place);
            let mut before: Vec<Option<Search>> = before.into_iter().map(Some).collect();
            for window in &open {
                if let Some(before) = before[*window].take() {
                    searches[*window].go_back(before);
                }
            }
            step = to;
            let fed = if to == 0 { 0 } else { start_length + to - 1 };
            state.truncate(fed);
            let again = |window: &usize| match to {
                0 => starts[*window].0.repeat(rows),
                _ => searches[*window].last_tokens(),
            };
            tokens = open.iter().flat_map(again).collect();
        } else if !open.iter().any(|window| searches[*window].is_on_detour()) {
            earlier.clear();
        }
    }
    drop(state);

    let finish = |((search, options), no_speech_probability): ((Search, &WindowOptions), f32)| {
        let best = best_sequence(search.finish(), options.length_penalty);
        let text = vocabulary.decode(&best.tokens).trim().to_owned();
        Decoded {
            mean_log_probability: best.log_probability / (best.tokens.len() + 1) as f32,
            sureness: best.score() / (best.tokens.len() + 1) as f32,
            compression_ratio: compression_ratio(&text),
            tokens: best.tokens,
            text,
            no_speech_probability,
            temperature: options.temperature,
        }
    };
    Ok(searches.into_iter().zip(options).zip(no_speech).map(finish).collect())
}

fn mismatch(reason: &str) -> models::Error {
    candle_core::Error::Msg(reason.into()).into()
}

/// Previous text, then what tells the model its task; and where in it the
/// start of the transcript is.
fn start_tokens(model: &Whisper, options: &WindowOptions) -> (Vec<u32>, usize) {
    let vocabulary = &model.vocabulary;
    let mut tokens = Vec::new();
    if let Some(previous) = vocabulary.start_of_previous
        && !options.prompt.is_empty()
    {
        let room = model.config.dimensions.text_context as usize / 2 - 1;
        tokens.push(previous);
        tokens.extend_from_slice(&options.prompt[options.prompt.len().saturating_sub(room)..]);
    }
    let at = tokens.len();
    tokens.push(vocabulary.start_of_transcript);
    tokens.extend(task_tokens(model, options.language, options.task));
    if !options.timestamps {
        tokens.push(vocabulary.no_timestamps);
    }
    (tokens, at)
}

/// Language and task, which an English-only model has no tokens for.
pub(super) fn task_tokens(model: &Whisper, language: &str, task: Task) -> Vec<u32> {
    let vocabulary = &model.vocabulary;
    if !vocabulary.is_multilingual() {
        return Vec::new();
    }
    let task = match task {
        Task::Transcribe => vocabulary.transcribe,
        Task::Translate => vocabulary.translate,
    };
    vocabulary.language_token(language).into_iter().chain(task).collect()
}

#[derive(Clone)]
enum Search<'a> {
    Draw(Draw<'a>, usize),
    Beams(Beams<'a>, usize),
}

impl<'a> Search<'a> {
    fn new(options: &WindowOptions<'a>, end_of_text: u32) -> Self {
        let boost = options.boost;
        if options.temperature == 0.0 && options.beam_size > 1 {
            let beams = options.beam_size;
            return Self::Beams(Beams::new(beams, options.patience, end_of_text, boost), beams);
        }
        let rows = if options.temperature == 0.0 { 1 } else { options.best_of.max(1) };
        Self::Draw(Draw::new(rows, options.temperature, options.seed, end_of_text, boost), rows)
    }

    fn rows(&self) -> usize {
        match self {
            Self::Draw(_, rows) | Self::Beams(_, rows) => *rows,
        }
    }

    fn sequences(&self) -> Box<dyn Iterator<Item = (&[u32], Option<&Progress>)> + '_> {
        match self {
            Self::Draw(draw, _) => Box::new(draw.sequences()),
            Self::Beams(beams, _) => Box::new(beams.sequences()),
        }
    }

    /// The tokens of its first sequence, the likeliest so far of a beam search.
    fn foremost(&self) -> &[u32] {
        self.sequences().next().map_or(&[], |(tokens, _)| tokens)
    }

    fn chances(&mut self) -> Vec<Option<Chance>> {
        match self {
            Self::Draw(draw, _) => draw.chances(),
            Self::Beams(_, rows) => vec![None; *rows],
        }
    }

    fn last_tokens(&self) -> Vec<u32> {
        match self {
            Self::Draw(draw, _) => draw.last_tokens(),
            Self::Beams(beams, _) => beams.last_tokens(),
        }
    }

    fn step(&mut self, scores: &[Scores]) -> Step {
        match self {
            Self::Draw(draw, _) => draw.step(scores),
            Self::Beams(beams, _) => beams.step(scores),
        }
    }

    /// Whether it may turn out that it has to go back.
    fn is_on_detour(&self) -> bool {
        matches!(self, Self::Draw(draw, _) if draw.is_on_detour())
    }

    /// The step that it has to go back to.
    fn lost(&self) -> Option<usize> {
        match self {
            Self::Draw(draw, _) => draw.lost(),
            Self::Beams(..) => None,
        }
    }

    fn go_back(&mut self, before: Self) {
        match (self, before) {
            (Self::Draw(draw, _), Self::Draw(before, _)) => draw.go_back(before),
            (search, before) => *search = before,
        }
    }

    fn finish(self) -> Vec<Sequence> {
        match self {
            Self::Draw(draw, _) => draw.finish(),
            Self::Beams(beams, _) => beams.finish(),
        }
    }
}

/// The highest log-probability per length, words to expect counted; the first of equals.
fn best_sequence(sequences: Vec<Sequence>, length_penalty: Option<f32>) -> Sequence {
    let score = |sequence: &Sequence| {
        let length = sequence.tokens.len().max(1) as f32;
        sequence.score()
            / match length_penalty {
                None => length,
                // Wu et al. 2016, arXiv:1609.08144.
                Some(alpha) => ((5.0 + length) / 6.0).powf(alpha),
            }
    };
    let empty = Sequence { log_probability: f32::NEG_INFINITY, ..Sequence::new() };
    sequences
        .into_iter()
        .reduce(|best, next| if score(&next) > score(&best) { next } else { best })
        .unwrap_or(empty)
}

/// Bytes of UTF-8 over bytes that zlib makes of them: large for repetitions.
pub fn compression_ratio(text: &str) -> f32 {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    compressed.map_or(1.0, |compressed| text.len() as f32 / compressed.len().max(1) as f32)
}
