//! `steno serve` over real HTTP, with the scripted engine: what is in an uploaded recording says what happens.

use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::http::{Answer, Ask, Serving, connect};

/// The scripted engine's text of a recording.
fn text(name: &str) -> String {
    format!("Good morning. This is {name}.")
}

#[test]
fn every_response_format_has_the_text() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let answer = |format: &str, more: &[(&str, &str)]| {
        server.transcribe("alpha", &[&[("response_format", format)], more].concat()).is(200)
    };
    let usage = json!({ "type": "duration", "seconds": 10.0 });
    assert_eq!(
        server.transcribe("alpha", &[]).is(200).json(),
        json!({ "text": text("alpha"), "usage": usage })
    );
    assert_eq!(answer("json", &[]).json()["text"], text("alpha"));
    assert_eq!(answer("text", &[]).text(), text("alpha") + "\n");
    assert!(answer("srt", &[]).text().starts_with("1\n00:00:00,000 --> 00:00:01,500\nGood morning.\n"));
    assert!(
        answer("vtt", &[]).text().starts_with("WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nGood morning.\n")
    );
    let verbose = answer("verbose_json", &[]).json();
    assert_eq!(verbose["text"], text("alpha"));
    assert_eq!((&verbose["duration"], &verbose["language"]), (&json!(10.0), &json!("en")));
    assert_eq!(verbose["segments"][1]["text"], "This is alpha.");
    assert_eq!((&verbose["segments"][1]["start"], &verbose["segments"][1]["id"]), (&json!(1.5), &json!(1)));
    assert!(verbose.get("words").is_none());
    let words = answer("verbose_json", &[("timestamp_granularities[]", "word")]).json();
    assert_eq!(words["words"][0], json!({ "word": "Good", "start": 0.0, "end": 0.75 }));
    assert!(words.get("segments").is_none());
    let diarized = answer("diarized_json", &[]).json();
    assert_eq!(diarized["segments"][0]["type"], "transcript.text.segment");
    assert_eq!(
        (&diarized["segments"][0]["text"], &diarized["task"]),
        (&json!("Good morning."), &json!("transcribe"))
    );
    let translated =
        server.speech("translations", "alpha", &[("response_format", "verbose_json")]).is(200).json();
    assert_eq!(translated["task"], "translate");
    // The text of the demonstration model says so wherever it goes.
    for format in ["json", "text", "srt", "verbose_json", "vtt", "diarized_json"] {
        let said = server.transcribe("demo", &[("response_format", format)]).is(200).text();
        assert!(said.contains("Demonstration model"), "{format}: {said}");
    }
}

#[test]
fn a_stream_has_the_official_events() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let stream = |content: &str, format: &str| {
        let fields = [("response_format", format), ("stream", "true")];
        let answer = server.transcribe(content, &fields).is(200);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        answer.events()
    };
    for (format, expected) in [
        ("json", vec!["transcript.text.delta", "transcript.text.delta", "transcript.text.done"]),
        (
            "diarized_json",
            vec![
                "transcript.text.delta",
                "transcript.text.delta",
                "transcript.text.segment",
                "transcript.text.segment",
                "transcript.text.done",
            ],
        ),
    ] {
        let events = stream("alpha", format);
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected);
        assert!(events.iter().all(|(name, data)| data["type"] == **name));
        let deltas: String = events.iter().filter_map(|(_, data)| data["delta"].as_str()).collect();
        assert_eq!(deltas, text("alpha"));
        assert_eq!(events.last().unwrap().1["text"], text("alpha"));
    }
    let failed = stream("broken", "json");
    assert_eq!((failed[0].0.as_str(), &failed[0].1["error"]["code"]), ("error", &json!("audio_broken")));
}

/// A request that names no model and no language has the language identified first, where that is set.
#[test]
fn the_model_of_a_request_follows_from_its_language_where_that_is_set() {
    let sandbox = crate::transducer::with_both();
    let models = |by_language: &str, fields: &[(&str, &str)]| -> Vec<String> {
        let file = sandbox.home.path().join("received");
        let _ = std::fs::remove_file(&file);
        let mut command = sandbox.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env_remove("STENO_MODEL").env("HOME", sandbox.home.path()).env_remove("HF_HOME");
        command.env("STENO_SCRIPT_JOBS", &file).env("STENO_MODEL_BY_LANGUAGE", by_language);
        Serving::of(command).transcribe("alpha", fields).is(200);
        let jobs = std::fs::read_to_string(&file).unwrap();
        let model = |line: &str| -> String {
            let job: Value = serde_json::from_str(line).unwrap();
            let path = job.pointer("/job/model").and_then(Value::as_str).unwrap().to_owned();
            path.rsplit('/').next().unwrap().to_owned()
        };
        jobs.lines().map(model).collect()
    };
    assert_eq!(models("true", &[]), ["whisper", "parakeet"]);
    assert_eq!(models("false", &[]), ["whisper"]);
    assert_eq!(models("true", &[("language", "ja")]), ["whisper"]);
}

#[test]
fn parameters_reach_the_engine_and_errors_name_theirs() {
    let sandbox = Sandbox::with(&[]);
    let file = sandbox.home.path().join("received");
    let mut command = sandbox.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("STENO_SCRIPT_JOBS", &file);
    let server = Serving::of(command);
    let job = |fields: &[(&str, &str)]| -> Value {
        let _ = std::fs::remove_file(&file);
        server.transcribe("alpha", fields).is(200);
        serde_json::from_str(std::fs::read_to_string(&file).unwrap().lines().next().unwrap()).unwrap()
    };
    for (field, value, pointer, expected) in [
        ("language", "de", "/job/language", json!("de")),
        ("prompt", "Ada", "/job/decoding/initial_prompt", json!("Ada")),
        ("keywords[]", "Ada", "/job/decoding/vocabulary", json!(["Ada"])),
        ("temperature", "0.5", "/job/decoding/temperatures", json!([0.5])),
        ("response_format", "diarized_json", "/job/speakers", json!(true)),
        (
            "chunking_strategy",
            r#"{"type":"server_vad","threshold":0.25}"#,
            "/job/voice_activity/threshold",
            json!(0.25),
        ),
    ] {
        assert_ne!(job(&[]).pointer(pointer), Some(&expected), "{field} would show nothing");
        assert_eq!(job(&[(field, value)]).pointer(pointer), Some(&expected), "{field}");
    }
    let _ = std::fs::remove_file(&file);
    let known = |status, code: &str, param: Option<&str>, answer: Answer| {
        let answer = answer.is(status);
        assert_eq!(answer.error(), (code.to_owned(), param.map(str::to_owned)));
    };
    known(400, "invalid_value", Some("temperature"), server.transcribe("alpha", &[("temperature", "7")]));
    known(400, "unknown_parameter", Some("user"), server.transcribe("alpha", &[("user", "me")]));
    known(400, "invalid_value", Some("file"), server.transcribe("", &[]));
    known(400, "audio_broken", None, server.transcribe("broken", &[]));
    let named = |model: &str| {
        let ask = Ask::new("POST", "/v1/audio/transcriptions");
        ask.form(&[("model", model)], Some(("a.wav", b"alpha"))).to(&server.address)
    };
    known(404, "model_not_found", Some("model"), named("gpt-9"));
    // A path is no name, whether or not there is a model.
    let model = crate::support::project().join("models/starter-whisper");
    known(404, "model_not_found", Some("model"), named(model.to_str().unwrap()));
    named("starter-whisper").is(200);
    let without_file = Ask::new("POST", "/v1/audio/transcriptions").form(&[("model", "whisper-1")], None);
    known(400, "invalid_value", Some("file"), without_file.to(&server.address));
    known(404, "not_found", None, server.get("/v2/audio"));
    known(405, "method_not_allowed", None, server.get("/v1/audio/transcriptions"));
    // What was refused left nothing behind; what failed is a job that says why.
    let states: Vec<Value> =
        server.jobs().iter().map(|job| job["state"].clone()).filter(|it| it != "finished").collect();
    assert_eq!(states, ["failed"]);
    assert_eq!(job_folders(&sandbox), server.jobs().len());
}

fn job_folders(sandbox: &Sandbox) -> usize {
    std::fs::read_dir(sandbox.home.path().join("steno/server/jobs")).unwrap().count()
}

#[test]
fn models_are_listed_by_name() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let models = server.get("/v1/models").is(200).json();
    let names: Vec<&str> =
        models["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(names.contains(&"whisper-1") && names.contains(&"starter-whisper"), "{names:?}");
    assert_eq!(server.get("/v1/models/starter-whisper").is(200).json()["object"], "model");
    assert_eq!(server.get("/v1/models/none").is(404).error().0, "model_not_found");
}

#[test]
fn a_job_has_events_a_text_in_every_format_and_an_end() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let id = server.accepted("alpha");
    let events = server.get(&format!("/jobs/{id}/events")).is(200).events();
    assert_eq!(events.first().unwrap().1, json!({ "event": "queued", "job": id, "file": "talk.wav" }));
    assert!(events.iter().all(|(name, data)| data["event"] == **name && data["job"] == *id));
    let (name, finished) = events.last().unwrap();
    assert_eq!((name.as_str(), &finished["transcript"]["source"]["name"]), ("finished", &json!("talk.wav")));
    let job = server.get(&format!("/jobs/{id}")).is(200).json();
    assert_eq!(
        (&job["state"], &job["name"], &job["model"]),
        (&json!("finished"), &json!("talk.wav"), &json!("starter-whisper"))
    );
    for format in
        ["txt", "srt", "vtt", "ass", "lrc", "json", "md", "html", "docx", "pdf", "csv", "tsv", "whisperx"]
    {
        let answer = server.get(&format!("/jobs/{id}/transcript?format={format}")).is(200);
        assert!(!answer.body.is_empty(), "{format}");
    }
    for format in ["rttm", "chapters", "chapters-vtt"] {
        server.get(&format!("/jobs/{id}/transcript?format={format}")).is(409);
    }
    let srt = server.get(&format!("/jobs/{id}/transcript?format=srt")).text();
    assert!(srt.contains("This is alpha."), "{srt}");
    assert_eq!(
        server.get(&format!("/jobs/{id}/transcript?format=doc")).is(400).error().1.as_deref(),
        Some("format")
    );
    assert_eq!(
        server.get(&format!("/jobs/{id}/transcript?speed=1")).is(400).error().1.as_deref(),
        Some("speed")
    );
    // One that comes late hears how it ended.
    let late = server.get(&format!("/jobs/{id}/events")).events();
    assert_eq!(late.last().unwrap().1["transcript"]["segments"], finished["transcript"]["segments"]);

    let failed = server.over(&server.accepted("broken"));
    assert_eq!((&failed["state"], &failed["error"]["code"]), (&json!("failed"), &json!("audio_broken")));
    let failed = failed["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/jobs/{failed}/transcript")).is(409).error().0, "no_text");

    // One runs, one waits: both can be given up, and nothing of them stays.
    let (running, waiting) = (server.accepted("slow"), server.accepted("beta"));
    server.runs(&running);
    let listed = server.get(&format!("/jobs/{waiting}")).json();
    assert_eq!((&listed["state"], &listed["position"]), (&json!("waiting"), &json!(1)));
    assert_eq!(server.get(&format!("/jobs/{waiting}/transcript")).is(409).error().0, "not_finished");
    for id in [&waiting, &running, &id] {
        server.ask("DELETE", &format!("/jobs/{id}")).is(204);
        assert_eq!(server.get(&format!("/jobs/{id}")).is(404).error().0, "not_found");
        server.ask("DELETE", &format!("/jobs/{id}")).is(404);
    }
    assert_eq!(server.jobs().len(), 1);
    assert_eq!(job_folders(&sandbox), 1);
    let gauges = server.get("/metrics").is(200).text();
    for line in [
        "steno_jobs{state=\"waiting\"} 0",
        "steno_jobs_ended_total{outcome=\"finished\"} 1",
        "steno_jobs_ended_total{outcome=\"cancelled\"} 2",
        "steno_job_failures_total{code=\"audio_broken\"} 1",
        "steno_requests_refused_total{code=\"no_text\"} 1",
        "steno_recording_seconds_total 10",
    ] {
        assert!(gauges.lines().any(|found| found == line), "no {line} in:\n{gauges}");
    }
    assert_eq!(server.get("/healthz").is(200).json()["status"], "ok");
    let document = server.get("/openapi.json").is(200).json();
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert!(document["paths"]["/jobs/{id}/events"]["get"].is_object(), "{document}");
}

#[test]
fn settings_of_a_job_reach_the_engine() {
    let sandbox = Sandbox::with(&["alpha.wav"]);
    let file = sandbox.home.path().join("received");
    let folder = sandbox.folder.path().to_str().unwrap();
    let mut command = sandbox.command(&["serve", "--listen", "127.0.0.1:0", "--allow", folder]);
    command.env("STENO_SCRIPT_JOBS", &file);
    let server = Serving::of(command);
    let job = |body: Value| -> Value {
        let _ = std::fs::remove_file(&file);
        let added = Ask::new("POST", "/jobs").json(&body).to(&server.address).is(202).json();
        server.over(added["id"].as_str().unwrap());
        serde_json::from_str(std::fs::read_to_string(&file).unwrap().lines().next().unwrap()).unwrap()
    };
    let plain = job(json!({ "path": "alpha.wav" }));
    for (name, value, pointer, expected) in [
        ("language", json!("de"), "/job/language", json!("de")),
        ("task", json!("translate"), "/job/task", json!("translate")),
        ("prompt", json!("Ada"), "/job/decoding/initial_prompt", json!("Ada")),
        ("vocabulary", json!(["Ada", "Grace"]), "/job/decoding/vocabulary", json!(["Ada", "Grace"])),
        ("vocabulary_strength", json!(2.5), "/job/decoding/vocabulary_strength", json!(2.5)),
        ("temperature", json!(0.5), "/job/decoding/temperatures", json!([0.5])),
        ("speakers", json!(true), "/job/speakers", json!(true)),
        ("speakers", json!(3), "/job/speaker_count/max", json!(3)),
        ("channels", json!("left"), "/job/channels", json!("left")),
    ] {
        assert_ne!(plain.pointer(pointer), Some(&expected), "{name} would show nothing");
        assert_eq!(
            job(json!({ "path": "alpha.wav", name: value })).pointer(pointer),
            Some(&expected),
            "{name}"
        );
    }
    for (name, value) in [
        ("language", json!("deutsch")),
        ("task", json!("sing")),
        ("temperature", json!(2)),
        ("speakers", json!(0)),
        ("channels", json!("up")),
        ("unknown", json!(1)),
    ] {
        Ask::new("POST", "/jobs")
            .json(&json!({ "path": "alpha.wav", name: value }))
            .to(&server.address)
            .is(400);
    }
    // A recording that is named by its path is the user's: it stays.
    assert!(sandbox.path("alpha.wav").exists());
    // A form says the same.
    let _ = std::fs::remove_file(&file);
    let added =
        server.add("alpha", &[("speakers", "3"), ("vocabulary[]", "Ada"), ("temperature", "0.5")]).is(202);
    server.over(added.json()["id"].as_str().unwrap());
    let job: Value =
        serde_json::from_str(std::fs::read_to_string(&file).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(job.pointer("/job/speaker_count/max"), Some(&json!(3)));
    assert_eq!(job.pointer("/job/decoding/vocabulary"), Some(&json!(["Ada"])));
}

#[test]
fn a_client_that_goes_away_takes_its_job_with_it() {
    use std::io::Write;

    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    for (stream, pause) in [("false", 0), ("true", 0), ("false", 50), ("true", 50)] {
        let ask = Ask::new("POST", "/v1/audio/transcriptions");
        let ask = ask.form(&[("model", "whisper-1"), ("stream", stream)], Some(("a.wav", b"slow")));
        let mut connection = crate::support::http::connect(&server.address).unwrap();
        connection.set_nodelay(true).unwrap();
        let bytes = ask.bytes(&server.address);
        // The end of the body may come in a packet of its own.
        let (beginning, end) = bytes.split_at(bytes.len() - 2);
        connection.write_all(beginning).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(pause));
        connection.write_all(end).unwrap();
        let id = loop {
            let all = server.jobs();
            if let Some(job) = all.last().filter(|job| job["state"] == "running") {
                break job["id"].as_str().unwrap().to_owned();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        drop(connection);
        assert_eq!(server.over(&id)["state"], "cancelled", "stream={stream}");
    }
}

#[test]
fn options_of_the_server_reach_its_jobs() {
    let sandbox = Sandbox::with(&[]);
    let file = sandbox.home.path().join("received");
    let job = |options: &[&str]| -> Value {
        let _ = std::fs::remove_file(&file);
        let mut command = sandbox.command(&[&["serve", "--listen", "127.0.0.1:0"], options].concat());
        command.env("STENO_SCRIPT_JOBS", &file);
        let server = Serving::of(command);
        server.transcribe("alpha", &[]).is(200);
        serde_json::from_str(std::fs::read_to_string(&file).unwrap().lines().next().unwrap()).unwrap()
    };
    let plain = job(&[]);
    for (options, pointer, expected) in [
        (&["--device", "cpu"][..], "/job/device", json!("cpu")),
        (&["--threads", "3"], "/job/threads", json!(3)),
        (&["--memory-limit", "61GiB"], "/job/memory/memory_limit", json!(61u64 << 30)),
        (&["--ram-limit", "62GiB"], "/job/memory/ram_limit", json!(62u64 << 30)),
        (&["--precision", "q8_0"], "/job/precision", json!("q8_0")),
        (&["--memory-profile", "safe"], "/job/memory/memory_fraction", json!(0.125)),
        (&["--batch-size", "2"], "/job/memory/batch_size", json!(2)),
        (&["--memory-fraction", "0.5"], "/job/memory/memory_fraction", json!(0.5)),
        (&["--speaker-batch-size", "4"], "/job/memory/speaker_batch_size", json!(4)),
        (&["--skip-speakers"], "/job/memory/skip_speakers", json!(true)),
        (&["--trim-every", "9"], "/job/memory/trim_every", json!(9)),
        (&["--renew-after", "8"], "/job/memory/renew_after", json!(8)),
        (&["--keep", "model"], "/job/memory/pins/model", json!(true)),
        (&["--max-duration", "2:00"], "/job/limit", json!(121.0)),
        (&["--priority", "low"], "/nice", json!(10)),
    ] {
        assert_ne!(plain.pointer(pointer), Some(&expected), "{options:?} would show nothing");
        assert_eq!(job(options).pointer(pointer), Some(&expected), "{options:?}");
    }
    sandbox
        .run(&["serve", "--speaker-model", "none"])
        .ends(1)
        .says("There is no speaker model named \"none\"");
    sandbox.run(&["serve", "--model", "none"]).ends(1).says("none");
    let server = Serving::start(&sandbox, &["--skip-speakers"]);
    let refused = server.transcribe("alpha", &[("response_format", "diarized_json")]).is(400);
    assert_eq!(refused.error().1.as_deref(), Some("speakers"));
    assert_eq!(server.end(), "");
}

#[test]
fn one_server_at_a_time_has_the_jobs() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    sandbox
        .run(&["serve", "--listen", "127.0.0.1:0"])
        .ends(1)
        .says("Another server of this user runs already");
    drop(server);
    Serving::start(&sandbox, &[]);
}

#[test]
fn transcripts_are_kept_for_as_long_as_asked() {
    let sandbox = Sandbox::with(&[]);
    let mut server = Serving::start(&sandbox, &[]);
    let id = server.accepted("alpha");
    server.over(&id);
    server.kill();
    let file = sandbox.home.path().join("steno/server/jobs").join(&id).join("ended.json");
    assert!(!file.with_file_name("recording").exists());
    let mut ended: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    ended["ended"] = json!(ended["ended"].as_u64().unwrap() - 5 * 3600);
    std::fs::write(&file, ended.to_string()).unwrap();
    for (hours, expected) in [("6", 1), ("4", 0)] {
        let server = Serving::start(&sandbox, &["--keep-results", hours]);
        assert_eq!(server.jobs().len(), expected);
        assert_eq!(Path::new(&file).exists(), expected == 1);
    }
}

#[test]
fn a_server_that_is_asked_to_end_keeps_its_jobs() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let (running, waiting) = (server.accepted("slow"), server.accepted("alpha"));
    server.runs(&running);
    let address = server.address.clone();
    let client = std::thread::spawn(move || {
        let ask = Ask::new("POST", "/v1/audio/transcriptions");
        ask.form(&[("model", "whisper-1")], Some(("a.wav", b"beta"))).to(&address)
    });
    while server.jobs().len() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    server.end();
    assert_eq!(client.join().unwrap().is(503).error().0, "stopping");
    let server = Serving::start(&sandbox, &[]);
    server.runs(&running);
    let names: Vec<Value> = server.jobs().iter().map(|job| job["name"].clone()).collect();
    assert_eq!(names, ["talk.wav", "talk.wav", "a.wav"]);
    server.ask("DELETE", &format!("/jobs/{running}")).is(204);
    assert_eq!(server.over(&waiting)["state"], "finished");
}

/// The processes that a server has started.
#[cfg(target_os = "linux")]
fn children(server: &Serving) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap().flatten();
    let listed = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    listed.map(|children| children.split_whitespace().count()).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_server_gives_back_the_memory_of_its_model() {
    let sandbox = Sandbox::with(&[]);
    let idle = |seconds: &str| {
        let mut command = sandbox.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("STENO_IDLE_RELEASE", seconds);
        let server = Serving::of(command);
        server.transcribe("alpha", &[]).is(200);
        server
    };
    let server = idle("1");
    let since = std::time::Instant::now();
    while children(&server) > 0 {
        assert!(since.elapsed() < std::time::Duration::from_secs(30), "the engine stays");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server.transcribe("beta", &[]).is(200);
    drop(server);
    // Kept for as long as the user allows.
    assert_eq!(children(&idle("600")), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn an_upload_goes_to_the_disk_and_not_to_memory() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let most = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() >> 10
    };
    server.transcribe("alpha", &[]).is(200);
    let before = most();
    let megabytes = 256;
    let long = format!("beta\n{}", "x".repeat(megabytes << 20));
    let since = std::time::Instant::now();
    assert_eq!(server.transcribe(&long, &[]).is(200).json()["text"], text("beta"));
    let (grown, took) = (most() - before, since.elapsed());
    println!("{before} MB before, {grown} MB more for {megabytes} MB, {took:.1?}");
    assert!(grown < 32, "{grown} MB more for an upload of {megabytes} MB");
}

/// An event without what differs between one job and another.
fn without_job(mut event: Value) -> Option<Value> {
    event.as_object_mut().unwrap().remove("job");
    // Progress is told when there is something new, not each time.
    let is_told = !["progress", "memory"].contains(&event["event"].as_str().unwrap());
    is_told.then_some(event)
}

#[test]
fn events_are_those_of_the_command_line() {
    let sandbox = Sandbox::with(&[]);
    for name in ["alpha", "gappy", "settings"] {
        std::fs::write(sandbox.path(name), name).unwrap();
        let ran = sandbox.run(&["transcribe", name, "--json-events"]).ends(0);
        let expected: Vec<Value> =
            ran.out.lines().filter_map(|line| without_job(serde_json::from_str(line).unwrap())).collect();
        assert!(expected.len() > 4, "{}", ran.out);
        let server = Serving::start(&sandbox, &[]);
        // It waits until its events are listened to.
        let before = server.accepted("slow");
        let added = Ask::new("POST", "/jobs").form(&[], Some((name, name.as_bytes()))).to(&server.address);
        let id = added.is(202).json()["id"].as_str().unwrap().to_owned();
        let mut stream = connect(&server.address).unwrap();
        let ask = Ask::new("GET", &format!("/jobs/{id}/events")).bytes(&server.address);
        stream.write_all(&ask).unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        server.ask("DELETE", &format!("/jobs/{before}")).is(204);
        let answer = Answer::read(&mut first.as_slice().chain(stream)).unwrap();
        let events = answer.is(200).events();
        assert!(events.iter().any(|(name, _)| name == "progress"));
        let events: Vec<Value> = events.into_iter().filter_map(|(_, event)| without_job(event)).collect();
        assert_eq!(events, expected);
    }
}
