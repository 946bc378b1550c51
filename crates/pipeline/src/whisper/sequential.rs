use std::ops::Range;

use audio::{LogMel, Recording};
use candle_core::Tensor;
use models::whisper::{Vocabulary, Whisper};
use transcript::{Segment, Span, Suspicion, Task, Time, Word};
use wire::DecodingOptions;

use super::decode::{Decoded, WindowOptions, decode};
use super::fallback::{decode_with_fallback, is_bad, is_silence, mix};
use super::loops::{has_loop, is_too_fast, without_loops};
use super::rules::TIMESTAMP_STEP;
use super::word_times::{Passage, WordTimes};
use crate::{Control, StageError};

/// Frames of log-mel per second.
const FRAMES_PER_SECOND: f64 = 100.0;
/// Silence longer than this before the next speech is skipped, in frames.
/// Shorter pauses stay, so that a window begins as the model has learned it.
const SKIPPED_SILENCE: usize = 100;
/// Speech of this length that a window left without text is looked at again, in frames.
const MISSED_SPEECH: usize = 150;
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
pub type Speech<'a> = Option<&'a [Range<usize>]>;

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
            let frames = self.model.config.window_frames().min(content - seek);
            let window = self.listen(recording, &mut mel, seek, frames)?;
            let decoded = self.decode(&window, prompt.tokens())?;
            if is_silence(&decoded, self.settings) {
                seek += frames;
                on_window(Found { position: time(seek), ..Found::default() });
                continue;
            }
            let mut reading = self.read(&window, decoded, &word_times)?;
            let mut next = reading.next;
            let mut fillings = Vec::new();
            if let Some(speech) = speech.filter(|_| self.settings.repair) {
                reading = self.read_again(reading, &window, prompt.tokens(), &word_times, speech)?;
                for gap in gaps(speech, &reading.passages, seek) {
                    let window = self.listen(recording, &mut mel, gap.start, gap.len())?;
                    fillings.extend(self.fill_gap(&window, &word_times)?);
                }
                next = first_missed(speech, reading.text_end, seek, reading.next).unwrap_or(reading.next);
            }
            // A window must move on, whatever its times say.
            let next = next.max(seek + 1);
            prompt.add(&reading.passages, reading.decoded.temperature, self.settings);
            word_times = reading.word_times.clone();
            let mut found = Found { position: time(next.min(content)), ..Found::default() };
            let mut passages: Vec<(&Passage, &Decoded)> = std::iter::once(&reading)
                .chain(&fillings)
                .flat_map(|reading| reading.passages.iter().map(|passage| (passage, &reading.decoded)))
                .collect();
            passages.sort_by(|(a, _), (b, _)| a.start.total_cmp(&b.start));
            for (passage, decoded) in passages {
                let Some(segment) = self.segment(passage, decoded, written_to) else { continue };
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

    /// What the model hears of the recording in `frames` frames from `seek` on.
    fn listen(
        &self,
        recording: &Recording,
        mel: &mut LogMel,
        seek: usize,
        frames: usize,
    ) -> Result<Window, StageError> {
        let mut log_mel = recording.log_mel_window(mel, seek, self.model.config.window_frames())?;
        log_mel.fill_from(frames, 0.0);
        Ok(Window { audio: encode_window(self.model, log_mel, self.control)?, seek, frames })
    }

    fn decode(&self, window: &Window, prompt: &[u32]) -> Result<Decoded, models::Error> {
        let options = self.window_options(prompt, window.seek);
        decode_with_fallback(self.model, &window.audio, &options, self.settings, self.control)
    }

    fn window_options<'a>(&'a self, prompt: &'a [u32], seek: usize) -> WindowOptions<'a> {
        let settings = self.settings;
        WindowOptions {
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
        }
    }

    /// Cuts a window's text into passages with their times.
    fn read(&self, window: &Window, decoded: Decoded, word_times: &WordTimes) -> Result<Reading, StageError> {
        let Window { seek, frames, .. } = *window;
        let mut word_times = word_times.clone();
        let Cut { mut passages, advance, open_end } =
            cut(&self.model.vocabulary, &decoded.tokens, seek, frames);
        let mut next = seek + advance;
        // Before word times move the ends: they tend to end early.
        let text_end = passages.iter().map(|passage| passage.end).fold(0.0, f64::max);
        if self.settings.word_times {
            word_times.add(self, &window.audio, &mut passages, seek, frames)?;
            let end = passages.iter().rev().find_map(Passage::last_word_end);
            let end = end.or(passages.last().map(|passage| passage.end));
            if open_end && let Some(end) = end.filter(|end| *end > seek as f64 / FRAMES_PER_SECOND) {
                next = (end * FRAMES_PER_SECOND).round() as usize;
            }
        }
        Ok(Reading { decoded, passages, text_end, next, word_times })
    }

    /// Beams like short texts: one that skips a sentence may win over the one
    /// that has it. Where a beam left speech without text between its
    /// passages, the greedy text is taken if it has more of it.
    fn read_again(
        &self,
        reading: Reading,
        window: &Window,
        prompt: &[u32],
        word_times: &WordTimes,
        speech: &[Range<usize>],
    ) -> Result<Reading, StageError> {
        let missed = |reading: &Reading| -> usize {
            gaps(speech, &reading.passages, window.seek).iter().map(Range::len).sum()
        };
        let before = missed(&reading);
        let beams = self.settings.beam_size > 1 && reading.decoded.temperature == 0.0;
        if !beams || before == 0 {
            return Ok(reading);
        }
        let greedy = WindowOptions { beam_size: 1, ..self.window_options(prompt, window.seek) };
        let decoded = decode(self.model, &window.audio, &greedy, self.control)?;
        if is_bad(&decoded, self.settings) || is_silence(&decoded, self.settings) {
            return Ok(reading);
        }
        let other = self.read(window, decoded, word_times)?;
        Ok(if missed(&other) < before { other } else { reading })
    }

    /// What a stretch of speech that was passed over says on its own.
    fn fill_gap(&self, window: &Window, word_times: &WordTimes) -> Result<Option<Reading>, StageError> {
        let decoded = self.decode(window, &[])?;
        if is_bad(&decoded, self.settings) || is_silence(&decoded, self.settings) {
            return Ok(None);
        }
        self.read(window, decoded, word_times).map(Some)
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
        let heard = |region: &Range<usize>| {
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

/// A window's text with its times, and where it leads.
struct Reading {
    decoded: Decoded,
    passages: Vec<Passage>,
    /// End of the last passage by its time token, in seconds.
    text_end: f64,
    /// First frame of the next window.
    next: usize,
    word_times: WordTimes,
}

/// A stretch of the recording as the model hears it.
struct Window {
    audio: Tensor,
    /// First frame, and how many of them are not filled up.
    seek: usize,
    frames: usize,
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
    let single_end = matches!(tokens, [.., before, last] if !is_time(before) && is_time(last));
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
fn first_missed(speech: &[Range<usize>], written_to: f64, seek: usize, next: usize) -> Option<usize> {
    let end = (written_to * FRAMES_PER_SECOND).ceil() as usize;
    // Without progress the same window would come again.
    if end < seek + MISSED_SPEECH || end >= next {
        return None;
    }
    let missed = |region: &Range<usize>| region.end.min(next).saturating_sub(region.start.max(end));
    let total: usize = speech.iter().map(missed).sum();
    (total >= MISSED_SPEECH)
        .then(|| speech.iter().find(|region| missed(region) > 0))
        .flatten()
        .map(|region| region.start.max(end))
}

/// Stretches of speech from `start` to the end of the last passage, in frames,
/// that lie under no passage and are long enough to be looked at again.
fn gaps(speech: &[Range<usize>], passages: &[Passage], start: usize) -> Vec<Range<usize>> {
    let frame = |seconds: f64| (seconds * FRAMES_PER_SECOND) as usize;
    let mut gaps = Vec::new();
    let mut from = start;
    for passage in passages {
        let (begin, end) = passage.reach();
        let to = frame(begin);
        for region in speech.iter().filter(|region| region.end > from && region.start < to) {
            let gap = region.start.max(from)..region.end.min(to);
            if gap.len() >= MISSED_SPEECH {
                gaps.push(gap);
            }
        }
        from = from.max(frame(end));
    }
    gaps
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
