use audio::{LogMel, Recording};
use candle_core::Tensor;
use models::whisper::{Vocabulary, Whisper};
use transcript::{Segment, Span, Suspicion, Task, Time, Word};
use wire::DecodingOptions;

use super::decode::{Decoded, WindowOptions};
use super::fallback::{decode_with_fallback, is_silence, mix};
use super::loops::{has_loop, is_too_fast, without_loops};
use super::rules::TIMESTAMP_STEP;
use super::word_times::{Passage, WordTimes};
use crate::{Control, StageError};

/// Frames of log-mel per second.
const FRAMES_PER_SECOND: f64 = 100.0;
/// Silence longer than this before the next speech is skipped, in frames.
/// Shorter pauses stay, so that a window begins as the model has learned it.
const SKIPPED_SILENCE: usize = 100;
/// Speech of this length that a window left without text is gone back to, in frames.
const MISSED_SPEECH: usize = 100;
/// Text over silence that the model was this unsure of is left out.
const DOUBTFUL_LOG_PROBABILITY: f32 = -0.7;
const DOUBTFUL_NO_SPEECH: f32 = 0.3;

/// Window after window, each beginning where the last one's text ended
/// (openai/whisper's `transcribe`).
#[derive(Debug)]
pub struct Sequential<'a> {
    pub model: &'a Whisper,
    pub settings: &'a DecodingOptions,
    pub task: Task,
    /// ISO code.
    pub language: &'a str,
    /// Same recording, same seed.
    pub seed: u64,
    pub control: &'a Control,
}

/// Where speech is, in frames; `None`: not known, everything may be.
pub type Speech<'a> = Option<&'a [std::ops::Range<usize>]>;

/// What one window gave.
#[derive(Debug, Default)]
pub struct Found {
    pub segments: Vec<Segment>,
    /// Text over silence that the model itself doubted.
    pub discarded: Vec<Segment>,
    /// Everything before this is done.
    pub position: Time,
}

impl Sequential<'_> {
    /// Calls `on_window` after each window; times are those of the recording.
    pub fn run(
        &self,
        recording: &Recording,
        speech: Speech,
        on_window: &mut dyn FnMut(Found),
    ) -> Result<(), StageError> {
        let content = recording.pcm.content_frames();
        let mut mel = LogMel::new(self.model.config.num_mel_bins);
        let mut prompt = Prompt::new(&self.model.vocabulary, self.settings);
        let mut word_times = WordTimes::default();
        let mut written_to = Time::ZERO;
        let mut seek = 0;
        while seek < content {
            if let Some(speech) = speech {
                match speech.iter().find(|region| region.end > seek) {
                    None => break,
                    Some(next) if next.start > seek + SKIPPED_SILENCE => seek = next.start,
                    Some(_) => {}
                }
            }
            let window = self.window(recording, &mut mel, seek, content, prompt.tokens())?;
            let Window { audio, frames, decoded } = window;
            if is_silence(&decoded, self.settings) {
                seek += frames;
                on_window(Found { position: time(seek), ..Found::default() });
                continue;
            }
            let Cut { mut passages, advance, open_end } =
                cut(&self.model.vocabulary, &decoded.tokens, seek, frames);
            let mut next = seek + advance;
            if self.settings.word_times {
                word_times.add(self, &audio, &mut passages, seek, frames)?;
                let end = passages.iter().rev().find_map(Passage::last_word_end);
                let end = end.or(passages.last().map(|passage| passage.end));
                if open_end && let Some(end) = end.filter(|end| *end > seek as f64 / FRAMES_PER_SECOND) {
                    next = (end * FRAMES_PER_SECOND).round() as usize;
                }
            }
            // A window must move on, whatever its times say.
            next = next.max(seek + 1);
            if let Some(speech) = speech.filter(|_| self.settings.repair) {
                next = first_missed(speech, &passages, seek, next).unwrap_or(next);
            }
            prompt.add(&passages, decoded.temperature, self.settings);
            let mut found = Found { position: time(next.min(content)), ..Found::default() };
            for passage in passages {
                let Some(segment) = self.segment(&passage, &decoded, written_to) else { continue };
                self.judge(segment, speech, &mut found);
                if let Some(last) = found.segments.last() {
                    written_to = last.end;
                }
            }
            on_window(found);
            seek = next;
        }
        Ok(())
    }

    fn window(
        &self,
        recording: &Recording,
        mel: &mut LogMel,
        seek: usize,
        content: usize,
        prompt: &[u32],
    ) -> Result<Window, StageError> {
        let config = &self.model.config;
        let frames = config.window_frames().min(content - seek);
        let log_mel = recording.log_mel_window(mel, seek, config.window_frames())?;
        let audio = encode_window(self.model, log_mel, self.control)?;
        let settings = self.settings;
        let options = WindowOptions {
            language: self.language,
            task: self.task,
            timestamps: settings.timestamps,
            prompt,
            beam_size: settings.beam_size.max(1),
            best_of: settings.best_of.max(1),
            patience: settings.patience.unwrap_or(1.0),
            length_penalty: settings.length_penalty,
            max_tokens: settings.max_tokens,
            max_initial_timestamp: settings.max_initial_timestamp,
            suppress: &settings.suppress_tokens,
            temperature: 0.0,
            seed: mix(mix(self.seed, settings.seed), seek as u64),
        };
        let decoded = decode_with_fallback(self.model, &audio, &options, settings, self.control)?;
        Ok(Window { audio, frames, decoded })
    }

    /// The passage as a segment that begins at `not_before` at the earliest;
    /// `None` where nothing is said or it takes no time.
    fn segment(&self, passage: &Passage, decoded: &Decoded, not_before: Time) -> Option<Segment> {
        let text = self.model.vocabulary.decode(&passage.tokens).trim().to_owned();
        if text.is_empty() || passage.start >= passage.end {
            return None;
        }
        let start = Time::from_seconds(passage.start).max(not_before);
        let end = Time::from_seconds(passage.end).max(start);
        let clamp = |seconds: f64| Time::from_seconds(seconds).clamp(start, end);
        let words = passage.words.iter().map(|word| Word {
            text: word.text.clone(),
            start: clamp(word.start),
            end: clamp(word.end),
            probability: word.probability,
        });
        Some(Segment {
            start,
            end,
            text,
            words: words.collect(),
            temperature: decoded.temperature,
            mean_log_probability: decoded.mean_log_probability,
            no_speech_probability: decoded.no_speech_probability,
            compression_ratio: decoded.compression_ratio,
            ..Segment::default()
        })
    }

    /// Marks what should not be trusted, repairs loops, and leaves out what
    /// neither the model nor the ear believes in.
    fn judge(&self, mut segment: Segment, speech: Speech, found: &mut Found) {
        if !self.settings.repair {
            found.segments.push(segment);
            return;
        }
        if has_loop(&segment.text) {
            segment.suspicions.push(Suspicion::Loop);
            if let Some(text) = without_loops(&segment.text) {
                segment.raw_text = Some(std::mem::replace(&mut segment.text, text));
                // The words' times belong to the raw text.
                segment.words.clear();
            }
        }
        if is_too_fast(&segment.text, segment.start, segment.end) {
            segment.suspicions.push(Suspicion::TooFast);
        }
        let unsure = |limit| segment.mean_log_probability < limit;
        if self.settings.log_probability_threshold.is_some_and(unsure) {
            segment.suspicions.push(Suspicion::LowConfidence);
        }
        let span = Span::new(segment.start, segment.end);
        let heard = |region: &std::ops::Range<usize>| {
            Span::new(time(region.start), time(region.end)).overlap(span) > Time::ZERO
        };
        if speech.is_some_and(|speech| !speech.iter().any(heard)) {
            segment.suspicions.push(Suspicion::OverSilence);
            let doubtful = segment.mean_log_probability < DOUBTFUL_LOG_PROBABILITY
                || segment.no_speech_probability > DOUBTFUL_NO_SPEECH;
            if doubtful {
                found.discarded.push(segment);
                return;
            }
        }
        found.segments.push(segment);
    }
}

struct Window {
    audio: Tensor,
    frames: usize,
    decoded: Decoded,
}

/// Runs the encoder on one window of log-mel of the model's length:
/// (1, source positions, width).
pub fn encode_window(model: &Whisper, mel: audio::Mel, control: &Control) -> Result<Tensor, models::Error> {
    let mel = Tensor::from_vec(mel.data, (1, mel.n_mels, mel.frames), &candle_core::Device::Cpu)?
        .to_device(&model.device)?
        .to_dtype(model.dtype)?;
    model.encoder.forward(&mel, &|| {
        control.worked();
        !control.is_cancelled()
    })
}

/// A window's tokens as passages with times.
#[derive(Debug)]
struct Cut {
    passages: Vec<Passage>,
    /// How far the next window begins after this one, in frames.
    advance: usize,
    /// False where the last passage ended in a time and nothing after it:
    /// the rest of the window is silent.
    open_end: bool,
}

fn cut(vocabulary: &Vocabulary, tokens: &[u32], seek: usize, frames: usize) -> Cut {
    let offset = seek as f64 / FRAMES_PER_SECOND;
    let is_time = |token: &u32| vocabulary.is_timestamp(*token);
    let seconds = |token: u32| f64::from(token - vocabulary.timestamp_begin) * TIMESTAMP_STEP;
    let single_end =
        matches!(tokens, [.., before, last] if !is_time(before) && is_time(last));
    let mut ends: Vec<usize> =
        (1..tokens.len()).filter(|i| is_time(&tokens[i - 1]) && is_time(&tokens[*i])).collect();
    if ends.is_empty() {
        let last = tokens.iter().rev().find(|token| is_time(token));
        let length = match last {
            Some(token) if *token != vocabulary.timestamp_begin => seconds(*token),
            _ => frames as f64 / FRAMES_PER_SECOND,
        };
        let passage = Passage::new(tokens.to_vec(), offset, offset + length);
        return Cut { passages: vec![passage], advance: frames, open_end: !single_end };
    }
    if single_end {
        ends.push(tokens.len());
    }
    let mut passages = Vec::with_capacity(ends.len());
    let mut first = 0;
    for end in ends {
        let slice = &tokens[first..end];
        if let [start, .., stop] = slice
            && is_time(start)
            && is_time(stop)
        {
            passages.push(Passage::new(slice.to_vec(), offset + seconds(*start), offset + seconds(*stop)));
        }
        first = end;
    }
    let advance = if single_end {
        frames
    } else {
        // The unfinished rest is decoded again from the last time on.
        (seconds(tokens[first - 1]) * FRAMES_PER_SECOND).round() as usize
    };
    Cut { passages, advance, open_end: !single_end }
}

/// Where speech begins that a window passed over after its last text. `None`
/// where there is too little of it to be worth another look.
fn first_missed(
    speech: &[std::ops::Range<usize>],
    passages: &[Passage],
    seek: usize,
    next: usize,
) -> Option<usize> {
    let end = passages.iter().map(|passage| passage.end).fold(0.0, f64::max);
    let end = (end * FRAMES_PER_SECOND).ceil() as usize;
    // Without progress the same window would come again.
    if end < seek + MISSED_SPEECH || end >= next {
        return None;
    }
    let missed = |region: &std::ops::Range<usize>| {
        region.end.min(next).saturating_sub(region.start.max(end))
    };
    let total: usize = speech.iter().map(missed).sum();
    (total >= MISSED_SPEECH)
        .then(|| speech.iter().find(|region| missed(region) > 0))
        .flatten()
        .map(|region| region.start.max(end))
}

/// What the model is told was said before.
#[derive(Debug)]
struct Prompt {
    /// Kept at the front of every window's prompt.
    vocabulary: Vec<u32>,
    tokens: Vec<u32>,
}

impl Prompt {
    fn new(vocabulary: &Vocabulary, settings: &DecodingOptions) -> Self {
        let encode = |text: &str| vocabulary.encode(&format!(" {}", text.trim()));
        let words = settings.vocabulary.join(", ");
        let words = if words.trim().is_empty() { Vec::new() } else { encode(&words) };
        let initial = settings.initial_prompt.as_deref().filter(|text| !text.trim().is_empty());
        let mut tokens = words.clone();
        tokens.extend(initial.map(encode).unwrap_or_default());
        Self { vocabulary: words, tokens }
    }

    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn add(&mut self, passages: &[Passage], temperature: f32, settings: &DecodingOptions) {
        /// Half of the decoder's positions; more would be cut from the front,
        /// the user's words first.
        const LONGEST: usize = 223;
        if !settings.condition_on_previous_text || temperature > settings.prompt_reset_temperature {
            self.tokens = self.vocabulary.clone();
            return;
        }
        self.tokens.extend(passages.iter().flat_map(|passage| passage.tokens.iter().copied()));
        let fixed = self.vocabulary.len().min(LONGEST / 2);
        let excess = self.tokens.len().saturating_sub(LONGEST);
        if excess > 0 {
            let to = (fixed + excess).min(self.tokens.len());
            self.tokens.drain(fixed..to);
        }
    }
}

fn time(frame: usize) -> Time {
    Time::from_seconds(frame as f64 / FRAMES_PER_SECOND)
}
