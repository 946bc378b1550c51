//! What is recommended for machines that exist only as figures: a golden file,
//! to be read by eye, and the rows that were promised.
//! `STENO_WRITE_GOLDEN=1` writes the file anew.

use std::fmt::Write;
use std::path::Path;

use advisor::fit::DeviceMemory;
use advisor::model_info;
use advisor::recommend::{Advice, Candidate, Recommendation, UnusedCard, for_devices, of_catalogue};
use advisor::speed::Measured;
use hub::Catalogue;
use memory::bytes::{GIB, MIB, human};
use memory::fit::{Fit, RESERVE};
use memory::{DeviceKind, Footprint};
use supervisor::cards::Lack;
use wire::Job;

/// What a screen and the driver take of a card.
const SCREEN: u64 = 400 * MIB;

fn card(gigabytes: u64, half_taken: bool) -> DeviceMemory {
    let total = gigabytes * GIB;
    let free = (if half_taken { total / 2 } else { total }).saturating_sub(SCREEN);
    DeviceMemory { kind: DeviceKind::Gpu, name: format!("a card of {gigabytes} GB"), free, total }
}

fn host() -> DeviceMemory {
    DeviceMemory { kind: DeviceKind::Host, name: "the CPU".into(), free: 12 * GIB, total: 16 * GIB }
}

fn job() -> Job {
    let mut job = Job::new(1, "", "");
    job.speakers = true;
    job
}

fn candidates() -> Vec<Candidate> {
    of_catalogue(&Catalogue::public().unwrap())
}

fn on(cards: Vec<DeviceMemory>) -> Recommendation {
    let devices: Vec<DeviceMemory> = cards.into_iter().chain([host()]).collect();
    for_devices(&devices, Vec::new(), &candidates(), &[], &job())
}

/// The cards that lack something beside those that compute.
fn machine_with(cards: Vec<DeviceMemory>, lacking: Vec<(&str, Lack)>) -> Recommendation {
    let devices: Vec<DeviceMemory> = cards.into_iter().chain([host()]).collect();
    let unused = lacking.into_iter().map(|(name, lack)| UnusedCard::of(name, lack)).collect();
    for_devices(&devices, unused, &candidates(), &[], &job())
}

/// Machines with cards that do not compute, and what is taken.
fn lacking() -> Vec<(&'static str, Recommendation)> {
    let old = || Lack::Capability { found: "6.1".into() };
    let wrong = || Lack::Consent {
        reason: "The operation \"cast\" gave a wrong result. Update the NVIDIA driver.".into(),
    };
    vec![
        (
            "a card and its driver, no engine for it",
            machine_with(vec![], vec![("a card of 8 GB", Lack::Engine)]),
        ),
        ("a card without libcuda.so.1", machine_with(vec![], vec![("a card of 8 GB", Lack::DriverLibrary)])),
        ("a card of compute capability 6.1", machine_with(vec![], vec![("an old card", old())])),
        ("a card that the engine refuses", machine_with(vec![], vec![("a card of 8 GB", wrong())])),
        ("an old card beside one of 8 GB", machine_with(vec![card(8, false)], vec![("an old card", old())])),
        (
            "a card of which 2 GB are free, and no other",
            machine_with(vec![DeviceMemory { free: 2 * GIB, ..card(8, false) }], vec![]),
        ),
    ]
}

fn machines() -> Vec<(String, Vec<DeviceMemory>)> {
    let mut machines = vec![("no card".to_owned(), vec![])];
    for gigabytes in [2, 4, 6, 8, 12, 16, 24, 80] {
        for half in [false, true] {
            let more = if half { ", half of it taken by another program" } else { "" };
            machines.push((format!("a card of {gigabytes} GB{more}"), vec![card(gigabytes, half)]));
        }
    }
    machines.push(("cards of 8 and 24 GB".into(), vec![card(8, false), card(24, false)]));
    machines
        .push(("cards of 8 and 12 GB, the larger half taken".into(), vec![card(8, false), card(12, true)]));
    machines
}

fn table(advice: &Advice, out: &mut String) {
    writeln!(out, "  on {}, {} free:", advice.device.name, human(advice.device.free)).unwrap();
    for (number, choice) in advice.choices.iter().enumerate() {
        let mark = if advice.recommended == Some(number) { '*' } else { ' ' };
        let peak = human(choice.fit.check.peak);
        let (model, precision) = (&choice.fit.model, &choice.fit.precision);
        writeln!(out, "   {mark} {model:22} {precision:5} {peak:>7}  {}", choice.fit.word()).unwrap();
    }
    writeln!(out, "    {}", advice.reason).unwrap();
}

#[test]
fn recommendations_are_as_they_were_read() {
    let mut text = String::from(
        "With speakers told apart, for any language; models of the catalogue, none installed.\n",
    );
    for (name, cards) in machines() {
        let recommendation = on(cards);
        writeln!(text, "\n{name}\n  {}", recommendation.reason).unwrap();
        // The CPU is the same each time.
        let gpus =
            recommendation.devices.iter().filter(|it| it.device.kind == DeviceKind::Gpu || name == "no card");
        gpus.for_each(|advice| table(advice, &mut text));
    }
    for (name, recommendation) in lacking() {
        writeln!(text, "\n{name}\n  {}", recommendation.reason).unwrap();
        let gpus = recommendation.devices.iter().filter(|it| it.device.kind == DeviceKind::Gpu);
        gpus.for_each(|advice| table(advice, &mut text));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/recommendations.txt");
    if std::env::var_os("STENO_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    // Written where weights of 8 bits are multiplied in 8 bits; elsewhere models take more in them.
    let comparable = |text: &str| -> Vec<String> {
        let is_same = |line: &&str| memory::processor::multiplies_in_eight_bits() || !line.contains(" q8_0 ");
        text.lines().filter(is_same).map(String::from).collect()
    };
    let (text, golden) = (comparable(&text), comparable(&golden));
    assert_eq!(text, golden, "read {} and write it anew with STENO_WRITE_GOLDEN=1", path.display());
}

fn fit(recommendation: &Recommendation, model: &str, precision: &str) -> Fit {
    let choices = &recommendation.devices[0].choices;
    let choice = choices.iter().find(|it| it.fit.model == model && it.fit.precision == precision);
    choice.unwrap().fit.check.fit
}

/// The well-known advice, each row with speakers, and what must be better.
#[test]
fn the_promised_models_fit_the_promised_cards() {
    for (gigabytes, model, precision, at_least) in [
        (8, "whisper-base", "f16", Fit::Comfortable),
        (8, "whisper-small", "f16", Fit::Comfortable),
        (12, "whisper-medium", "f16", Fit::Comfortable),
        (12, "whisper-large-v3", "f16", Fit::Tight),
        (16, "whisper-large-v3", "f16", Fit::Comfortable),
        (24, "whisper-large-v3", "f16", Fit::Comfortable),
        (8, "whisper-large-v3", "f16", Fit::Comfortable),
        (6, "whisper-large-v3", "f16", Fit::Tight),
        (4, "whisper-large-v3-turbo", "q8_0", Fit::Comfortable),
    ] {
        let found = fit(&on(vec![card(gigabytes, false)]), model, precision);
        assert!(found >= at_least, "{gigabytes} GB, {model} {precision}: {found:?}");
    }
}

#[test]
fn what_is_recommended_is_what_memory_predicts() {
    let job = job();
    for (name, cards) in machines() {
        for advice in on(cards).devices {
            for choice in &advice.choices {
                let network = candidates().into_iter().find(|it| it.id == choice.fit.model).unwrap().network;
                let precision = choice.fit.precision.parse().unwrap();
                let footprint = model_info::footprint(&network, advice.device.kind, precision, &job);
                let speakers = Footprint::speakers(advice.device.kind);
                let peak = footprint.peak(1).max(speakers.peak(1));
                assert_eq!(choice.fit.check.peak, peak, "{name}: {}", choice.fit.model);
                let fits = peak + RESERVE <= advice.device.free;
                assert_eq!(choice.fit.check.fit > Fit::DoesNotFit, fits, "{name}: {}", choice.fit.model);
            }
            // Nothing better that is as comfortable was passed over on a GPU.
            let Some(number) = advice.recommended else { continue };
            let taken = advice.choices[number].fit.check.fit;
            assert!(taken > Fit::DoesNotFit, "{name}");
            if advice.device.kind == DeviceKind::Gpu {
                let passed = &advice.choices[..number];
                assert!(passed.iter().all(|it| it.fit.check.fit < taken), "{name}");
            }
        }
    }
}

#[test]
fn english_alone_and_limits_are_taken_into_account() {
    let mut english = job();
    english.language = Some("en".into());
    let devices = [card(2, false), host()];
    let models = |job: &Job| -> Vec<String> {
        for_devices(&devices, Vec::new(), &candidates(), &[], job).devices[0]
            .choices
            .iter()
            .map(|it| it.fit.model.clone())
            .collect()
    };
    assert!(models(&english).contains(&"whisper-small.en".to_owned()));
    assert!(!models(&job()).iter().any(|model| model.ends_with(".en") || model.starts_with("distil")));
    let mut pinned = job();
    pinned.precision = Some(memory::Precision::Q4_0);
    let choices = for_devices(&devices, Vec::new(), &candidates(), &[], &pinned).devices.remove(0).choices;
    assert!(choices.iter().all(|it| it.fit.precision == "q4_0"));
}

/// Where it knows the language well; elsewhere, and where no language is named, Whisper.
#[test]
fn parakeet_is_recommended_for_the_languages_that_it_knows_well() {
    let recommended = |language: Option<&str>, task: transcript::Task, device: DeviceMemory| {
        let mut job = job();
        job.language = language.map(str::to_owned);
        job.task = task;
        for_devices(&[device], Vec::new(), &candidates(), &[], &job).model().unwrap().to_owned()
    };
    use transcript::Task::{Transcribe, Translate};
    for language in ["en", "de", "fr", "es", "it", "pl", "uk"] {
        for device in [host(), card(24, false), card(8, false)] {
            let model = recommended(Some(language), Transcribe, device);
            assert_eq!(model, "parakeet-tdt-0.6b-v3", "{language}");
        }
        assert!(recommended(Some(language), Translate, host()).starts_with("whisper"), "{language}");
    }
    for language in [
        None,
        Some("sv"),
        Some("lv"),
        Some("sl"),
        Some("el"),
        Some("lt"),
        Some("mt"),
        Some("da"),
        Some("et"),
        Some("ja"),
    ] {
        assert!(recommended(language, Transcribe, host()).starts_with("whisper"), "{language:?}");
    }
}

#[test]
fn without_a_card_the_measured_speed_decides() {
    let small = candidates().into_iter().find(|it| it.id == "whisper-small").unwrap().network.dimensions;
    for (speed, expected) in
        [(0.01, "whisper-tiny"), (0.5, "whisper-tiny"), (6.0, "whisper-small"), (60.0, "whisper-large-v3")]
    {
        let device = host().name;
        let measured = Measured {
            device,
            precision: memory::Precision::F32,
            dimensions: small,
            speed,
            useful_batch: None,
        };
        let recommendation = for_devices(&[host()], Vec::new(), &candidates(), &[measured], &job());
        let advice = &recommendation.devices[0];
        let choice = &advice.choices[advice.recommended.unwrap()];
        assert!(advice.choices.iter().all(|it| it.speed.is_some()));
        assert_eq!(choice.fit.model, expected, "{speed}");
        assert!(recommendation.reason.contains("times real time"), "{}", recommendation.reason);
    }
}

/// Without a card that computes the CPU is taken, as if there were none, and what is missing is said with what to do.
#[test]
fn a_card_that_does_not_compute_is_named_and_the_cpu_taken() {
    let without = on(vec![]);
    for ((name, found), part) in lacking().into_iter().zip([
        Some("a card of 8 GB is not used: the engine for NVIDIA cards is not installed. Get it with `steno gpu install`."),
        Some("libcuda.so.1"),
        Some("an old card is not used: it has compute capability 6.1"),
        Some("gave a wrong result"),
        None,
        None,
    ]) {
        assert_eq!(found.model() == without.model(), part.is_some(), "{name}: {}", found.reason);
        assert_eq!(found.advice().unwrap().device.kind == DeviceKind::Host, part.is_some(), "{name}");
        let idle = "is not used";
        assert!(part.is_some_and(|part| found.reason.contains(part)) || !found.reason.contains(idle), "{}", found.reason);
    }
}

/// Of two cards the one that a job takes.
#[test]
fn of_several_cards_the_one_with_the_most_room_is_recommended() {
    for (cards, expected) in [
        (vec![card(8, false), card(24, false)], 1),
        (vec![card(24, false), card(8, false)], 0),
        (vec![card(8, false), card(12, true)], 0),
        (vec![card(8, false), card(8, false)], 0),
        (vec![card(24, true), card(16, false), card(16, false)], 1),
    ] {
        let room = supervisor::cards::roomiest(cards.iter().map(|card| card.free).enumerate());
        assert_eq!((on(cards).device, room), (Some(expected), Some(expected)));
    }
}
