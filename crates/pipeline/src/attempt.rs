use std::ops::Range;
use std::time::{Duration, Instant};

use audio::{ChannelMode, MediaInfo, Pcm};
use memory::ladder::{LadderState, Processor, Rung, Step, Trouble};
use memory::{Scope, Stage};
use transcript::{Segment, Span, Time};
use wire::notice::Message;
use wire::{
    Channels, DeviceChoice, ErrorCode, Event, Failure, Job, KnownVoice, Point, Strategy, VoiceActivity,
};

use crate::device_context::DeviceContext;
use crate::draft::Draft;
use crate::language::{check_untold, known_language, language_of};
use crate::loaded::Loaded;
use crate::progress::Reporter;
use crate::sound::{self, PREPARING_BYTES, Sound, spans, voiced_spans};
use crate::speech_model::Request;
use crate::start::Models;
use crate::steps::{self, Found, Observer, Step as WindowStep};
use crate::trouble::{Broken, during};
use crate::{Control, Emit, StageError, completeness, device, job, preview, speakers, timings};

/// Bands of the spectrogram that is made of sound which no model listens to.
const MEL_BINS: usize = 80;

/// All that the attempts at one file share.
pub struct Work<'a> {
    context: &'a mut Option<DeviceContext>,
    job: &'a Job,
    voices: &'a [KnownVoice],
    control: &'a Control,
    emit: Emit<'a>,
    draft: &'a mut Draft,
    models: Models,
    state: LadderState,
    /// Kept from attempt to attempt: decoding a long file again takes longer
    /// than any step down the ladder.
    sound: Option<Sound>,
    info: MediaInfo,
    /// Whether the host was told what the file is.
    begun: bool,
}

impl<'a> Work<'a> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        context: &'a mut Option<DeviceContext>,
        job: &'a Job,
        voices: &'a [KnownVoice],
        control: &'a Control,
        emit: Emit<'a>,
        draft: &'a mut Draft,
        models: Models,
        state: LadderState,
        info: MediaInfo,
    ) -> Self {
        Self { context, job, voices, control, emit, draft, models, state, sound: None, info, begun: false }
    }

    pub fn state(&self) -> &LadderState {
        &self.state
    }

    pub fn note(&mut self, notice: &memory::Notice) {
        self.draft.memory_notice(notice, self.emit);
    }

    /// From where the text ended to the end of the file, and who says it.
    pub fn attempt(&mut self) -> Result<(), Broken> {
        let channels = self.channels();
        if self.draft.point.channel < channels.len() {
            self.write_all(&channels)?;
        } else if !self.begun {
            // An earlier attempt wrote it all: what the file is remains to be told.
            let mode = channels.last().map_or(ChannelMode::Mix, |(mode, _)| *mode);
            self.draft.transcript.model = self.models.describe(&self.state.settings);
            self.prepare(channels.len() - 1, mode, MEL_BINS)?;
            self.begin()?;
        }
        if self.wants_speakers() {
            self.find_speakers(&channels)?;
        }
        if let Some(sound) = self.sound.take() {
            sound.free();
        }
        self.tell();
        self.draft.note_findings(self.emit);
        Ok(())
    }

    /// The text of every channel that has none yet.
    fn write_all(&mut self, channels: &[(ChannelMode, Option<u32>)]) -> Result<(), Broken> {
        let language = self.load()?;
        for (number, (mode, label)) in channels.iter().enumerate().skip(self.draft.point.channel) {
            let mel_bins =
                loaded(take(self.context, Stage::Preprocess)?, Stage::Preprocess)?.speech.mel_bins();
            self.preview(number, *mode, mel_bins, language.as_deref())?;
            self.prepare(number, *mode, mel_bins)?;
            // Preparing may have needed the room that the model took.
            if self.context.as_ref().is_some_and(|context| context.loaded.is_none()) {
                self.load()?;
            }
            self.begin()?;
            self.write(*label, language.clone())?;
            // The only sound is listened to once more.
            let is_needed = channels.len() == 1 && self.wants_speakers();
            if !is_needed && let Some(sound) = self.sound.take() {
                sound.free();
            }
            let point = &mut self.draft.point;
            *point = Point {
                channel: number + 1,
                languages: std::mem::take(&mut point.languages),
                completeness: std::mem::take(&mut point.completeness),
                ..Point::default()
            };
            self.reached(Vec::new());
            self.tell();
        }
        Ok(())
    }

    /// A part of a recording is too short to tell speakers apart.
    fn wants_speakers(&self) -> bool {
        self.job.speakers && self.state.settings.speakers && self.job.span.is_none()
    }

    /// Says who speaks when, and whose words are whose.
    fn find_speakers(&mut self, channels: &[(ChannelMode, Option<u32>)]) -> Result<(), Broken> {
        // One stage's models at a time.
        if self.job.memory.release {
            take(self.context, Stage::SpeakerModel)?.unload();
        }
        self.tell();
        let (mut all, mut seconds) = (Vec::with_capacity(channels.len()), 0f64);
        for (number, (mode, label)) in channels.iter().enumerate() {
            if self.sound.as_ref().is_none_or(|sound| sound.channel != number) {
                self.prepare(number, *mode, MEL_BINS)?;
            }
            during(Stage::SpeakerModel, take(self.context, Stage::SpeakerModel)?.verify(self.control))?;
            let Self { context, job, control, emit, state, sound, voices, .. } = self;
            let (context, sound) = during(Stage::Diarize, both(context.as_ref(), sound.as_ref()))?;
            // Speakers of several channels have their numbers once all were heard.
            let guessed = (channels.len() == 1).then_some(&**voices);
            let hearing = || speakers::hear(context, &state.settings, job, sound, guessed, control, emit);
            all.push((*label, control.timings().of(timings::SPEAKERS, hearing)?));
            seconds = seconds.max(sound.recording.seconds());
        }
        let Self { context, job, control, voices, emit, draft, .. } = self;
        let context = take(context, Stage::Align)?;
        let deciding = || speakers::decide(context, job, all, seconds);
        let found = control.timings().of(timings::SPEAKERS, deciding)?;
        draft.set_speakers(&found, &speakers::names(&found.voices, &found.network, voices), emit);
        Ok(())
    }

    /// Channels of the file with the number that their segments carry.
    fn channels(&self) -> Vec<(ChannelMode, Option<u32>)> {
        match self.job.channels {
            Channels::Mix => vec![(ChannelMode::Mix, None)],
            Channels::Left => vec![(ChannelMode::Left, None)],
            Channels::Right => vec![(ChannelMode::Right, None)],
            Channels::Separate => {
                let count = self.info.channels.max(1);
                (0..count).map(|n| (ChannelMode::Index(n as usize), Some(n))).collect()
            }
        }
    }

    /// Has the model of the state loaded; answers with the language that was
    /// asked for, as the model knows it.
    fn load(&mut self) -> Result<Option<String>, Broken> {
        let job = self.job;
        let context = take(self.context, Stage::SpeechModel)?;
        // Advice names what this attempt could do with less of.
        context.device.set_situation(self.models.situation(&self.state.settings));
        let loading = self.control.timings().stage(timings::LOAD_MODEL);
        let loaded = self.models.load(context, &self.state.settings, self.control)?;
        drop(loading);
        let language = match &job.language {
            Some(language) => Some(during(Stage::SpeechModel, known_language(loaded, language))?),
            None => {
                during(Stage::SpeechModel, check_untold(loaded))?;
                None
            }
        };
        self.draft.transcript.model = loaded.model.clone();
        self.tell();
        Ok(language)
    }

    /// Has the sound of channel `number` ready.
    fn prepare(&mut self, number: usize, mode: ChannelMode, n_mels: usize) -> Result<(), Broken> {
        const STAGE: Stage = Stage::Preprocess;
        let (job, control) = (self.job, self.control);
        let context = take(self.context, STAGE)?;
        let is_it = |sound: &Sound| sound.channel == number && sound.n_mels == n_mels;
        if self.sound.as_ref().is_some_and(is_it) {
            return Ok(());
        }
        if let Some(old) = self.sound.take() {
            old.free();
        }
        let most = self.info.duration_seconds.map_or(u64::MAX, |seconds| (seconds * 64_000.0) as u64);
        let kept = most.min(Pcm::MAX_BYTES_IN_MEMORY);
        let mut entered = Scope::enter(&context.host, STAGE, PREPARING_BYTES + kept);
        if entered.is_err() && context.is_cpu() {
            // The model comes back when the sound is ready.
            context.unload();
            entered = Scope::enter(&context.host, STAGE, PREPARING_BYTES + kept);
        }
        let mut scope = during(STAGE, entered)?;
        let mut reporter = Reporter::new(Stage::Preprocess, None, self.emit);
        let preparing = || {
            sound::prepare(job, n_mels, mode, &mut |seconds, total| {
                control.worked();
                reporter.set_duration(total.map(Time::from_seconds));
                reporter.at(Time::from_seconds(seconds));
                !control.is_cancelled()
            })
        };
        let result = control.timings().of(timings::PREPROCESS, preparing);
        let recording = during(STAGE, result)?;
        scope.loaded();
        // What decoding took besides is free again; shrinking always succeeds.
        let _ = scope.resize(recording.pcm.bytes_in_memory().min(PREPARING_BYTES + kept));
        during(STAGE, has_span(job.span, recording.seconds()))?;
        self.draft.describe_source(&recording);
        self.draft.note_tracks(job.track, &recording.info, self.emit);
        self.draft.note_warnings(&recording, self.emit);
        let speech = spans(&recording);
        let log_mel_maximum = recording.log_mel_maximum;
        (self.emit)(Event::Prepared { channel: number, speech, log_mel_maximum });
        self.sound = Some(Sound { channel: number, n_mels, recording, scope });
        self.tell();
        Ok(())
    }

    /// Shows what is said first in a recording that takes a while to read. Nothing of it is kept: how loud the
    /// loudest sound of the whole recording is has a part in every window's spectrogram.
    fn preview(
        &mut self,
        number: usize,
        mode: ChannelMode,
        n_mels: usize,
        language: Option<&str>,
    ) -> Result<(), Broken> {
        const STAGE: Stage = Stage::Transcribe;
        let (job, control) = (self.job, self.control);
        let context: &DeviceContext = take(self.context, STAGE)?;
        let model = loaded(context, STAGE)?;
        let is_begun = self.begun || self.sound.is_some() || number > 0 || self.draft.point.position > 0;
        let is_quick = !context.is_cpu() || preview::is_quick(&model.network);
        if is_begun || !is_quick || !preview::is_wanted(job, self.info.duration_seconds, control) {
            return Ok(());
        }
        let _stage = control.timings().stage(timings::PREVIEW);
        let decoding = during(STAGE, Scope::enter(&context.host, STAGE, preview::BYTES + PREPARING_BYTES))?;
        let beginning = during(STAGE, preview::beginning(job, n_mels, mode, control))?;
        let demand = model.footprint(job, context.device.device().kind()).work_demand(1);
        let scope = during(STAGE, Scope::enter(&context.device, STAGE, demand))?;
        let emit = &mut *self.emit;
        let mut began = |position| emit(Event::Window { channel: number, position });
        during(STAGE, preview::show(job, model, &beginning, language, control, &mut began))?;
        scope.leave(|| ());
        decoding.leave(|| drop(beginning));
        self.tell();
        Ok(())
    }

    /// Tells the host, once, what the file is and what will be done with it.
    fn begin(&mut self) -> Result<(), Broken> {
        if !std::mem::replace(&mut self.begun, true) {
            let context = take(self.context, Stage::Preprocess)?;
            let source = self.draft.transcript.source.clone();
            let model = self.draft.transcript.model.clone();
            (self.emit)(Event::Started { source, model, device: context.chosen.id.clone() });
        }
        Ok(())
    }

    /// The text of one channel, from where it ended.
    fn write(&mut self, label: Option<u32>, language: Option<String>) -> Result<(), Broken> {
        const STAGE: Stage = Stage::Transcribe;
        let Self { context, job, control, emit, draft, state, sound, .. } = self;
        let (job, control) = (*job, *control);
        let context: &DeviceContext = take(context, STAGE)?;
        let model = loaded(context, STAGE)?;
        let Some(Sound { recording, channel, .. }) = sound else {
            return during(STAGE, Err(Failure::new(ErrorCode::Internal, "There is no sound.")));
        };
        let kind = context.device.device().kind();
        let demand = model.footprint(job, kind).work_demand(u64::from(state.settings.batch));
        let mut scope =
            during(STAGE, Scope::enter(&context.device, STAGE, demand))?.trim_every(job.memory.trim_every);
        let duration = Time::from_seconds(recording.seconds());
        let reached = Time::from_seconds(draft.point.position as f64 / f64::from(audio::SAMPLE_RATE));
        let origin = reached.max(job.span.map_or(Time::ZERO, |span| span.start));
        let end = job.span.map(|span| span.end);
        let mut reporter = Reporter::within(Stage::Transcribe, Some(duration), origin, end, emit);
        let known = draft.point.languages.get(*channel).map(|(language, _)| language.as_str());
        // A model that took over may not know what the one before it went by.
        if known.is_none_or(|known| model.speech.known_language(known).is_none()) {
            let found = match language {
                Some(language) => (language, None),
                None => {
                    let listening = || language_of(model, recording, control);
                    during(STAGE, control.timings().of(timings::LANGUAGE, listening))?
                }
            };
            draft.point.languages.truncate(*channel);
            draft.point.languages.push(found);
        }
        let languages = draft.point.languages.clone();
        if let Some((main, probability)) = languages.first() {
            draft.transcript.language.clone_from(main);
            draft.transcript.language_probability = *probability;
        }
        let language = languages.get(*channel).map_or("en", |(language, _)| language.as_str());
        let other_language = (language != draft.transcript.language).then(|| language.to_owned());
        let gated = job.voice_activity != VoiceActivity::Off;
        let regions: Vec<Range<usize>> = match job.span {
            // A caller that asks for a part of it has heard speech there.
            Some(span) => std::iter::once(steps::frame(span.start)..steps::frame(span.end)).collect(),
            None => recording
                .speech
                .iter()
                .map(|region| (region.start / 160) as usize..region.end.div_ceil(160) as usize)
                .collect(),
        };
        let from = draft.point.clone();
        let skip = job.resume.as_ref().map_or(&[][..], |resume| &resume.skip);
        let mut listener = Listener {
            context,
            draft,
            state,
            scope: &mut scope,
            reporter: &mut reporter,
            control,
            label,
            language: other_language,
            pace: Pace::default(),
        };
        let speech = (gated || job.span.is_some()).then_some(&regions[..]);
        let strategy = if job.is_batched() { Strategy::Batched } else { Strategy::Sequential };
        let request = Request {
            recording,
            speech,
            span: job.span,
            strategy,
            settings: &job.decoding,
            task: job.task,
            language,
            skip,
            control,
        };
        let transcribing = || model.speech.transcribe(&request, &from, &mut listener);
        let result = control.timings().of(timings::TRANSCRIBE, transcribing);
        during(STAGE, result)?;
        reporter.at(duration);
        scope.leave(|| ());
        if gated {
            let within = |speech: Span| job.span.map_or(Some(speech), |span| span.intersection(speech));
            let speech: Vec<Span> = spans(recording).into_iter().filter_map(within).collect();
            let found = completeness::check(&speech, &voiced_spans(recording), &draft.segments_of(label));
            let total = &mut draft.point.completeness;
            total.speech = total.speech + found.speech;
            total.covered = total.covered + found.covered;
            total.gaps.extend(found.gaps);
            draft.transcript.completeness = total.clone();
        }
        Ok(())
    }

    fn reached(&mut self, discarded: Vec<Segment>) {
        let point = Box::new(self.draft.point.clone());
        (self.emit)(Event::Reached { point, discarded });
    }

    /// Takes a step that was decided on.
    pub fn step_down(&mut self, broken: &Broken, rung: Rung) -> Result<(), StageError> {
        let job = self.job;
        (self.emit)(Event::Rung { rung: Box::new(rung.clone()) });
        if rung.trouble == Trouble::DeviceError {
            device::lose();
        }
        if let (Some(context), Some(problem)) = (&self.context, broken.card_problem()) {
            let device = context.chosen.id.clone();
            self.draft.notice(Message::DeviceUnusable { device, problem }.into(), self.emit);
        }
        self.draft.memory_notice(&rung.notice(), self.emit);
        let moves = rung.to.settings.place != self.state.settings.place;
        self.state = rung.to.clone();
        if let Some(context) = self.context {
            if let Some(asked) = broken.asked() {
                context.device.allocation_failed(asked);
            }
            if rung.step == Step::RetryAfterTrim {
                // A failure to release is a notice and a renewal of its own.
                let _ = context.device.recover();
            }
        }
        if rung.step == Step::RenewEngine {
            let text = format!("{} The engine is restarted.", rung.notice().text);
            return Err(Failure::new(ErrorCode::OutOfMemory, text).file(job.file.clone()).into());
        }
        if moves {
            self.tell();
            if let Some(sound) = self.sound.take() {
                sound.free();
            }
            job::take_desk(self.context, DeviceChoice::Cpu, job)?.begin_job();
        }
        self.tell();
        Ok(())
    }

    pub fn tell(&mut self) {
        if let Some(context) = &self.context {
            job::tell_marks(context, self.draft, self.emit);
        }
    }
}

/// Passes on what the strategy finds: to the draft, to the host, to memory's
/// timeline.
struct Listener<'a, 'b> {
    context: &'a DeviceContext,
    draft: &'a mut Draft,
    state: &'a mut LadderState,
    scope: &'a mut Scope,
    reporter: &'a mut Reporter<'b>,
    control: &'a Control,
    label: Option<u32>,
    /// Where it is another one than the transcript's.
    language: Option<String>,
    pace: Pace,
}

impl Observer for Listener<'_, '_> {
    fn batch_size(&mut self) -> usize {
        let most = self.state.settings.batch;
        let is_cpu = self.state.settings.place == Processor::Cpu;
        (if is_cpu { self.pace.next(most, Instant::now()) } else { most }) as usize
    }

    fn step(&mut self, step: WindowStep) -> Result<(), StageError> {
        match step {
            WindowStep::Began { position, .. } => {
                let channel = self.draft.point.channel;
                self.reporter.emit(Event::Window { channel, position });
            }
            WindowStep::Found(found) => self.found(found),
        }
        Ok(())
    }
}

impl Listener<'_, '_> {
    fn found(&mut self, found: Found) {
        let Self { context, draft, reporter, .. } = self;
        let (label, language) = (self.label, &self.language);
        let name = |mut segment: Segment| {
            segment.channel = label;
            // A window's own goes before its channel's.
            segment.language = segment.language.or_else(|| language.clone());
            segment
        };
        let position = found.position();
        self.control.live_text().clear();
        for segment in found.segments.into_iter().map(name) {
            reporter.emit(Event::Segment { segment: segment.clone() });
            draft.transcript.segments.push(segment);
        }
        let discarded: Vec<Segment> = found.discarded.into_iter().map(name).collect();
        draft.transcript.discarded.extend(discarded.iter().cloned());
        let point = &mut draft.point;
        *point = Point {
            channel: point.channel,
            languages: std::mem::take(&mut point.languages),
            completeness: std::mem::take(&mut point.completeness),
            ..found.point
        };
        reporter.emit(Event::Reached { point: Box::new(point.clone()), discarded });
        if found.windows > 0 {
            self.state.progressed();
            self.scope.batch();
            job::tell_marks(context, draft, &mut |event| reporter.emit(event));
        }
        reporter.at(position);
    }
}

/// How many windows a CPU decodes together: the text of all of them comes at once, so that the first words wait for one
/// window alone, and a batch is no larger than what takes [`Pace::LONGEST`].
#[derive(Default)]
struct Pace {
    /// Windows of the batch that was begun last, and when.
    last: Option<(u32, Instant)>,
}

impl Pace {
    /// Between one text and the next.
    const LONGEST: Duration = Duration::from_secs(15);

    /// Windows of the batch that begins `now`, at most `most`.
    fn next(&mut self, most: u32, now: Instant) -> u32 {
        let windows = match self.last {
            None => 1,
            Some((last, begun)) => {
                let each = now.saturating_duration_since(begun).as_secs_f64() / f64::from(last);
                // The conversion saturates.
                let in_time = (Self::LONGEST.as_secs_f64() / each) as u32;
                in_time.min(last.saturating_mul(2))
            }
        };
        let windows = windows.min(most).max(1);
        self.last = Some((windows, now));
        windows
    }
}

/// Fails for a part that begins where the recording has ended.
fn has_span(span: Option<Span>, seconds: f64) -> Result<(), StageError> {
    let start = span.map_or(0.0, |span| span.start.seconds());
    if start == 0.0 || start < seconds {
        return Ok(());
    }
    let message = format!(
        "The recording ends after {seconds:.1} s, before the part to transcribe begins ({start:.1} s)."
    );
    Err(Failure::new(ErrorCode::BadSettings, message).remedy("Choose an earlier start.").into())
}

fn take(context: &mut Option<DeviceContext>, stage: Stage) -> Result<&mut DeviceContext, Broken> {
    during(stage, context.as_mut().ok_or_else(|| Failure::new(ErrorCode::Internal, "There is no device.")))
}

/// What speakers are found with: a device and the sound.
fn both<'a>(
    context: Option<&'a DeviceContext>,
    sound: Option<&'a Sound>,
) -> Result<(&'a DeviceContext, &'a Sound), Failure> {
    context.zip(sound).ok_or_else(|| Failure::new(ErrorCode::Internal, "There is no sound."))
}

pub fn loaded(context: &DeviceContext, stage: Stage) -> Result<&Loaded, Broken> {
    let loaded = context.loaded.as_ref();
    during(stage, loaded.ok_or_else(|| Failure::new(ErrorCode::Internal, "No model is loaded.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_on_a_cpu_grow_from_one_window_and_text_comes_every_fifteen_seconds() {
        let begun = Instant::now();
        // seconds that each window takes -> windows of the first batches
        for (each, expected) in
            [(0.1, [1, 2, 4, 4]), (4.0, [1, 2, 3, 3]), (7.0, [1, 2, 2, 2]), (40.0, [1, 1, 1, 1])]
        {
            let (mut pace, mut now) = (Pace::default(), begun);
            let batches = expected.map(|_| {
                let windows = pace.next(4, now);
                now += Duration::from_secs_f64(each * f64::from(windows));
                windows
            });
            assert_eq!(batches, expected, "{each} s per window");
        }
        let mut pace = Pace::default();
        assert_eq!([pace.next(0, begun), pace.next(8, begun), pace.next(1, begun)], [1, 2, 1]);
    }
}
