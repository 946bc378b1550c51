use super::source::Source;
use super::steps::State;
use super::transcriber::Transcriber;
use crate::StageError;
use crate::steps::{Found, Observer, Step, sample};

/// Window after window, each beginning where the last one's text ended
/// (openai/whisper's `transcribe`).
pub fn run(
    transcriber: &Transcriber,
    source: Source,
    mut state: State,
    skip: &[u64],
    observer: &mut dyn Observer,
) -> Result<(), StageError> {
    while let Some(seek) = source.next_start(state.seek) {
        let frames = source.longest_window(seek);
        if skip.contains(&sample(seek)) {
            state.seek = frames.end;
            observer.step(Step::Found(Found { point: state.point(source.content), ..Found::default() }))?;
            continue;
        }
        observer.step(Step::Began { position: sample(seek), windows: 1 })?;
        let window = source.listen(frames, transcriber.model, transcriber.control)?;
        let languages = transcriber.languages(&window.audio)?;
        let language = languages.first().map_or(transcriber.language, String::as_str);
        let transcriber = Transcriber { language, ..*transcriber };
        let decoded = transcriber.decode_live(&window, state.prompt.tokens())?;
        let found = transcriber.write(&source, &mut state, window, decoded)?;
        observer.step(Step::Found(found))?;
    }
    Ok(())
}
