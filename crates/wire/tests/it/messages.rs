//! Every command and event arrives as it was sent, and is called on the wire
//! what it was called when [`wire::PROTOCOL_VERSION`] was last raised.
#![allow(clippy::unwrap_used, reason = "a test, helpers included")]

use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;
use std::io::Cursor;
use transcript::speakers::NamedTurn;
use transcript::{
    Completeness, Model, Notice, RunInfo, SCHEMA_VERSION, Segment, Severity, Source, Span, StageTime,
    Suspicion, Task, Time, Transcript, Word,
};
use wire::*;

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(tag: &str, name: &str, message: T) {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, &message).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes[4..]).unwrap();
    assert_eq!(json[tag], name, "renaming a message needs a new protocol version");
    assert_eq!(read_frame::<T>(&mut Cursor::new(bytes)).unwrap(), Some(message));
}

fn every_setting_changed() -> Job {
    Job {
        device: DeviceChoice::Cuda(3),
        threads: Some(5),
        language: Some("de".into()),
        task: Task::Translate,
        channels: Channels::Separate,
        track: Some(1),
        limit: Some(Time::from_millis(90_001)),
        voice_activity: VoiceActivity::Threshold(0.35),
        decoding: DecodingOptions {
            beam_size: None,
            best_of: 3,
            temperatures: vec![0.0, 0.1, 0.7],
            compression_ratio_threshold: None,
            log_probability_threshold: Some(-0.3),
            no_speech_threshold: None,
            condition_on_previous_text: true,
            language_per_region: true,
            prompt_reset_temperature: 0.25,
            initial_prompt: Some("Straße, \"naïve\" – 日本".into()),
            vocabulary: vec!["candle".into(), "".into()],
            vocabulary_strength: 2.5,
            timestamps: false,
            max_initial_timestamp: None,
            suppress_tokens: vec![0, u32::MAX],
            max_tokens: Some(17),
            length_penalty: Some(0.6),
            patience: Some(2.0),
            word_times: false,
            repair: false,
            seed: u64::MAX,
        },
        spool_folder: Some("/var/tmp".into()),
        adapter: Some("/adapters/ü.safetensors".into()),
        ..Job::new(JobId::MAX, "/a/ü.wav", "/models/large-v3")
    }
}

fn known_voice() -> KnownVoice {
    KnownVoice { name: "Änne".into(), network: "a".into(), vector: vec![0.6, -0.8] }
}

/// What goes to logs says nothing about how a person sounds.
#[test]
fn voices_are_not_printed() {
    let voice = EncodedVoice { network: "a".into(), vector: vec![0.6], seconds: 3.0, seconds_of_others: 0.0 };
    let text = format!("{:?} {:?}", known_voice(), Event::Voice { voice: Box::new(voice) });
    assert!(!text.contains("0.6") && !text.contains("nne"), "{text}");
}

fn segment() -> Segment {
    Segment {
        id: 0,
        start: Time::from_millis(1),
        end: Time::from_millis(u32::MAX),
        text: "Ja, \u{1F600}!".into(),
        translation: Some("Yes, \u{1F600}!".into()),
        words: vec![Word {
            text: " Ja,".into(),
            start: Time::from_millis(20),
            end: Time::from_millis(333),
            probability: 0.1,
        }],
        language: Some("yue".into()),
        speaker: Some("Speaker 1".into()),
        channel: Some(1),
        temperature: 0.2,
        mean_log_probability: -0.123_456_79,
        no_speech_probability: 1e-9,
        compression_ratio: 2.4,
        suspicions: vec![
            Suspicion::Loop,
            Suspicion::TooFast,
            Suspicion::OverSilence,
            Suspicion::LowConfidence,
        ],
        raw_text: Some(String::new()),
    }
}

fn transcript() -> Transcript {
    Transcript {
        schema_version: SCHEMA_VERSION,
        source: source(),
        model: Model { name: "base".into(), precision: "f16".into(), demonstration: true, adapter: None },
        language: "en".into(),
        language_probability: Some(0.987_654_3),
        task: Task::Translate,
        settings: serde_json::to_value(every_setting_changed()).unwrap(),
        segments: vec![segment(), Segment::default()],
        turns: Vec::new(),
        chapters: Vec::new(),
        discarded: Vec::new(),
        completeness: Completeness {
            speech: Time::from_seconds(61.005),
            covered: Time::from_seconds(59.5),
            gaps: vec![Span::new(Time::from_millis(3), Time::from_millis(4007))],
        },
        notices: vec![notice()],
        complete: false,
        run: Some(RunInfo {
            finished_at: "2026-11-20T22:00:00Z".into(),
            device: "cpu".into(),
            engine: "0.1.0".into(),
            stages: vec![StageTime { name: "transcribe".into(), seconds: 0.1 + 0.2, processor_seconds: 0.5 }],
            real_time_factor: 1.0 / 3.0,
            peak_memory_bytes: Some(u64::MAX),
        }),
    }
}

fn source() -> Source {
    Source {
        name: "ü.wav".into(),
        duration: Time::from_millis(61_005),
        sample_rate: 44_100,
        channels: 2,
        format: "wav, pcm".into(),
    }
}

fn notice() -> Notice {
    Notice::new("audio.truncated", Severity::Degraded, "The file ends early.").at(Time::from_millis(5))
}

fn ladder() -> memory::ladder::LadderState {
    use memory::ladder::{LadderSettings, LadderState, Processor};
    LadderState::new(LadderSettings {
        model: "small".into(),
        precision: "f16".into(),
        batch: 3,
        place: Processor::Gpu,
        speakers: true,
        speaker_batch: 8,
        speaker_place: Processor::Cpu,
    })
}

#[test]
fn every_command_arrives_as_it_was_sent() {
    let job = || Box::new(every_setting_changed());
    for (name, command) in [
        ("hello", Command::Hello { protocol: u32::MAX }),
        ("ping", Command::Ping { nonce: u64::MAX }),
        ("describe", Command::Describe),
        ("transcribe", Command::Transcribe(job())),
        ("transcribe", Command::Transcribe(Box::new(Job::new(1, "a", "b")))),
        ("detect_languages", Command::DetectLanguages { id: 2, files: vec![], job: job() }),
        (
            "detect_languages",
            Command::DetectLanguages { id: 2, files: vec!["a".into(), "b".into()], job: job() },
        ),
        ("know_voices", Command::KnowVoices { voices: vec![known_voice()] }),
        (
            "encode_voice",
            Command::EncodeVoice(Box::new(EncodeVoice {
                job: Job::new(3, "a.wav", "/models/ü"),
                spans: vec![Span::new(Time::ZERO, Time::from_millis(1500))],
            })),
        ),
        (
            "embed_texts",
            Command::EmbedTexts(Box::new(EmbedTexts {
                job: every_setting_changed(),
                role: TextRole::Query,
                texts: vec!["Straße".into(), String::new()],
            })),
        ),
        (
            "adapt",
            Command::Adapt(Box::new(Adapt {
                job: every_setting_changed(),
                lessons: vec![Lesson {
                    file: "/a/ü.wav".into(),
                    span: Some(Span::new(Time::ZERO, Time::from_millis(1500))),
                    text: "Straße".into(),
                    language: Some("de".into()),
                    corrected: true,
                    held_back: true,
                }],
                settings: AdaptSettings { rank: 3, rate: 0.25, ..AdaptSettings::default() },
                remember: true,
                folder: "/work".into(),
                output: "/b".into(),
            })),
        ),
        (
            "quantise",
            Command::Quantise(Box::new(Quantise {
                id: 3,
                model: "/models/ü".into(),
                precision: memory::Precision::Q5_0,
                output: "b".into(),
            })),
        ),
        ("cancel", Command::Cancel { id: 0 }),
        ("shutdown", Command::Shutdown),
    ] {
        check("command", name, command);
    }
}

#[test]
fn every_event_arrives_as_it_was_sent() {
    let turn = NamedTurn {
        span: Span::new(Time::ZERO, Time::from_millis(u32::MAX)),
        speaker: "Anna".into(),
        channel: Some(1),
    };
    let failure = || Failure::new(ErrorCode::DiskFull, "No space.").file("/a").remedy("Make some.");
    let description = Description {
        engine: "0.1.0".into(),
        backend: Backend::Cuda,
        devices: vec![DeviceInfo {
            id: "cuda:0".into(),
            name: "A GPU".into(),
            total_bytes: Some(u64::MAX),
            free_bytes: None,
        }],
        cpu_reason: Some("No driver.".into()),
        threads: 8,
        cpu_features: vec!["avx2".into()],
        codecs: vec!["flac".into()],
        ffmpeg: Some("7.1".into()),
        ffmpeg_codecs: vec!["ac3".into()],
        versions: vec![("candle".into(), "0.11.1".into())],
    };
    let progress = |position| Progress {
        stage: Stage::Align,
        position,
        duration: Some(Time::from_millis(7)),
        speed: Some(1.0 / 3.0),
        left: None,
    };
    let model = Model { name: "base".into(), precision: "q8_0".into(), demonstration: false, adapter: None };
    for (name, event) in [
        ("hello", Event::Hello { protocol: 1, engine: "x".into(), backend: Backend::Cpu, pid: u32::MAX }),
        ("pong", Event::Pong { nonce: 1, work: u64::MAX }),
        ("description", Event::Description(Box::new(description))),
        ("started", Event::Started { source: source(), model, device: "cuda:1".into() }),
        ("progress", Event::Progress { progress: progress(Time::ZERO) }),
        ("progress", Event::Progress { progress: progress(Time::from_millis(u32::MAX)) }),
        ("segment", Event::Segment { segment: segment() }),
        ("live_text", Event::LiveText { text: "so far".into() }),
        ("turns", Event::Turns { turns: vec![turn] }),
        ("notice", Event::Notice { notice: notice() }),
        ("finished", Event::Finished { transcript: Box::new(transcript()), renewal: None }),
        ("cancelled", Event::Cancelled { partial: None }),
        ("cancelled", Event::Cancelled { partial: Some(Box::new(transcript())) }),
        ("failed", Event::Failed { error: failure(), partial: None }),
        ("failed", Event::Failed { error: failure(), partial: Some(Box::new(transcript())) }),
        (
            "language",
            Event::Language {
                file: "a".into(),
                probabilities: vec![("en".into(), 0.7), ("de".into(), 1e-30)],
            },
        ),
        ("file_failed", Event::FileFailed { file: "a".into(), error: failure() }),
        ("languages_done", Event::LanguagesDone),
        (
            "quantised",
            Event::Quantised { size: u64::MAX, kept: vec![("a.weight".into(), memory::Precision::F16)] },
        ),
        (
            "voice",
            Event::Voice {
                voice: Box::new(EncodedVoice {
                    network: "a".into(),
                    vector: vec![0.6, -0.8],
                    seconds: 12.5,
                    seconds_of_others: 0.0,
                }),
            },
        ),
        (
            "vectors",
            Event::Vectors {
                vectors: vec![TextVector { text: 3, vector: vec![0.6, -0.8] }],
                done: 4,
                total: 5,
                per_second: 1.5,
            },
        ),
        (
            "adapting",
            Event::Adapting {
                progress: Box::new(AdaptProgress {
                    epoch: 2,
                    loss: Some(0.5),
                    keeps_inputs: true,
                    ..AdaptProgress::default()
                }),
            },
        ),
        (
            "adapted",
            Event::Adapted {
                adapted: Box::new(Adapted {
                    adapter: "/b".into(),
                    remembered: 4,
                    epoch: 2,
                    losses: vec![0.5, 0.25],
                    held_back: vec![1.5],
                }),
                renewal: None,
            },
        ),
        ("texts_embedded", Event::TextsEmbedded { renewal: Some(memory::Renewal::Leak) }),
        ("ladder", Event::Ladder { state: Box::new(ladder()) }),
    ] {
        check("event", name, Envelope::of_job(JobId::MAX, event.clone()));
        check("event", name, Envelope::of_engine(event));
    }
}

#[test]
fn an_event_and_its_job_are_one_object() {
    for (expected, envelope) in [
        (r#"{"job":7,"event":"languages_done"}"#, Envelope::of_job(7, Event::LanguagesDone)),
        (r#"{"event":"pong","nonce":1,"work":2}"#, Envelope::of_engine(Event::Pong { nonce: 1, work: 2 })),
    ] {
        assert_eq!(serde_json::to_string(&envelope).unwrap(), expected);
    }
}

#[test]
fn a_failure_reads_as_file_then_what_happened_then_what_to_do() {
    let plain = Failure::new(ErrorCode::NoAudioTrack, "There is no sound in it.");
    for (expected, failure) in [
        ("There is no sound in it.", plain.clone()),
        ("/a/b.mp4: There is no sound in it.", plain.clone().file("/a/b.mp4")),
        ("There is no sound in it. Choose another.", plain.clone().remedy("Choose another.")),
        ("b.mp4: There is no sound in it. Choose another.", plain.file("b.mp4").remedy("Choose another.")),
    ] {
        assert_eq!(failure.to_string(), expected);
    }
}

#[test]
fn a_host_of_an_older_build_may_leave_decoding_options_out() {
    let mut json = serde_json::to_value(Job::new(1, "a", "b")).unwrap();
    json["decoding"] = serde_json::json!({ "beam_size": 2 });
    let job: Job = serde_json::from_value(json).unwrap();
    assert_eq!(job.decoding, DecodingOptions { beam_size: Some(2), ..DecodingOptions::default() });
}
