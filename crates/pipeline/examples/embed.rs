//! Texts per second and peak memory of embedding, batch by batch, with vectors to compare.
//!
//!     cargo run -p pipeline --example embed -- MODEL TEXTS [--threads N] [--batches 256,128] [--vectors FILE]
//!         [--precision f16]
//!
//! TEXTS has one text per line; FILE gets the vector of each, as a line of JSON.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement, no part of the program"
)]

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use formats::TextEmbeddingModel;
use memory::settings::EmbeddingProfile;
use memory::{DeviceKind, Footprint, Precision};
use pipeline::{Control, Engine, text_embedding};
use wire::{DeviceChoice, EmbedTexts, Event, Job, TextRole};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, texts, options @ ..] = arguments.as_slice() else { panic!("MODEL TEXTS") };
    let option = |name: &str| {
        let at = options.iter().position(|option| option == name)?;
        options.get(at + 1).cloned()
    };
    let lines = std::fs::read_to_string(texts).unwrap();
    let texts: Vec<String> = lines.lines().map(str::to_owned).collect();
    let threads: Option<usize> = option("--threads").map(|number| number.parse().unwrap());
    let batches = option("--batches").unwrap_or("256,128,64,32".into());
    let precision: Option<Precision> = option("--precision").map(|name| name.parse().unwrap());
    let sizes = TextEmbeddingModel::find(Path::new(model)).unwrap().expect("a model").sizes();
    for batch in batches.split(',').map(|batch| batch.parse::<u32>().unwrap()) {
        let mut engine = Engine::new();
        let mut job = Job::new(1, "", model.as_str());
        (job.threads, job.device, job.precision) = (threads, DeviceChoice::Cpu, precision);
        job.memory.embedding_profile = EmbeddingProfile::Speed;
        job.memory.batch_size = Some(batch);
        let asked =
            |texts: &[String]| EmbedTexts { job: job.clone(), role: TextRole::Passage, texts: texts.into() };
        // Has the model loaded.
        engine.embed_texts(&asked(&texts[..1]), &Control::default(), &mut |_| ()).unwrap();
        let mut all = vec![Vec::new(); texts.len()];
        let mut peak = 0;
        let began = Instant::now();
        engine
            .embed_texts(&asked(&texts), &Control::default(), &mut |event| match event {
                Event::Vectors { vectors, .. } => {
                    vectors.into_iter().for_each(|one| all[one.text] = one.vector);
                }
                Event::Memory { sample } => peak = peak.max(sample.levels.map_or(0, |levels| levels.peak)),
                _ => {}
            })
            .unwrap();
        let seconds = began.elapsed().as_secs_f64();
        let longest = engine.longest_text(&asked(&texts)).expect("a model") as u64;
        let held = precision.unwrap_or(Precision::F32);
        let footprint = Footprint::text_embedding(&sizes, DeviceKind::Host, held, longest);
        let at_once = text_embedding::at_once(batch as usize, DeviceKind::Host);
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "{{\"batch\": {batch}, \"per_second\": {:.1}, \"longest\": {longest}, \"peak_mb\": {:.0}, \"predicted_mb\": {:.0}}}",
            texts.len() as f64 / seconds,
            mb(peak),
            mb(footprint.peak(at_once as u64))
        );
        if let Some(file) = option("--vectors") {
            let mut out = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
            all.iter()
                .for_each(|vector| writeln!(out, "{}", serde_json::to_string(vector).unwrap()).unwrap());
        }
    }
}
