//! One job's progress in words: a line that is redrawn on a terminal, and now
//! and then a plain line where there is none.

use std::time::{Duration, Instant};

use transcript::Time;
use wire::{Progress, Stage};

use crate::console::Console;
use crate::times::{clock, wait};

/// Often enough to look alive, seldom enough to cost nothing.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Plain lines come at each tenth of a recording, or, where its length is not
/// known, at each ten minutes of it.
const PLAIN_STEPS: u64 = 10;
const PLAIN_INTERVAL: Time = Time::from_millis(10 * 60 * 1000);

#[derive(Debug)]
pub struct ProgressLine {
    name: String,
    last_drawn: Option<Instant>,
    last_plain: Option<(Stage, u64)>,
}

impl ProgressLine {
    pub fn new(name: String) -> Self {
        Self { name, last_drawn: None, last_plain: None }
    }

    pub fn show(&mut self, progress: &Progress, console: &mut Console) {
        if console.redraws() {
            if self.last_drawn.is_none_or(|last| last.elapsed() >= REDRAW_INTERVAL) {
                self.last_drawn = Some(Instant::now());
                console.redraw(&format!("{}: {}", self.name, words(progress)));
            }
        } else if self.is_due(progress) {
            console.info(&format!("{}: {}", self.name, words(progress)));
        }
    }

    fn is_due(&mut self, progress: &Progress) -> bool {
        let step = match progress.duration.filter(|duration| *duration > Time::ZERO) {
            Some(duration) => {
                u64::from(progress.position.millis()) * PLAIN_STEPS / u64::from(duration.millis())
            }
            None => u64::from(progress.position.millis() / PLAIN_INTERVAL.millis()),
        };
        let now = Some((progress.stage, step));
        let due = self.last_plain != now;
        self.last_plain = now;
        due
    }
}

pub fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::SpeechModel => "loading the model",
        Stage::SpeakerModel => "loading the speaker model",
        Stage::Preprocess => "reading",
        Stage::Transcribe => "transcribing",
        Stage::Diarize => "identifying speakers",
        Stage::Align => "aligning words",
        Stage::EmbeddingModel => "loading the embedding model",
        Stage::Embed => "embedding texts",
        Stage::Adapt => "adapting the model",
    }
}

/// `transcribing 12:34 of 1:00:00 (20 %), 3.4 times real time, 14 min left`
fn words(progress: &Progress) -> String {
    let mut text = stage_name(progress.stage).to_string();
    if progress.stage.is_model() {
        return text;
    }
    match progress.duration.filter(|duration| *duration > Time::ZERO) {
        Some(duration) => {
            let percent = (progress.position.seconds() / duration.seconds() * 100.0).min(100.0).floor();
            text += &format!(" {} of {} ({percent:.0} %)", clock(progress.position), clock(duration));
        }
        None => text += &format!(" {}", clock(progress.position)),
    }
    if let Some(speed) = progress.speed.filter(|speed| speed.is_finite() && *speed > 0.0) {
        text += &format!(", {speed:.1} times real time");
    }
    if let Some(left) = progress.left.filter(|left| left.is_finite()) {
        text += &format!(", {} left", wait(f64::from(left)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(stage: Stage, position: u32, duration: Option<u32>) -> Progress {
        Progress {
            stage,
            position: Time::from_millis(position),
            duration: duration.map(Time::from_millis),
            speed: None,
            left: None,
        }
    }

    #[test]
    fn the_line_says_stage_position_speed_and_time_left() {
        let full = Progress {
            speed: Some(3.42),
            left: Some(840.0),
            ..progress(Stage::Transcribe, 754_000, Some(3_600_000))
        };
        assert_eq!(words(&full), "transcribing 12:34 of 1:00:00 (20 %), 3.4 times real time, 14 min left");
        assert_eq!(words(&progress(Stage::SpeechModel, 0, None)), "loading the model");
        assert_eq!(words(&progress(Stage::Preprocess, 61_000, None)), "reading 1:01");
        // Neither a length of zero nor a speed of infinity makes nonsense.
        let odd = Progress {
            speed: Some(f32::INFINITY),
            left: Some(f32::NAN),
            ..progress(Stage::Transcribe, 1000, Some(0))
        };
        assert_eq!(words(&odd), "transcribing 0:01");
    }

    #[test]
    fn plain_lines_come_at_tenths_and_new_stages() {
        let mut line = ProgressLine::new("a".into());
        let due: Vec<bool> = [
            progress(Stage::SpeechModel, 0, None),
            progress(Stage::Transcribe, 0, Some(1000)),
            progress(Stage::Transcribe, 99, Some(1000)),
            progress(Stage::Transcribe, 100, Some(1000)),
            progress(Stage::Transcribe, 150, Some(1000)),
            progress(Stage::Align, 150, Some(1000)),
        ]
        .iter()
        .map(|progress| line.is_due(progress))
        .collect();
        assert_eq!(due, [true, true, false, true, false, true]);
    }
}
