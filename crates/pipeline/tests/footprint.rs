//! The memory that decoding takes, against what was predicted: in a process of
//! its own, since other tests allocate too. `STENO_FOOTPRINT_MODELS=small,large-v3-turbo`
//! adds sizes, and numbers of windows, that an ordinary run has no time for (scripts/soak.sh does).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use audio::{LogMel, OpenOptions, PrepareOptions, Recording};
use candle_core::Device;
use formats::SpeakerModel;
use memory::bytes::MIB;
use memory::{DeviceKind, Dimensions, Footprint, HOST_VOCABULARY, Host, Plan, Precision, Probe, platform};
use models::whisper::Whisper;
use pipeline::speakers::community::{self, CommunityHeard, CommunityNetworks};
use pipeline::speakers::nemotron::{self, NemotronHeard, NemotronNetworks};
use pipeline::speakers::{Heard, Networks, listen};
use pipeline::whisper::{Observer, Step, Transcriber};
use pipeline::{Control, Request, StageError, load_speech_model};
use transcript::Task;
use wire::{DecodingOptions, ErrorCode, Failure, Point, Strategy};

/// Steps of the search: what a random model writes never ends by itself.
const TOKENS: usize = 32;
/// Of a prediction, in parts of one.
const TOLERANCE: f64 = 0.15;

/// Ends the run after so many windows, a batch of `windows` at a time.
struct OneBatch {
    windows: usize,
    wanted: usize,
    done: usize,
}

impl Observer for OneBatch {
    fn batch_size(&mut self) -> usize {
        self.windows
    }

    fn step(&mut self, step: Step) -> Result<(), StageError> {
        if let Step::Found(found) = step {
            self.done += usize::from(found.windows > 0);
        }
        if self.done < self.wanted {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::Cancelled, "One batch is enough.").into())
    }
}

/// Writes a recording several times over, as a WAV file of 16 kHz.
fn repeat(recording: &Path, times: usize, output: &Path) {
    let mut reader = audio::Reader::open(recording, &OpenOptions::default()).unwrap();
    let mut samples = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        samples.extend(block.iter().flat_map(|sample| ((sample * 32767.0) as i16).to_le_bytes()));
    }
    let samples = samples.repeat(times);
    let length = samples.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(16_000u32.to_le_bytes());
    file.extend(32_000u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(length.to_le_bytes());
    file.extend(samples);
    std::fs::write(output, file).unwrap();
}

#[test]
fn decoding_takes_what_was_predicted() {
    // Each thread has buffers of its own: as many as most machines have at least, whatever other tests compute on.
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
    if let Ok(asked) = std::env::var(SPEAKERS_ALONE) {
        let (windows, recording) = asked.split_once(' ').unwrap();
        return measure_speakers_alone(windows.parse().unwrap(), Path::new(recording));
    }
    platform::fix_allocator(platform::AllocatorSettings::default());
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new().sampled(Duration::from_millis(1));
    let held = || host.read().unwrap().ours.unwrap().reserved;
    let options = PrepareOptions {
        open: OpenOptions { limit_seconds: Some(130.0), ..OpenOptions::default() },
        ..PrepareOptions::default()
    };
    let path = folder.path().join("three_minutes.wav");
    repeat(&random_models::corpus::bundled().join("audio/synthetic/en_minute_1.flac"), 3, &path);
    let recording = audio::prepare(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let frames =
        |region: &audio::SpeechRegion| (region.start / 160) as usize..region.end.div_ceil(160) as usize;
    let speech: Vec<_> = recording.speech.iter().map(frames).collect();
    // The tables of the Fourier transform and the threads are there for good.
    recording.log_mel(&LogMel::new(80), 0, 10).unwrap();
    let mut wrong = Vec::new();
    println!("model       beams  windows  predicted MB  measured MB  difference  decoding alone");
    let more = std::env::var("STENO_FOOTPRINT_MODELS").unwrap_or_default();
    let more =
        more.split(',').filter(|name| !name.is_empty()).map(|name| (name, Precision::F32, 1, &[1, 2][..]));
    let [wide, narrow] = [Precision::F32, Precision::Q8_0];
    let ends = [("tiny", wide, 1, &[1, 4][..]), ("tiny", wide, 5, &[4]), ("base", narrow, 1, &[4])];
    let whole = [("tiny", wide, 1, &[1, 2, 4][..]), ("tiny", wide, 5, &[4]), ("base", narrow, 1, &[1, 4])];
    let usual = if is_soak() { whole } else { ends };
    for (name, precision, beams, batches) in usual.into_iter().chain(more) {
        let size = random_models::Size::named(name).unwrap();
        let model_folder = folder.path().join(name);
        if !random_models::is_complete(&model_folder) {
            random_models::write(&model_folder, size, &random_models::Options::default()).unwrap();
        }
        platform::trim_allocator();
        let before = held();
        platform::set_loading(true);
        let model = Whisper::load(&model_folder, &Device::Cpu, precision, &|| true).unwrap();
        platform::set_loading(false);
        let dimensions = Dimensions::of_public(name).unwrap();
        let plan = Plan {
            beams,
            // The start of the transcript, its language and its task.
            tokens: TOKENS as u64 + 3,
            ..Plan::new(DeviceKind::Host, precision, &dimensions)
        };
        let footprint = Footprint::whisper(&dimensions, &plan);
        let settings = DecodingOptions {
            beam_size: Some(beams as usize),
            temperatures: vec![0.0],
            max_tokens: Some(TOKENS),
            repair: false,
            no_speech_threshold: None,
            ..DecodingOptions::default()
        };
        let control = Control::default();
        let transcriber = Transcriber {
            model: &model,
            settings: &settings,
            task: Task::Transcribe,
            main_language: "en",
            language: "en",
            span: None,
            seed: 1,
            boost: None,
            control: &control,
        };
        for windows in batches.iter().copied() {
            platform::trim_allocator();
            let loaded = held();
            host.reset_peak();
            let mut one = OneBatch { windows, wanted: windows, done: 0 };
            let from = Point::default();
            let result = transcriber.run(Strategy::Batched, &recording, Some(&speech), &from, &[], &mut one);
            assert!(result.is_err() && one.done == windows, "{result:?}, {} done", one.done);
            let peak = host.read().unwrap().ours.unwrap().peak.unwrap();
            let measured = peak.saturating_sub(loaded);
            let predicted = footprint.work(windows as u64);
            // The whole process, as it is held against a limit.
            let whole = peak - before;
            let whole_predicted = HOST_VOCABULARY + footprint.weights + predicted;
            let difference = whole_predicted as f64 / whole as f64 - 1.0;
            println!(
                "{name:6} {precision:4} {beams:>5} {windows:>8} {:>13} {:>12} {:>+10.1} %  {:>6} of {:>4}",
                whole_predicted / MIB,
                whole / MIB,
                100.0 * difference,
                measured / MIB,
                predicted / MIB,
            );
            if difference.abs() > TOLERANCE {
                wrong.push(format!(
                    "{name} {precision}, {beams} beams, {windows} windows: {:+.0} %",
                    100.0 * difference
                ));
            }
        }
    }
    read_piece_by_piece(&recording, &speech, &host, &mut wrong);
    tell_speakers_apart(&path, &mut wrong);
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Parakeet with a transducer and with a CTC head, and Canary, of a third of the released size, or of all of it.
fn read_piece_by_piece(recording: &Recording, speech: &[Range<usize>], host: &Host, wrong: &mut Vec<String>) {
    let released = random_models::ParakeetSize::named("parakeet-tdt-0.6b-v3").unwrap();
    let small =
        random_models::ParakeetSize { layers: if is_soak() { released.layers } else { 5 }, ..*released };
    let ctc = random_models::ParakeetSize { vocabulary: 1025, predictor: 0, ..small };
    let released = random_models::CanarySize::named("canary-1b-v2").unwrap();
    let canary = match is_soak() {
        true => *released,
        false => random_models::CanarySize { layers: 4, decoder_layers: 3, ..*released },
    };
    let held = || host.read().unwrap().ours.unwrap().reserved;
    for (name, precision) in [
        ("tdt", Precision::F32),
        ("tdt", Precision::Q8_0),
        ("ctc", Precision::F32),
        ("canary", Precision::F32),
        ("canary", Precision::Q8_0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = random_models::Options::default();
        match name {
            "canary" => random_models::write_canary_model(folder.path(), &canary, &options),
            "tdt" => random_models::write_parakeet_model(folder.path(), &small, &options),
            _ => random_models::write_parakeet_model(folder.path(), &ctc, &options),
        }
        .unwrap();
        let network = formats::ModelInfo::network(folder.path()).unwrap();
        let footprint = Footprint::of(&network, &network.plan(DeviceKind::Host, precision));
        let (settings, control) = (DecodingOptions::default(), Control::default());
        let request = Request {
            recording,
            speech: Some(speech),
            span: None,
            strategy: Strategy::Auto,
            settings: &settings,
            task: Task::Transcribe,
            language: "en",
            skip: &[],
            control: &control,
        };
        platform::trim_allocator();
        let before = held();
        platform::set_loading(true);
        let model = load_speech_model(&network, folder.path(), &Device::Cpu, precision, &|| true).unwrap();
        platform::set_loading(false);
        // One window shows what a model itself takes. What more windows add is computed by the same encoder in all of
        // them, so that one is enough to show it.
        let batches: &[usize] = if is_soak() || name == "ctc" { &[1, 4] } else { &[1] };
        for windows in batches.iter().copied() {
            platform::trim_allocator();
            host.reset_peak();
            // The first window of a recording is shorter than those that are predicted.
            let mut one = OneBatch { windows, wanted: windows + 1, done: 0 };
            model.transcribe(&request, &Point::default(), &mut one).unwrap_err();
            let whole = host.read().unwrap().ours.unwrap().peak.unwrap() - before;
            let predicted = footprint.weights + footprint.work(windows as u64);
            let difference = predicted as f64 / whole as f64 - 1.0;
            println!(
                "{name} {precision} {windows:>8} {:>13} {:>12} {:>+10.1} %",
                predicted / MIB,
                whole / MIB,
                100.0 * difference
            );
            if difference.abs() > TOLERANCE {
                wrong.push(format!("{name} {precision}, {windows} windows: {:+.0} %", 100.0 * difference));
            }
        }
    }
}

/// Asks the process of [`decoding_takes_what_was_predicted`] to measure this many windows of speakers alone.
const SPEAKERS_ALONE: &str = "STENO_FOOTPRINT_SPEAKERS";
/// Folder of the installed model that it measures; empty: those in the program.
const SPEAKER_MODEL: &str = "STENO_FOOTPRINT_SPEAKER_MODEL";

/// Whether everything is measured, and not only the ends of each range.
fn is_soak() -> bool {
    std::env::var_os("STENO_FOOTPRINT_MODELS").is_some()
}

/// The networks that tell speakers apart and their work, for several numbers of
/// windows of ten seconds at a time: those in the program, and an installed model.
fn tell_speakers_apart(recording: &Path, wrong: &mut Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let (community, nemotron) = (folder.path().join("community"), folder.path().join("nemotron"));
    random_models::write_speaker_model(&community).unwrap();
    let layers = if is_soak() { random_models::NEMOTRON_LAYERS } else { 4 };
    random_models::write_nemotron_model(&nemotron, layers).unwrap();
    let batches: &[u64] = if is_soak() { &[1, 2, 4, 8, 16] } else { &[1, 16] };
    for (name, model, batches) in [
        ("speakers", None, batches),
        ("community", Some(community.as_path()), batches),
        ("nemotron", Some(nemotron.as_path()), &[1]),
    ] {
        let footprint = formats::speaker_footprint(model, DeviceKind::Host);
        for windows in batches.iter().copied() {
            // They take so little that what an earlier measurement left to the allocator would count:
            // each number has a process of its own, as an engine is for its first recording.
            const MOST_TIMES: usize = 12;
            let predicted = footprint.weights + footprint.work(windows);
            let too_much = |whole: u64| predicted as f64 / whole as f64 - 1.0 > TOLERANCE;
            let mut peaks = vec![peak_of_speakers_alone(recording, windows, model)];
            // A peak of a few milliseconds is sometimes missed and never made up: the highest reading is the
            // nearest, and as long as it is too low there may be a higher one.
            while too_much(peaks[peaks.len() - 1]) && peaks.len() < MOST_TIMES {
                peaks.push(peak_of_speakers_alone(recording, windows, model));
                peaks.sort_unstable();
            }
            let whole = peaks[peaks.len() - 1];
            let difference = predicted as f64 / whole as f64 - 1.0;
            println!(
                "{name:9} {windows:>11} {:>13} {:>12} {:>+10.1} %  {} to {}",
                predicted / MIB,
                whole / MIB,
                100.0 * difference,
                peaks[0] / MIB,
                whole / MIB,
            );
            if difference.abs() > TOLERANCE {
                wrong.push(format!("{name}, {windows} windows: {:+.0} %", 100.0 * difference));
            }
        }
    }
}

/// The greatest memory of a process that tells speakers apart, in bytes.
fn peak_of_speakers_alone(recording: &Path, windows: u64, model: Option<&Path>) -> u64 {
    let model = model.map(|model| model.display().to_string()).unwrap_or_default();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["decoding_takes_what_was_predicted", "--exact", "--nocapture"])
        .env(SPEAKERS_ALONE, format!("{windows} {}", recording.display()))
        .env(SPEAKER_MODEL, model)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let peak = said.lines().find_map(|line| line.strip_prefix("peak "));
    assert!(peak.is_some(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    peak.unwrap().parse().unwrap()
}

/// What the process of [`peak_of_speakers_alone`] does.
fn measure_speakers_alone(windows: usize, recording: &Path) {
    platform::fix_allocator(platform::AllocatorSettings::default());
    let host = Host::new().sampled(Duration::from_millis(1));
    let recording =
        audio::prepare(recording, &PrepareOptions::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
    let model = std::env::var(SPEAKER_MODEL).unwrap();
    platform::trim_allocator();
    host.reset_peak();
    let before = host.read().unwrap().ours.unwrap().reserved;
    // The last windows are enough.
    if model.is_empty() {
        let known = (recording.seconds() / 2.0) as usize - 2 * 16 - 5;
        let mut heard = Heard { windows: vec![Vec::new(); known], ..Heard::default() };
        let networks = Networks::bundled(&Device::Cpu).unwrap();
        listen(&recording.pcm, &networks, windows, &mut heard, &mut |_, _| Ok(())).unwrap();
    } else if let Ok(Some(SpeakerModel::Nemotron(files))) = SpeakerModel::find(Path::new(&model)) {
        let networks = NemotronNetworks::open(&files, &Device::Cpu).unwrap();
        let mut chunks = 0;
        // The cache is full after one, the steps from the second on are of full length.
        let enough = &mut |_: u64, _: &NemotronHeard| {
            chunks += 1;
            if chunks < 3 { Ok(()) } else { Err(models::Error::Interrupted.into()) }
        };
        assert!(nemotron::listen(&recording.pcm, &networks, &mut NemotronHeard::default(), enough).is_err());
    } else {
        let known = recording.seconds() as usize - 10 - 18;
        let mut heard = CommunityHeard { windows: vec![Vec::new(); known], ..CommunityHeard::default() };
        let files = formats::SpeakerFiles::find(Path::new(&model)).unwrap().unwrap();
        let networks = CommunityNetworks::open(&files, &Device::Cpu).unwrap();
        community::listen(&recording.pcm, &networks, windows, &mut heard, &mut |_, _| Ok(())).unwrap();
        assert!(!heard.voices.is_empty());
    }
    println!("\npeak {}", host.read().unwrap().ours.unwrap().peak.unwrap() - before);
}
