//! `steno serve` that is killed, with the real engine, and as programs use it. `STENO_KILL_ROUNDS` asks for more kills
//! than the few of an ordinary run (scripts/soak.sh does).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::http::{Ask, Serving};
use crate::support::{Ran, Sandbox, project, real_engine, wav};

const CLIENTS: usize = 20;

/// What the clients were told.
#[derive(Debug, Default)]
struct Told {
    /// Ids of accepted jobs with the names of their recordings.
    accepted: Vec<(String, String)>,
    /// Names of recordings that were refused.
    refused: BTreeSet<String>,
    /// Texts that came as an answer, with the names.
    answered: Vec<(String, String)>,
}

/// One client: it asks and asks, whether or not there is a server.
fn ask_on(number: usize, address: &str, is_over: &AtomicBool, told: &Mutex<Told>) {
    for count in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("takes-{number}-{count}");
        let file = Some((name.as_str(), name.as_bytes()));
        let waits = number % 2 == 1;
        let answer = if waits {
            Ask::new("POST", "/v1/audio/transcriptions").form(&[("model", "whisper-1")], file).try_to(address)
        } else {
            Ask::new("POST", "/jobs").form(&[], file).try_to(address)
        };
        // No whole answer came: whether the job was accepted is unknown.
        let Some(answer) = answer else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let mut told = told.lock().unwrap();
        match answer.status {
            202 => told.accepted.push((answer.json()["id"].as_str().unwrap().to_owned(), name)),
            200 => told.answered.push((answer.json()["text"].as_str().unwrap().to_owned(), name)),
            429 => {
                told.refused.insert(name);
                drop(told);
                std::thread::sleep(Duration::from_millis(20));
            }
            // It was told to stop, and keeps what it accepted.
            503 => {}
            other => panic!("{other}: {}", answer.text()),
        }
    }
}

#[test]
fn servers_killed_under_many_clients_finish_every_job_once() {
    let rounds: u64 =
        std::env::var("STENO_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let sandbox = Sandbox::with(&[]);
    let options = ["--queue", "12"];
    let mut server = Serving::start(&sandbox, &options);
    let address = server.address.clone();
    let (is_over, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Told::default())));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (address, is_over, told) = (address.clone(), Arc::clone(&is_over), Arc::clone(&told));
            std::thread::spawn(move || ask_on(number, &address, &is_over, &told))
        })
        .collect();
    let mut random: u64 = 7;
    for _ in 0..rounds {
        // The same moments in every run, as far as the machine allows.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((random >> 33) % 300));
        server.kill();
        server = Serving::of(sandbox.command(&[&["serve", "--listen", &address], &options[..]].concat()));
    }
    let before = told.lock().unwrap().answered.len();
    let since = Instant::now();
    while told.lock().unwrap().answered.len() == before {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing is answered any more");
        std::thread::sleep(Duration::from_millis(10));
    }
    is_over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());

    let told = told.lock().unwrap();
    let text = |name: &str| format!("Good morning. This is {name}.");
    assert!(!told.accepted.is_empty() && !told.refused.is_empty(), "{told:?}");
    for (answered, name) in &told.answered {
        assert_eq!(*answered, text(name));
    }
    let jobs = server.jobs();
    for job in &jobs {
        // Those that were accepted before their client could hear of it are finished too.
        let id = job["id"].as_str().unwrap();
        assert_eq!(server.over(id)["state"], "finished", "{job}");
        let transcript = server.get(&format!("/jobs/{id}/transcript")).is(200).json();
        let segments = transcript["segments"].as_array().unwrap();
        let said: Vec<&str> = segments.iter().map(|segment| segment["text"].as_str().unwrap()).collect();
        assert_eq!(said.join(" "), text(job["name"].as_str().unwrap()));
    }
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    let once: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(once.len(), names.len(), "a job is there twice");
    for (id, name) in &told.accepted {
        assert!(jobs.iter().any(|job| job["id"] == **id && job["name"] == **name), "{name} was lost");
    }
    for (_, name) in &told.answered {
        assert!(once.contains(&**name), "{name} was lost");
    }
    for name in &told.refused {
        assert!(!once.contains(&**name), "{name} was refused and is there");
    }
    // Nor does anything else stay: no folder of a broken upload, nothing in the journal.
    drop(server);
    let server = Serving::start(&sandbox, &[]);
    let folders = std::fs::read_dir(sandbox.home.path().join("steno/server/jobs")).unwrap().count();
    assert_eq!((folders, server.jobs().len()), (jobs.len(), jobs.len()));
    assert!(server.get("/metrics").text().contains("steno_jobs{state=\"waiting\"} 0\n"));
    println!("{} jobs, {} refused, {rounds} kills", jobs.len(), told.refused.len());
}

fn sample() -> Vec<u8> {
    std::fs::read(project().join("tests/data/sample.flac")).unwrap()
}

/// What the command line makes of it.
fn by_command_line(sandbox: &Sandbox, recording: &[u8]) -> Value {
    std::fs::write(sandbox.path("talk.flac"), recording).unwrap();
    let arguments =
        ["transcribe", "talk.flac", "-f", "json", "-o", "-", "--quiet", "--keep", "model,precision"];
    let ran: Ran = sandbox.command_with(&real_engine(), &arguments).output().unwrap().into();
    serde_json::from_str(&ran.ends(0).out).unwrap()
}

/// The sample, several times over.
fn longer(times: usize) -> Vec<u8> {
    let mut reader =
        audio::Reader::open(&project().join("tests/data/sample.flac"), &Default::default()).unwrap();
    let mut data = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        data.extend(block.iter().flat_map(|sample| ((sample * 32_767.0) as i16).to_le_bytes()));
    }
    wav(&data.repeat(times))
}

#[test]
fn a_server_that_is_killed_writes_the_text_of_the_command_line() {
    let sandbox = Sandbox::with(&[]);
    let recording = longer(5);
    let expected = by_command_line(&sandbox, &recording);
    let start = || Serving::with_engine(&sandbox, &real_engine(), &["--keep", "model,precision"]);
    let mut server = start();
    let add = Ask::new("POST", "/jobs").form(&[], Some(("talk.flac", &recording)));
    let id = add.to(&server.address).is(202).json()["id"].as_str().unwrap().to_owned();
    // Until some of its text is in the journal.
    let since = Instant::now();
    let is_at_work = |job: Value| {
        let progress = &job["progress"];
        progress["stage"] == "transcribe" && progress["position"].as_f64().is_some_and(|at| at > 20.0)
    };
    while !is_at_work(server.get(&format!("/jobs/{id}")).json()) {
        assert!(since.elapsed() < Duration::from_secs(120), "it does not go on");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.kill();
    let server = start();
    assert_eq!(server.over(&id)["state"], "finished");
    let transcript = server.get(&format!("/jobs/{id}/transcript")).is(200).json();
    for field in ["segments", "language", "completeness", "model"] {
        assert_eq!(transcript[field], expected[field], "{field}");
    }
    assert_eq!(transcript["source"]["name"], "talk.flac");
}

#[test]
fn the_official_client_works_unchanged() {
    let python = project().join("target/openai-client/bin/python");
    if !python.is_file() {
        println!("skipped: the official client is not installed (scripts/setup.sh test)");
        return;
    }
    let sandbox = Sandbox::with(&[]);
    let made = sandbox.run(&["serve", "--create-token", "client"]).ends(0);
    let server = Serving::with_engine(&sandbox, &real_engine(), &["--require-token"]);
    let transcript = by_command_line(&sandbox, &sample());
    let segments = transcript["segments"].as_array().unwrap();
    let text: Vec<&str> = segments.iter().map(|segment| segment["text"].as_str().unwrap()).collect();
    let ran: Ran = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/openai_client.py"))
        .args([&server.address, made.out.trim()])
        .arg(project().join("tests/data/sample.flac"))
        .arg(text.join(" "))
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into();
    let ran = ran.ends(0);
    assert_eq!(ran.out.lines().filter(|line| line.ends_with(" ok")).count(), 7, "{}", ran.out);
}

#[test]
fn the_readme_asks_as_it_says() {
    let sandbox = Sandbox::with(&[]);
    std::fs::write(sandbox.path("talk.mp3"), "alpha").unwrap();
    let server = Serving::start(&sandbox, &[]);
    for document in ["README.md", "docs/guide/server.md"] {
        let text = std::fs::read_to_string(project().join(document)).unwrap();
        let line = text.lines().map(str::trim).find(|line| line.starts_with("curl ")).unwrap();
        assert!(line.contains("127.0.0.1:8642"), "{line}");
        let line = line.replace("127.0.0.1:8642", &server.address);
        let mut shell = Command::new("sh");
        let ran: Ran = shell.args(["-c", &line]).current_dir(sandbox.folder.path()).output().unwrap().into();
        let answer: Value = serde_json::from_str(&ran.ends(0).out).unwrap();
        assert_eq!(answer["text"], "Good morning. This is alpha.", "{line}");
    }
    let help = sandbox.run(&["serve", "--help"]).ends(0).out;
    assert!(help.contains("127.0.0.1:8642"), "{help}");
}

/// A FLAC file of silence at 8 kHz whose header does not say how long it is: a few bytes per 65,535 samples.
fn silent_flac(hours: u64) -> Vec<u8> {
    const BLOCK: u64 = 65_535;
    let mut file = b"fLaC\x80\x00\x00\x22".to_vec();
    file.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    // 20 bits of sample rate, 3 of channels less 1, 5 of bits less 1, 36 of samples (0: unknown); then no MD5.
    let packed = (8_000u64 << 44) | (15u64 << 36);
    file.extend(packed.to_be_bytes());
    file.extend([0; 16]);
    for number in 0..hours * 3600 * 8_000 / BLOCK {
        // 16 bits of block size, 8 kHz (code 4), mono, 16 bits (code 4).
        let mut frame = vec![0xff, 0xf8, 0x74, 0x08];
        let mut encoded = [0; 4];
        let code = char::from_u32(number as u32).unwrap();
        frame.extend(code.encode_utf8(&mut encoded).as_bytes());
        frame.extend((BLOCK as u16 - 1).to_be_bytes());
        frame.push(crc(&frame, 0x07, 8) as u8);
        // A constant subframe: 0.
        frame.extend([0, 0, 0]);
        frame.extend((crc(&frame, 0x8005, 16) as u16).to_be_bytes());
        file.extend(frame);
    }
    file
}

fn crc(bytes: &[u8], polynomial: u32, bits: u32) -> u32 {
    let mut value: u32 = 0;
    for byte in bytes {
        value ^= u32::from(*byte) << (bits - 8);
        for _ in 0..8 {
            let carry = (value >> (bits - 1)) & 1;
            value = ((value << 1) ^ (carry * polynomial)) & ((1 << bits) - 1);
        }
    }
    value
}

#[test]
fn a_bomb_that_decodes_to_hours_ends_at_the_longest_allowed() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::with_engine(&sandbox, &real_engine(), &["--max-duration", "60"]);
    let bomb = silent_flac(100);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let ask = Ask::new("POST", "/v1/audio/transcriptions");
    let answer = ask.form(&[("model", "whisper-1")], Some(("a.flac", &bomb))).to(&server.address).is(400);
    assert_eq!(answer.error().0, "recording_too_long");
    let ask = Ask::new("POST", "/jobs").form(&[], Some(("a.flac", &bomb)));
    let id = ask.to(&server.address).is(202).json()["id"].as_str().unwrap().to_owned();
    let over = server.over(&id);
    assert_eq!((&over["state"], &over["error"]["code"]), (&"failed".into(), &"recording_too_long".into()));
    // The sample is short enough.
    let ask = Ask::new("POST", "/v1/audio/transcriptions");
    ask.form(&[("model", "whisper-1")], Some(("a.flac", &sample()))).to(&server.address).is(200);
}
