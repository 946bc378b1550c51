//! What Steno's own jobs of `steno serve` take, and what is written down of requests.

use crate::support::Sandbox;
use crate::support::http::{Ask, Serving};

#[test]
fn a_request_that_is_repeated_with_its_key_makes_one_job() {
    let sandbox = Sandbox::with(&[]);
    let mut server = Serving::start(&sandbox, &[]);
    let add = |server: &Serving, key: &str| {
        let ask = Ask::new("POST", "/jobs").header("idempotency-key", key);
        ask.form(&[], Some(("talk.wav", b"slow"))).to(&server.address)
    };
    let first = add(&server, "one").is(202).json();
    assert_eq!(first["key"], "one");
    assert_eq!(add(&server, "one").is(200).json()["id"], first["id"]);
    assert_ne!(add(&server, "two").is(202).json()["id"], first["id"]);
    assert_eq!(add(&server, "").is(400).error().1.as_deref(), Some("Idempotency-Key"));
    server.kill();
    let server = Serving::start(&sandbox, &[]);
    assert_eq!(add(&server, "one").is(200).json()["id"], first["id"], "also after the server was killed");
    assert_eq!(server.jobs().len(), 2);
}

#[test]
fn a_bilingual_job_has_both_texts_and_exports_are_shaped_as_asked() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let id = |fields: &[(&str, &str)]| {
        let id = server.add("alpha", fields).is(202).json()["id"].as_str().unwrap().to_owned();
        server.over(&id);
        id
    };
    let get = |id: &str, query: &str| server.get(&format!("/jobs/{id}/transcript?{query}"));
    let both = id(&[("language", "de"), ("bilingual", "true")]);
    let json = get(&both, "format=json").is(200).json();
    assert_eq!(json["language"], "de");
    assert_eq!(json["segments"][1]["translation"], "This is alpha.");
    let srt = get(&both, "format=srt&bilingual=true").is(200).text();
    assert!(srt.contains("Good morning.\nGood morning.\n"), "{srt}");
    assert!(!get(&both, "format=srt").text().contains("Good morning.\nGood morning.\n"));
    // What is in English already is not translated, and then there is nothing to put below it.
    let plain = id(&[("language", "en"), ("bilingual", "true")]);
    for (asked, code) in [
        ("format=srt&bilingual=true", "no_translation"),
        ("format=rttm", "no_speakers"),
        ("format=chapters", "no_chapters"),
        ("format=chapters-vtt", "no_chapters"),
    ] {
        assert_eq!(get(&plain, asked).is(409).error().0, code);
    }

    assert!(!get(&plain, "format=vtt").text().contains("<00:"));
    assert!(get(&plain, "format=vtt&word_tags=true").text().contains("<00:"));
    let narrow = get(&plain, "format=srt&line_width=8&lines=1").is(200).text();
    let longest = narrow.lines().filter(|line| !line.contains("-->")).map(str::len).max();
    assert!(longest.is_some_and(|longest| longest <= 8), "{narrow}");
    assert!(get(&plain, "format=md").text().contains("0:00"));
    assert!(!get(&plain, "format=md&omit=times").text().contains("0:00"));
    assert!(get(&plain, "format=json").json()["run"].is_object());
    assert!(get(&plain, "format=json&reproducible=true").json().get("run").is_none());
    assert_eq!(get(&plain, "format=srt&lines=none").is(400).error().1.as_deref(), Some("lines"));

    for (field, value) in [
        ("to", "0"),
        ("from", "-1"),
        ("beam_size", "0"),
        ("vocabulary_strength", "13"),
        ("voice_activity", "loud"),
    ] {
        let (code, parameter) = server.add("alpha", &[(field, value)]).is(400).error();
        assert_eq!((code.as_str(), parameter.as_deref()), ("invalid_value", Some(field)), "{field}");
    }
    let twice = [("bilingual", "true"), ("task", "translate")];
    assert_eq!(server.add("alpha", &twice).is(400).error().1.as_deref(), Some("bilingual"));
}

#[test]
fn a_line_per_request_says_who_asked_what_and_nothing_of_recordings() {
    let sandbox = Sandbox::with(&[]);
    let log = sandbox.path("requests.log");
    let made = sandbox.run(&["serve", "--create-token", "laptop"]).ends(0);
    let token = made.out.trim();
    let server = Serving::start(&sandbox, &["--require-token", "--request-log", log.to_str().unwrap()]);
    let ask = |method: &str, path: &str| Ask::new(method, path).token(token);
    let form = ask("POST", "/jobs").form(&[("prompt", "the secret plan")], Some(("secret.wav", b"alpha")));
    let id = form.to(&server.address).is(202).json()["id"].as_str().unwrap().to_owned();
    let events = ask("GET", &format!("/jobs/{id}/events")).to(&server.address).is(200);
    ask("GET", &format!("/jobs/{id}/transcript?format=txt&secret=1")).to(&server.address).is(400);
    Ask::new("GET", "/jobs").token("steno-wrong").to(&server.address).is(401);
    ask("GET", "/secret/talk.wav").to(&server.address).is(404);
    server.end();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let mut told: Vec<_> = lines.iter().map(|line| (line[1], line[2], line[3], line[4])).collect();
    told.sort_unstable();
    let (of_events, of_text) = (format!("/jobs/{id}/events"), format!("/jobs/{id}/transcript"));
    let mut expected = vec![
        ("laptop", "POST", "/jobs", "202"),
        ("laptop", "GET", &*of_events, "200"),
        ("laptop", "GET", &*of_text, "400"),
        ("-", "GET", "/jobs", "401"),
        ("-", "GET", "?", "404"),
    ];
    expected.sort_unstable();
    assert_eq!(told, expected, "{text}");
    for line in &lines {
        assert!(line[0].parse::<jiff::Timestamp>().is_ok() && line[6].parse::<f64>().is_ok(), "{line:?}");
    }
    let bytes = lines.iter().find(|line| line[3] == of_events).unwrap()[5];
    assert_eq!(bytes.parse::<usize>().unwrap(), events.body.len());
    for private in [token, "secret", "alpha", "Good morning"] {
        assert!(!text.contains(private), "{private}: {text}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o077, 0);
    }
    let wrong = sandbox.path("missing/requests.log");
    let refused =
        sandbox.run(&["serve", "--listen", "127.0.0.1:0", "--request-log", wrong.to_str().unwrap()]);
    refused.ends(1).says("--request-log");
}
