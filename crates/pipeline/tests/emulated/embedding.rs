use pipeline::{Control, Engine};
use wire::{DeviceChoice, EmbedTexts, Event, Job, TextRole};

use crate::support::{cards, project};

/// The vectors of some texts of different lengths.
fn vectors(model: &str, device: DeviceChoice) -> Vec<Vec<f32>> {
    let words = "the boat was sold to a man from the harbour who paid in cash on Monday".split(' ');
    let words: Vec<&str> = words.collect();
    let texts: Vec<String> =
        (1..=40).map(|count| words.repeat(4)[..1 + count % words.len()].join(" ")).collect();
    let mut job = Job::new(1, "", project("tests/data/embedding").join(model));
    job.device = device;
    let asked = EmbedTexts { job, role: TextRole::Passage, texts };
    let mut found = vec![Vec::new(); asked.texts.len()];
    let mut emit = |event: Event| match event {
        Event::Vectors { vectors, .. } => vectors.into_iter().for_each(|one| found[one.text] = one.vector),
        Event::Rung { rung } => panic!("{:?}", rung.step),
        _ => {}
    };
    Engine::new().embed_texts(&asked, &Control::default(), &mut emit).unwrap();
    found
}

/// candle-transformers' networks on the card, the engine's own on the CPU.
#[test]
fn texts_have_the_vectors_of_the_cpu() {
    for model in ["tiny-bert", "tiny-xlm-roberta"] {
        let expected = vectors(model, DeviceChoice::Cpu);
        assert_eq!(expected.len(), 40);
        for number in cards() {
            let found = vectors(model, DeviceChoice::Cuda(number));
            let apart = found.iter().flatten().zip(expected.iter().flatten()).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f32::max);
            println!("{model}, cuda:{number}: {apart} apart");
            assert_eq!(found.len(), expected.len());
            // The card may compute in 16 bits; vectors have the length 1.
            assert!(apart < 2e-3, "{model}, cuda:{number}: {apart}");
        }
    }
}
