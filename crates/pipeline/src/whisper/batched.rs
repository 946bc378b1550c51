use std::ops::Range;

use audio::Mel;
use wire::DecodingOptions;

use super::decode::decode_together;
use super::fallback::{at_temperature, fall_back, first_temperature};
use super::source::{Source, Window, encode_windows};
use super::steps::State;
use super::timing::align;
use super::transcriber::Transcriber;
use crate::packing::pack;
use crate::steps::{Found, Observer, Step, sample};
use crate::{StageError, timings};

/// Voice that a window's text ended before is listened to on its own, in frames.
const UNFINISHED_VOICE: usize = 50;

/// Speech packed into windows that begin and end in pauses, several decoded
/// together. No window is told what the one before said: they are decoded at
/// the same time. What is wrong with one (a loop, a gap, an unsure text) is
/// repaired alone.
pub fn run(
    transcriber: &Transcriber,
    mut source: Source,
    mut state: State,
    skip: &[u64],
    observer: &mut dyn Observer,
) -> Result<(), StageError> {
    let settings = DecodingOptions { condition_on_previous_text: false, ..transcriber.settings.clone() };
    let transcriber = &Transcriber { settings: &settings, ..*transcriber };
    // Most windows are shorter than what the model hears: silence behind them,
    // as in its training, costs fewer errors than the zeros of the reference.
    source.fill = audio::silence(source.recording.log_mel_maximum);
    let longest = transcriber.model.config.window_frames();
    let within = source.start..source.content;
    let Source { recording, speech, voiced, .. } = &source;
    let mut windows = pack(recording, *speech, voiced, &within, longest, settings.language_per_region)?;
    // A point of the other strategy may lie within a window.
    windows.retain(|window| window.end > state.seek);
    if let Some(first) = windows.first_mut() {
        first.start = first.start.max(state.seek);
    }
    if state.seek > 0 {
        state.prompt.reset();
    }
    let mut rest = &windows[..];
    // Spectrograms of the windows that come next.
    let mut prepared = Vec::new();
    while let Some(first) = rest.first() {
        if skip.contains(&sample(first.start)) {
            rest = &rest[1..];
            prepared.clear();
            state.seek = first.end;
            observer.step(Step::Found(Found { point: state.point(source.content), ..Found::default() }))?;
            continue;
        }
        // The text that the user began with is said to the first window alone.
        let most = if state.prompt.is_reset() { observer.batch_size().max(1) } else { 1 };
        let skipped = |window: &Range<usize>| skip.contains(&sample(window.start));
        let batch = rest.iter().take(most).take_while(|window| !skipped(window)).count();
        let (batch, later) = rest.split_at(batch);
        rest = later;
        let log_mels = std::mem::take(&mut prepared);
        let ahead = if transcriber.model.device.is_cpu() { 0 } else { later.len().min(batch.len()) };
        // A card computes while the processor prepares what comes next.
        rayon::in_place_scope(|scope| {
            if ahead > 0 {
                // What can't be prepared is tried again when it is needed, and says then why it can't be.
                scope.spawn(|_| prepared = source.log_mels(&later[..ahead]).unwrap_or_default());
            }
            read_batch(transcriber, &source, &mut state, batch, log_mels, observer)
        })?;
    }
    Ok(())
}

/// The text of windows that are decoded together. `log_mels` has the spectrograms of the first of them; those of the others
/// are computed here.
fn read_batch(
    transcriber: &Transcriber,
    source: &Source,
    state: &mut State,
    batch: &[Range<usize>],
    mut log_mels: Vec<Mel>,
    observer: &mut dyn Observer,
) -> Result<(), StageError> {
    let Transcriber { model, settings, control, .. } = *transcriber;
    let begins = |window: &Range<usize>, windows| Step::Began { position: sample(window.start), windows };
    observer.step(begins(&batch[0], batch.len()))?;
    log_mels.truncate(batch.len());
    let missing = || source.log_mels(&batch[log_mels.len()..]);
    let missing = control.timings().of(timings::LOG_MEL, missing)?;
    log_mels.extend(missing);
    let audio = encode_windows(model, log_mels, control)?;
    let prompt = state.prompt.tokens().to_vec();
    let languages = transcriber.languages(&audio)?;
    let own: Vec<_> = languages.iter().map(|language| Transcriber { language, ..*transcriber }).collect();
    let mut options: Vec<_> =
        own.iter().zip(batch).map(|(own, frames)| own.window_options(&prompt, frames.start)).collect();
    // The text goes on with the first window's.
    options[0].is_live = true;
    let temperature = first_temperature(settings);
    let at_first: Vec<_> = options.iter().map(|options| at_temperature(options, temperature)).collect();
    let firsts = decode_together(model, &audio, &at_first, control)?;
    let mut decoded = Vec::with_capacity(batch.len());
    for (number, (frames, first)) in batch.iter().zip(firsts).enumerate() {
        if batch.len() > 1 {
            observer.step(begins(frames, 1))?;
        }
        let audio = audio.narrow(0, number, 1)?;
        decoded.push(fall_back(first, model, &audio, &options[number], settings, control)?);
    }
    if batch.len() > 1 {
        observer.step(begins(&batch[0], batch.len()))?;
    }
    let said: Vec<_> = own
        .iter()
        .zip(&decoded)
        .zip(batch)
        .map(|((own, decoded), frames)| own.said(decoded, frames.len()))
        .collect();
    let words = align(model, &audio, &said, control)?;
    for (number, ((frames, decoded), words)) in batch.iter().zip(decoded).zip(words).enumerate() {
        if batch.len() > 1 {
            observer.step(begins(frames, 1))?;
        }
        let transcriber = &own[number];
        let audio = audio.narrow(0, number, 1)?;
        let window = Window { audio, seek: frames.start, frames: frames.len() };
        let mut found = transcriber.write_with(source, state, window, decoded, words)?;
        while let Some(rest) = unfinished(source, state.seek, frames.end) {
            let window = source.listen(rest, model, control)?;
            let decoded = transcriber.decode(&window, state.prompt.tokens())?;
            found.add(transcriber.write(source, state, window, decoded)?);
        }
        state.seek = frames.end;
        state.prompt.reset();
        found.point = state.point(source.content);
        observer.step(Step::Found(found))?;
    }
    Ok(())
}

/// The part of a window behind its text, where there is enough voice in it.
fn unfinished(source: &Source, seek: usize, end: usize) -> Option<Range<usize>> {
    let start = source.next_start(seek).filter(|start| *start < end)?;
    let voice: usize =
        source.voiced.iter().map(|run| run.end.min(end).saturating_sub(run.start.max(start))).sum();
    (voice >= UNFINISHED_VOICE).then_some(start..end)
}
