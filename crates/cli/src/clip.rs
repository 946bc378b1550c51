//! `steno clip`: a part of a recording as a sound file.

use std::path::{Path, PathBuf};

use clap::Args;
use supervisor::player::Player;
use transcript::{Span, Time};
use wire::ErrorCode;

use crate::args::EXIT_CODES;
use crate::console::Console;
use crate::ended::Ended;
use crate::{times, values};

const LONG: &str = "\
Save a part of a recording as a sound file.

OUT ends in .wav (16 bits) or .flac, which needs ffmpeg. The sound has the recording's own sample rate and \
channels; more than two are mixed into one. The file is written whole or not at all.";

/// Save a part of a recording as a sound file
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Clip {
    /// The recording
    pub recording: PathBuf,

    /// The file to write
    pub out: PathBuf,

    /// Start of the part: seconds, or a time such as 1:30 [default: the recording's start]
    #[arg(long, value_parser = times::parse, value_name = "SECONDS")]
    pub from: Option<Time>,

    /// End of the part [default: the recording's end]
    #[arg(long, value_parser = times::parse, value_name = "SECONDS")]
    pub to: Option<Time>,

    /// Number of the audio track, counted from 1 [default: the file's default track]
    #[arg(long, value_name = "N", value_parser = values::track)]
    pub track: Option<usize>,

    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

pub fn run(args: &Clip) -> Ended {
    let end = args.to.unwrap_or(Time::from_millis(u32::MAX));
    let span = Span::new(args.from.unwrap_or(Time::ZERO), end);
    if span.start >= span.end {
        return Ended::Usage("--to must be later than --from".into());
    }
    // The player has a working folder of its own.
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    match Player::default().clip(&whole(&args.recording), args.track, span, &whole(&args.out), args.force) {
        Ok(()) => {
            Console::new(false).info(&format!("written to {}", wire::shown(&args.out)));
            Ended::Done
        }
        Err(failure) if failure.code == ErrorCode::OutputExists => {
            failure.remedy("Use --force to replace it.").into()
        }
        Err(failure) => failure.into(),
    }
}
