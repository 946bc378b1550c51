use transcript::Transcript;
use transcript::export::Options;
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
        let failures = match convert(file, &output, &request, &mut console) {
            Ok(lacking) => lacking,
            Err(Ended::Failed(failure)) => vec![failure],
            Err(ended) => return ended,
        };
        some_failed |= !failures.is_empty();
        for failure in failures {
            console.error(&failure.to_string());
        }
    }
    if some_failed { Ended::SomeFailed } else { Ended::Done }
}

/// What could not be written is returned; the rest is there.
fn convert(
    file: &std::path::Path,
    output: &Output,
    request: &Request,
    console: &mut Console,
) -> Result<Vec<Failure>, Ended> {
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
    let (request, lacking) = request.of(&transcript, file);
    for path in output.write(&transcript, &request)? {
        console.info(&format!("{}: written to {}", wire::shown(file), wire::shown(&path)));
    }
    Ok(lacking)
}
