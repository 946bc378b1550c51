use transcript::Transcript;
use transcript::export::{Format, Options};
use transcript::save::Existing;
use wire::{ErrorCode, Failure};

use crate::args::Export;
use crate::console::Console;
use crate::ended::{Ended, from_load};
use crate::outputs::{Destination, Output, Request, Taken, plan};

pub fn run(args: &Export) -> Ended {
    let place = match args.output.as_deref().map(Destination::from_output).unwrap_or(Ok(Destination::Beside))
    {
        Ok(place) => place,
        Err(text) => return Ended::Usage(text),
    };
    let request = Request {
        place,
        formats: args.format.clone(),
        existing: if args.force { Existing::Replace } else { Existing::Keep },
        options: Options {
            translation: args.bilingual,
            ..args.subtitles.options(args.reproducible, args.raw_text, &args.omit)
        },
        template: args.name_template.clone(),
        taken: Taken::default(),
    };
    if let Err(text) = request.check(args.files.len()) {
        return Ended::Usage(text);
    }
    if let Err(failure) = request.prepare() {
        return failure.into();
    }
    let mut console = Console::new(false);
    let mut some_failed = false;
    for (file, output) in args.files.iter().zip(plan(&args.files, &request, None)) {
        match convert(file, &output, &request, &mut console) {
            Ok(()) => {}
            Err(Ended::Failed(failure)) => {
                some_failed = true;
                console.error(&failure.to_string());
            }
            Err(ended) => return ended,
        }
    }
    if some_failed { Ended::SomeFailed } else { Ended::Done }
}

fn convert(
    file: &std::path::Path,
    output: &Output,
    request: &Request,
    console: &mut Console,
) -> Result<(), Ended> {
    output.check(request.existing)?;
    let transcript = Transcript::load(file).map_err(|error| from_load(file, &error))?;
    if !transcript.complete {
        let text = "This transcript is partial: its job ended early.";
        console.warning(&format!("{}: {text}", wire::shown(file)));
    }
    if request.options.translation && transcript.segments.iter().all(|segment| segment.translation.is_none())
    {
        let text =
            "This transcript has no translation: add one with `steno translate`, or leave out --bilingual.";
        return Err(Failure::new(ErrorCode::BadSettings, text).file(file).into());
    }
    if request.formats.contains(&Format::Rttm) && transcript::speakers::current_turns(&transcript).is_empty()
    {
        let text = "This transcript has no speakers, which rttm lists: find them with `steno speakers`, or leave out rttm.";
        return Err(Failure::new(ErrorCode::BadSettings, text).file(file).into());
    }
    let of_chapters = |format: &Format| matches!(format, Format::Chapters | Format::ChaptersVtt);
    if request.formats.iter().any(of_chapters) && transcript.placed_chapters().is_empty() {
        let text = "This transcript has no chapters.";
        let failure = Failure::new(ErrorCode::NoChapters, text).file(file);
        return Err(failure.remedy("Find them first: `steno chapters --save`, or in the window.").into());
    }
    for path in output.write(&transcript, request)? {
        console.info(&format!("{}: written to {}", wire::shown(file), wire::shown(&path)));
    }
    Ok(())
}
