//! Who may use `steno serve`, and what no client can do to it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::http::{Answer, Ask, Serving, connect};

/// What a user takes for at once, on a starved machine.
const SOON: Duration = Duration::from_secs(20);

fn token(sandbox: &Sandbox, name: &str) -> String {
    let made = sandbox.run(&["serve", "--create-token", name]).ends(0);
    assert_eq!(made.err, "");
    made.out.trim().to_owned()
}

fn server_folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.home.path().join("steno/server")
}

fn job_folders(sandbox: &Sandbox) -> usize {
    std::fs::read_dir(server_folder(sandbox).join("jobs")).unwrap().count()
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    let sandbox = Sandbox::with(&[]);
    let everywhere = ["serve", "--listen", "0.0.0.0:0"];
    sandbox.run(&everywhere).ends(1).says("--create-token");
    let (laptop, phone) = (token(&sandbox, "laptop"), token(&sandbox, "phone"));
    sandbox.run(&["serve", "--create-token", "phone"]).ends(1).says("There is a token named phone already");
    let stored = std::fs::read_to_string(server_folder(&sandbox).join("tokens.json")).unwrap();
    assert!(!stored.contains(&laptop) && !stored.contains(&laptop["steno-".len()..]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(server_folder(&sandbox)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }

    let mut server = Serving::of(sandbox.command(&everywhere));
    server.address = server.address.replace("0.0.0.0", "127.0.0.1");
    let get = |path: &str, token: Option<&str>| {
        let ask = Ask::new("GET", path);
        token.map_or(Ask::new("GET", path), |token| ask.token(token)).to(&server.address)
    };
    let (all_but_one, last) = laptop.split_at(laptop.len() - 1);
    let almost = format!("{all_but_one}{}", if last == "0" { "1" } else { "0" });
    for wrong in [None, Some(""), Some("steno-"), Some(&*almost), Some(&laptop[1..])] {
        for path in ["/jobs", "/v1/models", "/metrics", "/openapi.json", "/nothing"] {
            let answer = get(path, wrong).is(401);
            assert_eq!(answer.error().0, "invalid_api_key");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    get("/healthz", None).is(200);
    // A client has its own jobs alone.
    let add = |token: &str| {
        let ask = Ask::new("POST", "/jobs").token(token);
        ask.form(&[], Some(("a.wav", b"alpha"))).to(&server.address).is(202).json()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let id = add(&laptop);
    get(&format!("/jobs/{id}/events"), Some(&laptop)).is(200);
    for path in ["", "/events", "/transcript"] {
        get(&format!("/jobs/{id}{path}"), Some(&laptop)).is(200);
        get(&format!("/jobs/{id}{path}"), Some(&phone)).is(404);
    }
    Ask::new("DELETE", &format!("/jobs/{id}")).token(&phone).to(&server.address).is(404);
    assert_eq!(get("/jobs", Some(&phone)).json(), json!({ "jobs": [] }));
    // Removed while the server runs.
    sandbox.run(&["serve", "--remove-token", "laptop"]).ends(0);
    get("/jobs", Some(&laptop)).is(401);
    get("/jobs", Some(&phone)).is(200);
    sandbox.run(&["serve", "--remove-token", "laptop"]).ends(1).says("There are: phone.");
    let said = server.end();
    assert!(said.contains("not encrypted") && said.contains("--tls-cert"), "{said}");
}

#[test]
fn a_server_behind_a_proxy_asks_for_a_token_and_takes_any_host() {
    let sandbox = Sandbox::with(&[]);
    sandbox.run(&["serve", "--require-token"]).ends(1).says("--create-token");
    let token = token(&sandbox, "proxy");
    let server = Serving::start(&sandbox, &["--require-token"]);
    let get = || Ask::new("GET", "/jobs").header("host", "steno.example");
    get().to(&server.address).is(401);
    get().token(&token).to(&server.address).is(200);
}

#[test]
fn pages_of_other_origins_and_other_names_of_this_machine_are_refused() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &["--origin", "https://app.example"]);
    let (page, allowed) = ("https://evil.example", "https://app.example");
    let add = |origin: &str| {
        let ask = Ask::new("POST", "/jobs").header("origin", origin);
        ask.form(&[], Some(("a.wav", b"alpha"))).to(&server.address)
    };
    for origin in [page, "null", "http://localhost:1", "https://app.example.evil.example"] {
        let answer = add(origin).is(403);
        assert_eq!(answer.error().0, "origin_not_allowed");
        assert_eq!(answer.header("access-control-allow-origin"), None);
        let asked = Ask::new("OPTIONS", "/jobs").header("origin", origin).to(&server.address);
        assert_eq!(asked.header("access-control-allow-origin"), None, "{origin}");
    }
    assert!(server.jobs().is_empty());
    let headers = "authorization, x-stainless-lang";
    let asked = Ask::new("OPTIONS", "/jobs").header("origin", allowed);
    let asked = asked.header("access-control-request-headers", headers).to(&server.address).is(204);
    assert_eq!(asked.header("access-control-allow-origin"), Some(allowed));
    assert_eq!(asked.header("access-control-allow-headers"), Some(headers));
    assert_eq!(add(allowed).is(202).header("access-control-allow-origin"), Some(allowed));
    for host in ["evil.example", "127.0.0.1.evil.example:80", "192.168.0.9"] {
        let answer = Ask::new("GET", "/jobs").header("host", host).to(&server.address).is(403);
        assert_eq!(answer.error().0, "host_not_allowed");
    }
    Ask::new("GET", "/jobs").header("host", "localhost:99").to(&server.address).is(200);
    // Without the option no page is allowed.
    drop(server);
    let server = Serving::start(&sandbox, &[]);
    Ask::new("GET", "/jobs").header("origin", allowed).to(&server.address).is(403);
    assert_eq!(server.get("/jobs").is(200).header("access-control-allow-origin"), None);
}

#[test]
fn names_never_become_paths_and_errors_name_none() {
    let sandbox = Sandbox::with(&["open/a.wav", "closed/b.wav"]);
    let allow = sandbox.path("open");
    let server = Serving::start(&sandbox, &["--allow", allow.to_str().unwrap()]);
    let before = everything(sandbox.home.path()).len();
    let names = [
        "../../../x.wav",
        "/tmp/x.wav",
        "..\\x.wav",
        "a/../../b",
        "..",
        ".",
        "%2e%2e%2fx",
        "a\u{0}b",
        "\u{202e}gnp.wav",
    ];
    for name in names {
        let ask = Ask::new("POST", "/jobs").form(&[], Some((name, b"alpha")));
        let answer = ask.to(&server.address);
        assert!(answer.status == 202 || answer.status == 400, "{name:?}: {}", answer.text());
        let Some(id) = answer.json()["id"].as_str().map(str::to_owned) else { continue };
        let over = server.over(&id);
        assert_eq!(over["state"], "finished", "{over}");
        let shown = over["name"].as_str().unwrap();
        assert!(!shown.contains(['/', '\\', '\u{0}', '\u{202e}']), "{shown:?}");
        server.ask("DELETE", &format!("/jobs/{id}")).is(204);
    }
    // Nothing is left anywhere, in the server's folder or beside it.
    assert_eq!(job_folders(&sandbox), 0);
    let left: Vec<_> = everything(sandbox.home.path());
    let ours = |path: &&PathBuf| !path.to_string_lossy().contains("journal");
    assert!(left.iter().filter(ours).count() <= before + 1, "{left:?}");
    assert_eq!(sandbox.names(), ["closed", "open"]);

    for id in ["..", "%2e%2e", "..%2f..%2ftokens.json", "%2fetc%2fpasswd", "a%00"] {
        for path in ["", "/transcript", "/events"] {
            server.get(&format!("/jobs/{id}{path}")).is(404);
        }
    }
    let by_path = |path: &str| Ask::new("POST", "/jobs").json(&json!({ "path": path })).to(&server.address);
    let closed = sandbox.path("closed/b.wav");
    let refused: Vec<String> =
        [closed.to_str().unwrap(), "../closed/b.wav", "missing.wav", "/etc/passwd", "/nothing"]
            .into_iter()
            .map(|path| {
                let answer = by_path(path).is(403);
                assert_eq!(answer.error(), ("path_not_allowed".into(), Some("path".into())));
                answer.text()
            })
            .collect();
    assert!(refused.iter().all(|text| *text == refused[0]), "{refused:?}");
    let id = by_path("a.wav").is(202).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.over(&id)["name"], "a.wav");
    let told = server.get(&format!("/jobs/{id}/events")).text()
        + &server.get(&format!("/jobs/{id}/transcript")).text();
    assert_no_path(&sandbox, &told);

    // An engine that is missing, and one that dies, are told without where they are.
    drop(server);
    let missing = sandbox.home.path().join("no-engine");
    let server = Serving::with_engine(&sandbox, &missing, &[]);
    let failed = server.over(&server.accepted("alpha"));
    assert_eq!(failed["state"], "failed");
    assert_no_path(&sandbox, &failed.to_string());
    let answer = server.transcribe("alpha", &[]).is(500);
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_no_path(&sandbox, &answer.text());
    drop(server);
    let server = Serving::start(&sandbox, &[]);
    for content in ["dies", "broken"] {
        let id = server.accepted(content);
        let events = server.get(&format!("/jobs/{id}/events")).text();
        assert!(events.contains("event: failed"), "{events}");
        assert_no_path(&sandbox, &events);
        assert_no_path(&sandbox, &server.get(&format!("/jobs/{id}")).text());
    }
}

#[track_caller]
fn assert_no_path(sandbox: &Sandbox, text: &str) {
    for folder in [sandbox.home.path(), sandbox.folder.path(), Path::new(env!("CARGO_MANIFEST_DIR"))] {
        assert!(!text.contains(folder.to_str().unwrap()), "{text}");
    }
}

fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(everything(&entry.path()));
        }
        found.push(entry.path());
    }
    found
}

/// The head of an upload and the beginning of its form.
fn upload(server: &Serving, length: &str) -> Vec<u8> {
    format!(
        "POST /jobs HTTP/1.1\r\nhost: {}\r\ncontent-type: multipart/form-data; boundary=xx\r\n{length}\r\n\r\n",
        server.address
    )
    .into_bytes()
}

const FORM: &[u8] = b"--xx\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n";

#[test]
fn an_upload_that_is_too_large_is_refused_and_leaves_nothing() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &["--max-upload", "1MiB"]);
    // Ten gigabytes are refused by what is said of them.
    let since = Instant::now();
    let mut stream = connect(&server.address).unwrap();
    stream.write_all(&upload(&server, "content-length: 10737418240")).unwrap();
    stream.write_all(FORM).unwrap();
    let answer = Answer::read(&mut stream).unwrap().is(413);
    assert_eq!(answer.error().0, "too_large");
    assert!(since.elapsed() < SOON);
    // One that does not say how long it is, once it is too long.
    let mut stream = connect(&server.address).unwrap();
    stream.write_all(&upload(&server, "transfer-encoding: chunked")).unwrap();
    let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    stream.write_all(&chunk(FORM)).unwrap();
    let piece = chunk(&[7; 64 << 10]);
    let mut sent = 0;
    while stream.write_all(&piece).is_ok() {
        sent += piece.len();
        assert!(sent < 64 << 20, "it goes on");
    }
    drop(stream);
    // Just small enough.
    server.add(&format!("alpha\n{}", "x".repeat((1 << 20) - 6)), &[]).is(202);
    server.add(&format!("alpha\n{}", "x".repeat(1 << 20)), &[]).is(413);
    wait_until(|| job_folders(&sandbox) == 1);
    assert_eq!(server.jobs().len(), 1);
}

fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn slow_clients_hold_nothing() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &["--header-timeout", "1", "--body-timeout", "1"]);
    // A head that never ends, and none at all: the connection is closed.
    for beginning in [&b"GET /jobs HTTP/1.1\r\nhost: lo"[..], b""] {
        let mut stream = connect(&server.address).unwrap();
        let since = Instant::now();
        stream.write_all(beginning).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(since.elapsed() < SOON, "{beginning:?}");
    }
    // A head that comes byte by byte.
    let mut stream = connect(&server.address).unwrap();
    let since = Instant::now();
    while stream.write_all(b"x").is_ok() {
        assert!(since.elapsed() < SOON, "it goes on");
        std::thread::sleep(Duration::from_millis(100));
    }
    // A body that stops, and one that comes byte by byte.
    for drips in [false, true] {
        let mut stream = connect(&server.address).unwrap();
        stream.write_all(&upload(&server, "content-length: 100000")).unwrap();
        stream.write_all(FORM).unwrap();
        let mut dripping = stream.try_clone().unwrap();
        let drip = std::thread::spawn(move || {
            while drips && dripping.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let since = Instant::now();
        let answer = Answer::read(&mut stream).unwrap().is(408);
        assert_eq!(answer.error().0, "too_slow");
        assert!(since.elapsed() < SOON);
        drop(stream);
        drip.join().unwrap();
    }
    wait_until(|| job_folders(&sandbox) == 0);
    assert!(server.jobs().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_idle_connections_keep_nobody_out() {
    let mut most = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls are given a valid structure and keep no pointer to it.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut most);
        most.rlim_cur = most.rlim_max.min(8192);
        libc::setrlimit(libc::RLIMIT_NOFILE, &most);
    }
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let idle: Vec<_> = (0..1000).map(|_| connect(&server.address).unwrap()).collect();
    let since = Instant::now();
    server.transcribe("alpha", &[]).is(200);
    assert!(since.elapsed() < SOON);
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count();
    assert!(open < 400, "{open} files are open");
    drop(idle);
}

#[test]
fn connections_are_limited() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &["--connections", "2"]);
    let id = server.accepted("slow");
    let follow = || {
        let mut stream = connect(&server.address).unwrap();
        stream.write_all(&Ask::new("GET", &format!("/jobs/{id}/events")).bytes(&server.address)).unwrap();
        // Its first event is there: it is busy.
        let mut first = [0; 512];
        assert!(stream.read(&mut first).unwrap() > 0);
        stream
    };
    let (first, _second) = (follow(), follow());
    let answer = server.get("/healthz").is(503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    drop(first);
    wait_until(|| server.get("/healthz").status == 200);
}

#[test]
fn a_full_queue_says_when_to_come_again() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &["--queue", "1"]);
    let running = server.accepted("slow");
    server.runs(&running);
    let waiting = server.accepted("alpha");
    let refused = |server: &Serving, code: &str| {
        for answer in [server.add("beta", &[]), server.transcribe("beta", &[])] {
            let answer = answer.is(429);
            assert_eq!(answer.error().0, code);
            let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=600).contains(&seconds));
        }
    };
    refused(&server, "queue_full");
    assert_eq!((server.jobs().len(), job_folders(&sandbox)), (2, 2));
    server.ask("DELETE", &format!("/jobs/{running}")).is(204);
    assert_eq!(server.over(&waiting)["state"], "finished");
    server.over(&server.accepted("beta"));
    drop(server);
    let server = Serving::start(&sandbox, &["--jobs-per-token", "1"]);
    let running = server.accepted("slow");
    refused(&server, "too_many_jobs");
    server.ask("DELETE", &format!("/jobs/{running}")).is(204);
    server.accepted("beta");
}

#[cfg(target_os = "linux")]
#[test]
fn the_server_listens_on_one_port() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    server.transcribe("alpha", &[]).is(200);
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()))
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let Ok(lines) = std::fs::read_to_string(format!("/proc/{}/net/{table}", server.child.id())) else {
            continue;
        };
        for line in lines.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // 0A: it listens; a socket of UDP has no such state.
            let listens = fields[3] == "0A" || table.starts_with("udp");
            if listens && sockets.contains(&fields[9].to_owned()) {
                ports.push(u16::from_str_radix(fields[1].rsplit(':').next().unwrap(), 16).unwrap());
            }
        }
    }
    let port: u16 = server.address.rsplit(':').next().unwrap().parse().unwrap();
    assert_eq!(ports, [port]);
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

#[test]
fn https_is_served_with_a_certificate() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};

    let sandbox = Sandbox::with(&[]);
    let (certificate, key) = (data("certificate.pem"), data("key.pem"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let server = Serving::start(&sandbox, &["--tls-cert", certificate, "--tls-key", key]);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("authority.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, connect(&server.address).unwrap());
    let ask = Ask::new("POST", "/v1/audio/transcriptions");
    let ask = ask.form(&[("model", "whisper-1")], Some(("a.wav", b"alpha")));
    stream.write_all(&ask.bytes(&server.address)).unwrap();
    let answer = Answer::read(&mut stream).unwrap().is(200);
    assert_eq!(answer.json()["text"], "Good morning. This is alpha.");
    // Without TLS there is no answer.
    assert!(Ask::new("GET", "/jobs").try_to(&server.address).is_none());
    drop(server);
    let wrong = ["serve", "--tls-cert", certificate, "--tls-key", certificate];
    sandbox.run(&wrong).ends(1).says("--tls-key");
    sandbox.run(&["serve", "--tls-cert", certificate]).ends(2).says("--tls-key");
}

#[test]
fn a_form_is_bounded_in_all_of_its_parts() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let long = "x".repeat(2 << 20);
    let many: Vec<(&str, &str)> = (0..300).map(|_| ("vocabulary[]", "Ada")).collect();
    for fields in [&[("prompt", long.as_str())][..], &many] {
        let answer = server.add("alpha", fields).is(400);
        assert_eq!(answer.error().1.as_deref(), Some(fields[0].0));
    }
    // A head that is too long, and one of too many lines.
    let head = |name: &str, count: usize, value: &str| {
        let ask = Ask::new("GET", "/jobs");
        (0..count)
            .fold(ask, |ask, number| ask.header(&format!("{name}-{number}"), value))
            .try_to(&server.address)
    };
    for answer in [head("a", 1, &"x".repeat(100 << 10)), head("a", 200, "x")] {
        assert!(answer.is_none_or(|answer| answer.status == 431));
    }
    wait_until(|| job_folders(&sandbox) == 0);
}

#[test]
fn an_error_of_every_kind_has_one_shape() {
    let sandbox = Sandbox::with(&[]);
    let server = Serving::start(&sandbox, &[]);
    let bodies: [(u16, Ask); 5] = [
        (400, Ask::new("POST", "/jobs").header("content-type", "text/plain")),
        (400, Ask::new("POST", "/jobs").header("content-type", "application/json")),
        (400, Ask::new("POST", "/jobs").json(&Value::Null)),
        (404, Ask::new("GET", "/%ff%00")),
        (405, Ask::new("PATCH", "/jobs")),
    ];
    for (status, ask) in bodies {
        let answer = ask.to(&server.address).is(status);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.error();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_without_room_refuses_an_upload_and_keeps_nothing_of_it() {
    use std::process::Command;

    let allowed = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return println!("skipped: this system allows no mount in a namespace (unshare -rm)");
    }
    let sandbox = Sandbox::with(&["alpha.wav"]);
    let folder = sandbox.folder.path().to_str().unwrap();
    let serve = sandbox.command(&["serve", "--listen", "127.0.0.1:0", "--allow", folder]);
    let script = "mount -t tmpfs -o size=8m tmpfs \"$1\" && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).arg(sandbox.home.path());
    command.arg(serve.get_program()).args(serve.get_args()).current_dir(sandbox.folder.path());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let server = Serving::of(command);
    for answer in [server.add("beta", &[]), server.transcribe("beta", &[])] {
        let answer = answer.is(507);
        assert_eq!(answer.error().0, "storage");
        assert_no_path(&sandbox, &answer.text());
    }
    assert!(server.jobs().is_empty());
    let jobs = format!("/proc/{}/root{}/steno/server/jobs", server.child.id(), sandbox.home.path().display());
    assert_eq!(std::fs::read_dir(jobs).unwrap().count(), 0);
    // A recording that is there already needs no room.
    let added = Ask::new("POST", "/jobs").json(&json!({ "path": "alpha.wav" })).to(&server.address).is(202);
    assert_eq!(server.over(added.json()["id"].as_str().unwrap())["state"], "finished");
}
