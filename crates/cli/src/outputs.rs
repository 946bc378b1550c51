//! Where results go: which names, which folder, or standard output.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use transcript::Transcript;
use transcript::export::{self, Format, Options};
use transcript::naming::{NameFacts, NameTemplate, today};
use transcript::save::{self, Existing};
use wire::{ErrorCode, Failure};

use crate::ended::{Ended, from_save};

/// Why chapters are none of the formats of a text that was just written.
pub const NO_CHAPTERS_YET: &str =
    "chapters are found in a saved transcript: save it as json, then run `steno chapters`";

/// What `--format`, `--output`, `--force`, `--reproducible` and `--raw-text` ask for.
#[derive(Debug, Clone)]
pub struct Request {
    pub place: Destination,
    pub formats: Vec<Format>,
    pub existing: Existing,
    pub options: Options,
    /// How files are named; `None`: as the recording.
    pub template: Option<NameTemplate>,
    /// The names that no other result of this run gets.
    pub taken: Taken,
}

/// Files that this run reads or writes. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Taken(Arc<Mutex<HashSet<String>>>);

impl Taken {
    /// Compared without case, since some file systems do.
    fn key(path: &Path) -> String {
        path.to_string_lossy().to_lowercase()
    }

    fn add<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.extend(paths.into_iter().map(|path| Self::key(path)));
    }

    /// The first of the names whose files are not taken, which then are.
    fn first_free(
        &self,
        names: impl Iterator<Item = OsString>,
        folder: &Path,
        formats: &[Format],
    ) -> (OsString, Vec<(Format, PathBuf)>) {
        let mut last = (OsString::new(), Vec::new());
        for name in names {
            let files = files(folder, &name, formats);
            let is_free = {
                let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                files.iter().all(|(_, path)| !taken.contains(&Self::key(path)))
            };
            last = (name, files);
            if is_free {
                break;
            }
        }
        self.add(last.1.iter().map(|(_, path)| path));
        last
    }
}

/// A name, then with numbers.
fn numbered(name: OsString) -> impl Iterator<Item = OsString> {
    let others = name.clone();
    std::iter::once(name).chain((2..).map(move |number: u64| {
        let mut name = others.clone();
        name.push(format!("-{number}"));
        name
    }))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    /// Beside each input.
    Beside,
    Folder(PathBuf),
    /// Events are all that was asked for.
    Nowhere,
}

impl Destination {
    /// # Errors
    /// A sentence where `--output` names what can't be a folder.
    pub fn from_output(output: &Path) -> Result<Self, String> {
        if output == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let remedy = "--output names a folder. For a file of your choice, use --output - > FILE";
        if output.exists() && !output.is_dir() {
            return Err(format!("{}: This is not a folder. {remedy}", wire::shown(output)));
        }
        // A folder called talk.srt is certainly a mistake.
        let ending = output.extension().and_then(OsStr::to_str).unwrap_or_default();
        if !output.exists() && ending.parse::<Format>().is_ok() {
            return Err(format!("{}: This looks like a file. {remedy}", wire::shown(output)));
        }
        Ok(Self::Folder(output.into()))
    }
}

impl Request {
    /// # Errors
    /// A sentence where several formats or recordings would be one stream that
    /// no program could read.
    pub fn check(&self, inputs: usize) -> Result<(), String> {
        if self.place != Destination::Stdout {
            return Ok(());
        }
        match self.formats.as_slice() {
            [Format::Txt | Format::Json] => Ok(()),
            [_] if inputs <= 1 => Ok(()),
            [one] => Err(format!(
                "several transcripts can't be written to standard output as {one}: use --output FOLDER"
            )),
            _ => Err("several formats can't share standard output: use --output FOLDER".into()),
        }
    }

    /// Without the formats that list what a transcript has none of, and why each of these is left out.
    pub fn of(&self, transcript: &Transcript, file: &Path) -> (Self, Vec<Failure>) {
        let (mut formats, mut failures) = (Vec::new(), Vec::new());
        for format in &self.formats {
            match save::check_content(transcript, *format, file) {
                Ok(()) => formats.push(*format),
                Err(error) => {
                    let text = format!("Not written as {format}. {}", error.message());
                    failures.push(Failure::named(error.code(), &text, Some(error.remedy())).file(file));
                }
            }
        }
        (Self { formats, ..self.clone() }, failures)
    }

    /// Makes the folder, and finds out early whether it can be written to.
    pub fn prepare(&self) -> Result<(), Failure> {
        let Destination::Folder(folder) = &self.place else { return Ok(()) };
        make_folder(folder)?;
        save::check_writable(folder).map_err(|error| from_save(&error))
    }
}

/// Makes the folder of the results, and those above it.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        Failure::new(ErrorCode::OutputUnwritable, format!("The folder could not be created ({error})."))
            .remedy("Choose another folder.")
            .file(folder)
    })
}

/// Where one result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The folder for files, also for a partial result when the whole is for
    /// standard output.
    pub folder: PathBuf,
    /// What all its files begin with.
    pub name: OsString,
    pub files: Vec<(Format, PathBuf)>,
    /// The name differs from the recording's, because another one has that.
    pub renamed: bool,
    /// Something in the name is known only once the text is there: `files` is empty until then.
    pub template: Option<NameTemplate>,
}

impl Output {
    /// Fails before the work where it would fail after it.
    pub fn check(&self, existing: Existing) -> Result<(), Failure> {
        if self.files.is_empty() && self.template.is_none() {
            return Ok(());
        }
        for (_, path) in &self.files {
            save::check_free(path, existing).map_err(|error| from_save(&error))?;
        }
        save::check_writable(&self.folder).map_err(|error| from_save(&error))
    }

    /// The same names in another folder.
    pub fn in_folder(&self, folder: &Path, formats: &[Format]) -> Self {
        let files = if self.template.is_none() { files(folder, &self.name, formats) } else { Vec::new() };
        Self { folder: folder.into(), files, ..self.clone() }
    }

    /// Other names in the same folder; those that need the text are made when it is there. `language`: of
    /// the text, where it is known before.
    pub fn named_by(self, template: &NameTemplate, request: &Request, language: Option<&str>) -> Self {
        let date = today();
        let facts = NameFacts { name: &self.name, date: &date, language, model: None };
        match template.fill(&facts) {
            Some(name) => {
                let (name, files) = request.taken.first_free(numbered(name), &self.folder, &request.formats);
                Self { name, files, template: None, ..self }
            }
            None => Self { files: Vec::new(), template: Some(template.clone()), ..self },
        }
    }

    /// Writes the files that the request still asks for and returns them, or prints.
    pub fn write(&self, transcript: &Transcript, request: &Request) -> Result<Vec<PathBuf>, Ended> {
        if request.place == Destination::Stdout {
            for format in &request.formats {
                print(|out| export::export(transcript, *format, &request.options, out))?;
            }
            return Ok(Vec::new());
        }
        let mut written = Vec::new();
        let asked = |(format, _): &(Format, PathBuf)| request.formats.contains(format);
        for (format, path) in self.named(transcript, request).into_iter().filter(asked) {
            save::save(transcript, format, &request.options, &path, request.existing)
                .map_err(|error| from_save(&error))?;
            written.push(path);
        }
        Ok(written)
    }

    /// The files, of which all is known now.
    fn named(&self, transcript: &Transcript, request: &Request) -> Vec<(Format, PathBuf)> {
        let Some(template) = &self.template else { return self.files.clone() };
        let date = today();
        let name = template.fill(&NameFacts::of(&self.name, &date, transcript));
        let names = numbered(name.unwrap_or_else(|| self.name.clone()));
        request.taken.first_free(names, &self.folder, &request.formats).1
    }
}

/// Gives every input its names. The first one of a name gets it; another one
/// keeps its ending (`talk.wav.srt` beside `talk.srt`), and if that is taken
/// too it gets a number. Names that are made by a template get a number at once, and those that
/// need the text are made when it is there. Never names one of the inputs. `language`: of the text,
/// where it is known before.
pub fn plan(inputs: &[PathBuf], request: &Request, language: Option<&str>) -> Vec<Output> {
    let writes = matches!(request.place, Destination::Beside | Destination::Folder(_));
    let date = today();
    request.taken.add(inputs);
    inputs
        .iter()
        .map(|input| {
            let folder = match &request.place {
                Destination::Folder(folder) => folder.clone(),
                _ => input.parent().map(Path::to_path_buf).unwrap_or_default(),
            };
            let stem = input.file_stem().unwrap_or(OsStr::new("transcript"));
            let whole = input.file_name().unwrap_or(stem);
            let facts = NameFacts { name: stem, date: &date, language, model: None };
            let made = request.template.as_ref().filter(|_| writes).map(|template| template.fill(&facts));
            let (wanted, names): (_, Box<dyn Iterator<Item = OsString>>) = match made {
                Some(None) => {
                    let (name, template) = (stem.to_os_string(), request.template.clone());
                    return Output { folder, name, files: Vec::new(), renamed: false, template };
                }
                Some(Some(name)) => (name.clone(), Box::new(numbered(name))),
                None => {
                    let mut names = numbered(stem.to_os_string());
                    let first = names.next();
                    (
                        stem.to_os_string(),
                        Box::new(first.into_iter().chain([whole.to_os_string()]).chain(names)),
                    )
                }
            };
            let (name, files) = request.taken.first_free(names, &folder, &request.formats);
            let renamed = writes && name != wanted;
            Output { folder, name, files: if writes { files } else { Vec::new() }, renamed, template: None }
        })
        .collect()
}

fn files(folder: &Path, name: &OsStr, formats: &[Format]) -> Vec<(Format, PathBuf)> {
    let mut files: Vec<(Format, PathBuf)> = Vec::new();
    for format in formats {
        let mut file = name.to_os_string();
        file.push(".");
        file.push(format.extension());
        let path = folder.join(file);
        // A format that was asked for twice is written once.
        if !files.iter().any(|(_, other)| *other == path) {
            files.push((*format, path));
        }
    }
    files
}

/// Prints to standard output, whole, and finds out whether it arrived.
pub fn print(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Ended> {
    let mut out = BufWriter::new(io::stdout().lock());
    content(&mut out)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(place: Destination, formats: &[Format]) -> Request {
        Request {
            place,
            formats: formats.to_vec(),
            existing: Existing::Keep,
            options: Options::default(),
            template: None,
            taken: Taken::default(),
        }
    }

    fn check(inputs: &[&str], place: Destination, formats: &[Format], expected: &[&[&str]]) {
        let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
        let outputs = plan(&inputs, &request(place, formats), None);
        let found: Vec<Vec<&str>> = outputs
            .iter()
            .map(|output| output.files.iter().map(|(_, path)| path.to_str().unwrap()).collect())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_are_named_after_the_recording() {
        let (srt, json) = (Format::Srt, Format::Json);
        check(&["x/talk.mp3"], Destination::Beside, &[srt, json, srt], &[&["x/talk.srt", "x/talk.json"]]);
        check(&["talk.mp3"], Destination::Folder("out".into()), &[srt], &[&["out/talk.srt"]]);
        check(&["talk"], Destination::Beside, &[srt], &[&["talk.srt"]]);
        check(&["x/talk.mp3"], Destination::Stdout, &[srt], &[&[]]);
    }

    #[test]
    fn two_recordings_of_one_name_get_two_names() {
        let srt = [Format::Srt];
        check(&["talk.mp3", "talk.wav"], Destination::Beside, &srt, &[&["talk.srt"], &["talk.wav.srt"]]);
        check(&["a/talk.mp3", "b/talk.mp3"], Destination::Beside, &srt, &[&["a/talk.srt"], &["b/talk.srt"]]);
        check(
            &["a/talk.mp3", "b/talk.mp3", "c/talk.mp3"],
            Destination::Folder("out".into()),
            &srt,
            &[&["out/talk.srt"], &["out/talk.mp3.srt"], &["out/talk-2.srt"]],
        );
        check(&["Talk.mp3", "talk.wav"], Destination::Beside, &srt, &[&["Talk.srt"], &["talk.wav.srt"]]);
    }

    #[test]
    fn templates_name_files_when_all_in_them_is_known() {
        let inputs = ["a/talk.mp3", "b/talk.mp3"].map(PathBuf::from);
        let planned = |template: &str, language| {
            let place = Destination::Folder("out".into());
            let request = Request { template: template.parse().ok(), ..request(place, &[Format::Srt]) };
            let outputs = plan(&inputs, &request, language);
            (request, outputs)
        };
        let names = |outputs: &[Output]| -> Vec<String> {
            let files = outputs.iter().flat_map(|output| &output.files);
            files.map(|(_, path)| path.display().to_string()).collect()
        };
        let date = today();
        let expected = [format!("out/talk {date}.srt"), format!("out/talk {date}-2.srt")];
        assert_eq!(names(&planned("{name} {date}", None).1), expected);
        assert_eq!(names(&planned("{language}", Some("de")).1), ["out/de.srt", "out/de-2.srt"]);
        // What was spoken is known at the end; two of one name get two names then too.
        let (request, outputs) = planned("{name}_{language}", None);
        assert!(names(&outputs).is_empty());
        let json = r#"{"schema_version": 1, "complete": true, "language": "fr", "task": "transcribe", "settings": null,
            "source": {"name": "talk", "duration": 1, "sample_rate": 16000, "channels": 1, "format": "wav"},
            "model": {"name": "m", "precision": "f32", "demonstration": false},
            "segments": [], "completeness": {"speech": 1, "covered": 1, "gaps": []}}"#;
        let transcript = Transcript::from_json(json.as_bytes()).unwrap();
        let named: Vec<_> = outputs.iter().flat_map(|output| output.named(&transcript, &request)).collect();
        let paths: Vec<_> = named.iter().map(|(_, path)| path.display().to_string()).collect();
        assert_eq!(paths, ["out/talk_fr.srt", "out/talk_fr-2.srt"]);
    }

    #[test]
    fn a_recording_is_never_an_output() {
        check(&["odd.txt"], Destination::Beside, &[Format::Txt], &[&["odd.txt.txt"]]);
    }

    #[test]
    fn one_stream_holds_one_thing() {
        for (formats, inputs, fine) in [
            (vec![Format::Srt], 1, true),
            (vec![Format::Srt], 2, false),
            (vec![Format::Txt], 2, true),
            (vec![Format::Txt, Format::Json], 1, false),
        ] {
            assert_eq!(
                request(Destination::Stdout, &formats).check(inputs).is_ok(),
                fine,
                "{formats:?} {inputs}"
            );
        }
    }

    #[test]
    fn an_output_that_is_no_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Destination::from_output(&file).is_err());
        assert!(Destination::from_output(&folder.path().join("talk.srt")).is_err());
        let new = folder.path().join("new");
        assert_eq!(Destination::from_output(&new), Ok(Destination::Folder(new)));
        assert_eq!(Destination::from_output(Path::new("-")), Ok(Destination::Stdout));
    }
}
