use std::ops::{ControlFlow, Range};
use std::time::Instant;

use audio::{ChannelMode, LogMel, OpenOptions, PrepareOptions, Recording};
use transcript::{
    Completeness, Notice, Run, SCHEMA_VERSION, Segment, Severity, Source, Span, Time, Transcript,
};
use wire::{Channels, ErrorCode, Event, Failure, FilePath, Job, Stage, VoiceActivity};

use crate::loaded::Loaded;
use crate::progress::Reporter;
use crate::whisper::{Found, Sequential, detect_language, encode_window, language_name_or_code, mix};
use crate::{Control, StageError, completeness, platform};

/// A job that ended without its transcript.
#[derive(Debug)]
pub struct Stopped {
    /// [`ErrorCode::Cancelled`] where the user wanted it so.
    pub failure: Failure,
    /// What there was until then.
    pub partial: Option<Box<Transcript>>,
}

type Emit<'a> = &'a mut (dyn FnMut(Event) + Send);

/// One file from beginning to end.
pub fn transcribe(
    loaded: &mut Option<Loaded>,
    job: &Job,
    control: &Control,
    emit: Emit,
) -> Result<Transcript, Stopped> {
    let mut draft = Draft::new(job);
    match draft.run(loaded, job, control, emit) {
        Ok(()) => {
            draft.transcript.complete = true;
            Ok(draft.transcript)
        }
        Err(error) => {
            let failure = error.failure(job);
            let partial = (!draft.transcript.segments.is_empty()).then(|| Box::new(draft.transcript));
            Err(Stopped { failure, partial })
        }
    }
}

/// The language of each file's first speech.
pub fn detect_languages(
    loaded: &mut Option<Loaded>,
    files: &[FilePath],
    job: &Job,
    control: &Control,
    emit: Emit,
) -> Result<(), Failure> {
    let model = load(loaded, job, control).map_err(|error| error.failure(job))?;
    for file in files {
        let job = Job { file: file.clone(), limit: Some(job.limit.unwrap_or(LISTENED_TO)), ..job.clone() };
        let found = prepare(&job, model, ChannelMode::Mix, &mut |_, _| !control.is_cancelled())
            .and_then(|recording| language_of(model, &recording, control));
        match found {
            Ok(probabilities) => {
                emit(Event::Language { id: job.id, file: file.clone(), probabilities });
            }
            Err(error) => {
                let error = error.failure(&job);
                if error.code == ErrorCode::Cancelled {
                    return Err(error);
                }
                emit(Event::FileFailed { id: job.id, file: file.clone(), error });
            }
        }
    }
    Ok(())
}

/// What decoding may allocate beyond what there is: several times what the
/// longest recording takes, and little enough for any machine. Only a damaged
/// file asks for more.
const DECODING_BYTES: usize = 192 << 20;

/// How much of a file is searched for speech whose language is asked for.
const LISTENED_TO: Time = Time::from_millis(5 * 60 * 1000);

/// The transcript as it grows.
struct Draft {
    transcript: Transcript,
    stages: Vec<(String, f64)>,
    started: Instant,
}

impl Draft {
    fn new(job: &Job) -> Self {
        let name = job.file.as_path().file_name().unwrap_or(job.file.as_path().as_os_str());
        let transcript = Transcript {
            schema_version: SCHEMA_VERSION,
            source: Source { name: name.to_string_lossy().into_owned(), ..Source::default() },
            model: transcript::Model::default(),
            language: String::new(),
            language_probability: None,
            task: job.task,
            settings: settings(job),
            segments: Vec::new(),
            discarded: Vec::new(),
            completeness: Completeness::default(),
            notices: Vec::new(),
            complete: false,
            run: None,
        };
        Self { transcript, stages: Vec::new(), started: Instant::now() }
    }

    fn run(
        &mut self,
        loaded: &mut Option<Loaded>,
        job: &Job,
        control: &Control,
        emit: Emit,
    ) -> Result<(), StageError> {
        // A file that can't be opened should say so before a large model is loaded.
        let info = memory::allocation::limited(DECODING_BYTES, || audio::probe(job.file.as_path()))?;
        let loading = Reporter::new(job.id, Stage::LoadModel, None, emit);
        let model = load(loaded, job, control)?;
        self.stage("load_model", loading.elapsed().as_secs_f64());
        let language = match &job.language {
            Some(language) => Some(known_language(model, language)?),
            None => None,
        };
        self.transcript.model = model.model.clone();

        let channels = match job.channels {
            Channels::Mix => vec![(ChannelMode::Mix, None)],
            Channels::Left => vec![(ChannelMode::Left, None)],
            Channels::Right => vec![(ChannelMode::Right, None)],
            Channels::Separate => {
                (0..info.channels.max(1)).map(|n| (ChannelMode::Index(n as usize), Some(n))).collect()
            }
        };
        for (number, (mode, channel)) in channels.into_iter().enumerate() {
            let recording = self.prepare(job, model, mode, control, emit)?;
            if number == 0 {
                self.describe_source(&recording);
                let source = self.transcript.source.clone();
                let (model, device) = (model.model.clone(), model.device.id.clone());
                emit(Event::Started { id: job.id, source, model, device });
            }
            self.note_warnings(job, &recording, emit);
            self.write(job, model, &recording, language.clone(), channel, control, emit)?;
        }
        self.transcript.segments.sort_by_key(|segment| (segment.start, segment.channel));
        self.transcript.completeness.gaps.sort_by_key(|gap| gap.start);
        self.finish(&model.device.id);
        Ok(())
    }

    fn stage(&mut self, name: &str, seconds: f64) {
        match self.stages.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += seconds,
            None => self.stages.push((name.to_owned(), seconds)),
        }
    }

    fn prepare(
        &mut self,
        job: &Job,
        model: &Loaded,
        channel: ChannelMode,
        control: &Control,
        emit: Emit,
    ) -> Result<Recording, StageError> {
        let mut reporter = Reporter::new(job.id, Stage::Preprocess, None, emit);
        let recording = prepare(job, model, channel, &mut |seconds, total| {
            control.worked();
            reporter.set_duration(total.map(Time::from_seconds));
            reporter.at(Time::from_seconds(seconds));
            !control.is_cancelled()
        })?;
        let seconds = reporter.elapsed().as_secs_f64();
        self.stage("preprocess", seconds);
        Ok(recording)
    }

    fn describe_source(&mut self, recording: &Recording) {
        let info = &recording.info;
        let source = &mut self.transcript.source;
        source.duration = Time::from_seconds(recording.seconds());
        source.sample_rate = info.sample_rate;
        source.channels = info.channels;
        source.format = if info.container == info.codec {
            info.codec.clone()
        } else {
            format!("{}, {}", info.container, info.codec)
        };
    }

    fn note_warnings(&mut self, job: &Job, recording: &Recording, emit: Emit) {
        for warning in &recording.warnings {
            let mut notice = Notice::new(warning.code, Severity::Degraded, warning.text.clone());
            notice.at = warning.at_seconds.map(Time::from_seconds);
            if !self.transcript.notices.contains(&notice) {
                self.notice(job, notice, emit);
            }
        }
    }

    fn notice(&mut self, job: &Job, notice: Notice, emit: Emit) {
        emit(Event::Notice { id: job.id, notice: notice.clone() });
        self.transcript.notices.push(notice);
    }

    /// The transcribe stage of one channel.
    #[allow(clippy::too_many_arguments)]
    fn write(
        &mut self,
        job: &Job,
        model: &Loaded,
        recording: &Recording,
        language: Option<String>,
        channel: Option<u32>,
        control: &Control,
        emit: Emit,
    ) -> Result<(), StageError> {
        let duration = Time::from_seconds(recording.seconds());
        let mut reporter = Reporter::new(job.id, Stage::Transcribe, Some(duration), emit);
        let gated = job.voice_activity != VoiceActivity::Off;
        let language = match language {
            Some(language) => language,
            None => {
                let probabilities = language_of(model, recording, control)?;
                let (language, probability) =
                    probabilities.into_iter().next().unwrap_or_else(|| ("en".into(), 0.0));
                if self.transcript.language.is_empty() {
                    self.transcript.language_probability = Some(probability);
                }
                language
            }
        };
        if self.transcript.language.is_empty() {
            self.transcript.language.clone_from(&language);
        }
        let other_language = (language != self.transcript.language).then(|| language.clone());
        let strategy = Sequential {
            model: &model.whisper,
            settings: &job.decoding,
            task: job.task,
            language: &language,
            seed: mix(recording.pcm.len(), u64::from(recording.log_mel_maximum.to_bits())),
            control,
        };
        let regions: Vec<Range<usize>> = recording
            .speech
            .iter()
            .map(|region| (region.start / 160) as usize..region.end.div_ceil(160) as usize)
            .collect();
        let first = self.transcript.segments.len();
        let transcript = &mut self.transcript;
        strategy.run(recording, gated.then_some(&regions[..]), &mut |found: Found| {
            let label = |mut segment: Segment| {
                segment.channel = channel;
                segment.language.clone_from(&other_language);
                segment
            };
            for segment in found.segments.into_iter().map(label) {
                reporter.emit(Event::Segment { id: job.id, segment: segment.clone() });
                transcript.segments.push(segment);
            }
            transcript.discarded.extend(found.discarded.into_iter().map(label));
            reporter.at(found.position);
        })?;
        reporter.at(duration);
        let seconds = reporter.elapsed().as_secs_f64();
        self.stage("transcribe", seconds);

        if gated {
            let at = |sample: u64| Time::from_seconds(sample as f64 / f64::from(audio::SAMPLE_RATE));
            let speech: Vec<Span> =
                recording.speech.iter().map(|region| Span::new(at(region.start), at(region.end))).collect();
            let found = completeness::check(&speech, &self.transcript.segments[first..]);
            let total = &mut self.transcript.completeness;
            total.speech = total.speech + found.speech;
            total.covered = total.covered + found.covered;
            total.gaps.extend(found.gaps);
            self.note_findings(job, emit);
        }
        Ok(())
    }

    fn note_findings(&mut self, job: &Job, emit: Emit) {
        let gaps = self.transcript.completeness.gaps.len();
        if gaps > 0 {
            let text = format!("{gaps} stretch(es) of speech of over 2 s are without text.");
            self.notice(job, Notice::new("transcript.gaps", Severity::Degraded, text), emit);
        }
        let discarded = self.transcript.discarded.len();
        if discarded > 0 {
            let text = format!("{discarded} passage(s) of text over silence were left out.");
            self.notice(job, Notice::new("transcript.discarded", Severity::Info, text), emit);
        }
    }

    fn finish(&mut self, device: &str) {
        let wall = self.started.elapsed().as_secs_f64();
        let duration = self.transcript.source.duration.seconds();
        self.transcript.run = Some(Run {
            finished_at: jiff::Timestamp::now().to_string(),
            device: device.to_owned(),
            engine: env!("CARGO_PKG_VERSION").into(),
            stages: std::mem::take(&mut self.stages),
            real_time_factor: if duration > 0.0 { wall / duration } else { 0.0 },
            peak_memory_bytes: platform::peak_resident_bytes(),
        });
    }
}

/// What the transcript keeps of the job: all but what names this machine's files.
fn settings(job: &Job) -> serde_json::Value {
    let mut settings = serde_json::to_value(job).unwrap_or_default();
    if let Some(settings) = settings.as_object_mut() {
        for private in ["id", "file", "model", "spool_folder"] {
            settings.remove(private);
        }
    }
    settings
}

fn load<'a>(loaded: &'a mut Option<Loaded>, job: &Job, control: &Control) -> Result<&'a Loaded, StageError> {
    let folder = job.model.as_path();
    if loaded.as_ref().is_none_or(|loaded| !loaded.is(folder, job.device)) {
        // The old one goes first: two models at once is what must never be.
        *loaded = None;
        platform::trim_memory();
        *loaded = Some(Loaded::load(folder, job.device, control)?);
    }
    loaded.as_ref().ok_or_else(|| Failure::new(ErrorCode::Internal, "No model is loaded.").into())
}

fn prepare(
    job: &Job,
    model: &Loaded,
    channels: ChannelMode,
    go_on: &mut dyn FnMut(f64, Option<f64>) -> bool,
) -> Result<Recording, StageError> {
    let options = PrepareOptions {
        open: OpenOptions { track: job.track, channels, limit_seconds: job.limit.map(Time::seconds) },
        n_mels: model.whisper.config.num_mel_bins,
        vad: match job.voice_activity {
            VoiceActivity::Off => None,
            VoiceActivity::Threshold(threshold) => Some(threshold),
        },
        spool_folder: job.spool_folder.as_ref().map(|folder| folder.0.clone()),
    };
    let recording = memory::allocation::limited(DECODING_BYTES, || {
        audio::prepare(job.file.as_path(), &options, &mut |seconds, total| {
            if go_on(seconds, total) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    })?;
    Ok(recording)
}

/// A language that the model has a token for.
fn known_language(model: &Loaded, language: &str) -> Result<String, StageError> {
    let vocabulary = &model.whisper.vocabulary;
    let code = language_name_or_code(language);
    let known = |code: &str| {
        if vocabulary.is_multilingual() { vocabulary.language_token(code).is_some() } else { code == "en" }
    };
    match code.filter(|code| known(code)) {
        Some(code) => Ok(code.to_owned()),
        None => {
            let message = format!("The model {} does not know the language {language:?}.", model.model.name);
            Err(Failure::new(ErrorCode::LanguageUnknown, message)
                .remedy("Give a code such as en, de or es, or an English name, or leave it out to detect it.")
                .into())
        }
    }
}

/// Detected where speech begins; where the first window leaves it open, the
/// mean over up to three.
fn language_of(
    model: &Loaded,
    recording: &Recording,
    control: &Control,
) -> Result<Vec<(String, f32)>, StageError> {
    const SURE: f32 = 0.5;
    const WINDOWS: usize = 3;
    let whisper = &model.whisper;
    let frames = whisper.config.window_frames();
    let mut mel = LogMel::new(whisper.config.num_mel_bins);
    let mut starts: Vec<usize> = Vec::new();
    for region in &recording.speech {
        let start = (region.start / 160) as usize;
        if starts.last().is_none_or(|last| start >= last + frames) {
            starts.push(start);
        }
    }
    if starts.is_empty() {
        starts.push(0);
    }
    let mut sum: Vec<(String, f32)> = Vec::new();
    for start in starts.into_iter().take(WINDOWS) {
        let audio = encode_window(whisper, recording.log_mel(&mut mel, start, frames)?, control)?;
        let found = detect_language(whisper, &audio, control)?.into_iter().next().unwrap_or_default();
        let sure = found.first().is_some_and(|(_, probability)| *probability >= SURE);
        if sum.is_empty() {
            sum = found;
        } else {
            for (code, probability) in &mut sum {
                let other = found.iter().find(|(other, _)| other == code);
                *probability += other.map_or(0.0, |(_, probability)| *probability);
            }
        }
        if sure {
            break;
        }
    }
    let total: f32 = sum.iter().map(|(_, probability)| probability).sum();
    sum.iter_mut().for_each(|(_, probability)| *probability /= total.max(f32::MIN_POSITIVE));
    sum.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(sum)
}
