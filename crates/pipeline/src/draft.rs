use std::time::Instant;

use audio::{MediaInfo, Recording, Warning};
use transcript::{Notice, RunInfo, SCHEMA_VERSION, Segment, Source, StageTime, Time, Transcript, speakers};
use wire::notice::Message;
use wire::{Event, Job, Point};

use crate::speakers::{Diarization, Names};
use crate::speech_model::UNDETERMINED;
use crate::text_language::language_of;
use crate::{Emit, platform};

/// The transcript as it grows, over all attempts at it.
#[derive(Debug)]
pub struct Draft {
    pub transcript: Transcript,
    /// Where the text goes on.
    pub point: Point,
    started: Instant,
}

impl Draft {
    /// Begins with what an earlier attempt left behind, if it did.
    pub fn new(job: &Job) -> Self {
        let name = job.file.as_path().file_name().unwrap_or(job.file.as_path().as_os_str());
        let resume = job.resume.as_deref().cloned().unwrap_or_default();
        let point = resume.point.unwrap_or_default();
        let main = point.languages.first().cloned().unwrap_or_default();
        let transcript = Transcript {
            schema_version: SCHEMA_VERSION,
            source: Source { name: name.to_string_lossy().into_owned(), ..Source::default() },
            model: transcript::Model::default(),
            language: main.0,
            language_probability: main.1,
            task: job.task,
            settings: job.settings(),
            segments: resume.segments,
            turns: Vec::new(),
            chapters: Vec::new(),
            discarded: resume.discarded,
            completeness: point.completeness.clone(),
            notices: resume.notices,
            complete: false,
            run: None,
        };
        Self { transcript, point, started: Instant::now() }
    }

    /// Writes who speaks into the text: names of people who are known, else numbers.
    pub fn set_speakers(&mut self, found: &Diarization, names: &Names, emit: Emit) {
        let transcript = &mut self.transcript;
        let segments = std::mem::take(&mut transcript.segments);
        transcript.segments = speakers::assign(segments, found.of_words(), &|speaker| names.of(speaker));
        transcript.turns = names.of_turns(&found.turns);
        for (speaker, person) in &names.offered {
            let speaker = speakers::default_name(*speaker);
            self.notice(Message::MaybeKnown { speaker, person: person.clone() }.into(), emit);
        }
    }

    pub fn describe_source(&mut self, recording: &Recording) {
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

    pub fn note_warnings(&mut self, recording: &Recording, emit: Emit) {
        for warning in recording.warnings.iter().cloned() {
            let (message, at) = match warning {
                Warning::Truncated { decoded, declared, detail } => {
                    (Message::Truncated { decoded, declared, detail }, Some(decoded))
                }
                Warning::Damaged { at, detail } => (Message::Damaged { silenced: at.is_some(), detail }, at),
                Warning::Phase { channel, decibels } => {
                    // Nothing at all is left of channels that are opposite: 16 bits have 96 dB.
                    (Message::Phase { channel: channel + 1, decibels: decibels.min(96.0) }, None)
                }
                Warning::Mono => (Message::Mono {}, None),
            };
            self.notice(Notice { at: at.map(Time::from_seconds), ..message.into() }, emit);
        }
    }

    /// Says which of several audio tracks is taken where the job names none.
    pub fn note_tracks(&mut self, wanted: Option<usize>, info: &MediaInfo, emit: Emit) {
        let Some(taken) = info.tracks.get(info.track).filter(|_| wanted.is_none()) else { return };
        let tracks = info.tracks.len();
        if tracks > 1 {
            let language = taken.language.clone();
            self.notice(Message::SeveralTracks { tracks, taken: taken.index, language }.into(), emit);
        }
    }

    /// Another attempt at the same says the same: once is enough.
    pub fn notice(&mut self, notice: Notice, emit: Emit) {
        if !self.transcript.notices.contains(&notice) {
            emit(Event::Notice { notice: notice.clone() });
            self.transcript.notices.push(notice);
        }
    }

    pub fn memory_notice(&mut self, notice: &memory::Notice, emit: Emit) {
        // Whose memory was in use beforehand is told once, not with new figures by every engine.
        let is_known = |known: &Notice| known.code == notice.code.as_str();
        if notice.code == memory::Code::Occupied && self.transcript.notices.iter().any(is_known) {
            return;
        }
        self.notice(wire::notice::from_memory(notice), emit);
    }

    /// The text of one channel so far.
    pub fn segments_of(&self, channel: Option<u32>) -> Vec<Segment> {
        let of_channel = |segment: &&Segment| segment.channel == channel;
        self.transcript.segments.iter().filter(of_channel).cloned().collect()
    }

    pub fn note_findings(&mut self, emit: Emit) {
        let gaps = self.transcript.completeness.gaps.len();
        if gaps > 0 {
            self.notice(Message::Gaps { gaps }.into(), emit);
        }
        let passages = self.transcript.discarded.len();
        if passages > 0 {
            self.notice(Message::Discarded { passages }.into(), emit);
        }
    }

    pub fn finish(&mut self, device: &str, stages: Vec<StageTime>) {
        self.transcript.segments.sort_by_key(|segment| (segment.start, segment.channel));
        self.transcript.completeness.gaps.sort_by_key(|gap| gap.start);
        self.transcript.complete = true;
        if self.transcript.language == UNDETERMINED
            && let Some((language, probability)) = language_of(&self.transcript.text())
        {
            self.transcript.language = language.to_owned();
            self.transcript.language_probability = Some(probability);
        }
        let wall = self.started.elapsed().as_secs_f64();
        let duration = self.transcript.source.duration.seconds();
        self.transcript.run = Some(RunInfo {
            finished_at: jiff::Timestamp::now().to_string(),
            device: device.to_owned(),
            engine: env!("CARGO_PKG_VERSION").into(),
            stages,
            real_time_factor: if duration > 0.0 { wall / duration } else { 0.0 },
            peak_memory_bytes: platform::peak_resident_bytes(),
        });
    }
}
