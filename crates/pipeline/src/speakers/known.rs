//! Which speakers of a recording are people that Steno knows.

use transcript::speakers::{NamedTurn, Turn, default_name};
use wire::KnownVoice;

/// What is known of the speakers of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// By the speaker's number: the name of the person.
    pub known: Vec<Option<String>>,
    /// Speakers who may be a person of that name.
    pub offered: Vec<(usize, String)>,
}

impl Names {
    /// What a speaker is called: the name of the person, or a number.
    pub fn of(&self, speaker: usize) -> String {
        self.known.get(speaker).cloned().flatten().unwrap_or_else(|| default_name(speaker))
    }

    /// The turns with what their speakers are called.
    pub fn of_turns(&self, turns: &[Turn]) -> Vec<NamedTurn> {
        let named = |turn: &Turn| NamedTurn {
            span: turn.span,
            speaker: self.of(turn.speaker),
            channel: turn.channel,
        };
        turns.iter().map(named).collect()
    }
}

/// Finds `speakers`, vectors of length 1 that `network` made, among people who are known
/// by vectors of the same network. No person is two speakers; the closest get their
/// names first.
pub fn names(speakers: &[Vec<f32>], network: &str, voices: &[KnownVoice]) -> Names {
    let (same, maybe_same) = KnownVoice::limits(network);
    let mut pairs: Vec<(f32, usize, &KnownVoice)> = Vec::new();
    for voice in voices.iter().filter(|voice| voice.network == network) {
        for (number, vector) in speakers.iter().enumerate() {
            let product: f32 = vector.iter().zip(&voice.vector).map(|(x, y)| x * y).sum();
            pairs.push((1.0 - product, number, voice));
        }
    }
    pairs.retain(|(distance, ..)| *distance <= maybe_same);
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = Names { known: vec![None; speakers.len()], offered: Vec::new() };
    let mut taken: Vec<&str> = Vec::new();
    for (distance, number, voice) in pairs {
        let has_name =
            found.known[number].is_some() || found.offered.iter().any(|(other, _)| *other == number);
        if has_name || taken.contains(&voice.name.as_str()) {
            continue;
        }
        taken.push(&voice.name);
        if distance <= same {
            found.known[number] = Some(voice.name.clone());
        } else {
            found.offered.push((number, voice.name.clone()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use models::speakers::VoiceEncoder;

    use super::*;

    const NETWORK: &str = VoiceEncoder::NAME;

    /// A vector of length 1 at this cosine distance from the first axis, towards another.
    fn at(distance: f32, axis: usize) -> Vec<f32> {
        let mut vector = vec![0.0; 8];
        let along = 1.0 - distance;
        vector[0] = along;
        vector[axis] += (1.0 - along * along).max(0.0).sqrt();
        vector
    }

    fn voice(name: &str, vector: Vec<f32>) -> KnownVoice {
        KnownVoice { name: name.into(), network: VoiceEncoder::NAME.into(), vector }
    }

    #[test]
    fn a_close_voice_has_its_name_and_a_doubtful_one_is_offered() {
        let anna = [voice("Anna", at(0.0, 1))];
        let cases = [
            (KnownVoice::SAME - 0.01, Some("Anna"), None),
            (KnownVoice::SAME + 0.01, None, Some("Anna")),
            (KnownVoice::MAYBE_SAME - 0.01, None, Some("Anna")),
            (KnownVoice::MAYBE_SAME + 0.01, None, None),
        ];
        for (distance, known, offered) in cases {
            let found = names(&[at(distance, 1)], NETWORK, &anna);
            assert_eq!(found.known[0].as_deref(), known, "{distance}");
            assert_eq!(found.offered.first().map(|(_, name)| name.as_str()), offered, "{distance}");
        }
    }

    #[test]
    fn nobody_is_two_speakers_and_the_closest_is_named_first() {
        let speakers = [at(0.15, 2), at(0.05, 3)];
        let found = names(&speakers, NETWORK, &[voice("Anna", at(0.0, 1))]);
        assert_eq!(found.known, [None, Some("Anna".into())]);
        assert_eq!(found.offered, []);
        // A voice of another network says nothing about these.
        let other = KnownVoice { network: "another".into(), ..voice("Anna", at(0.0, 1)) };
        assert_eq!(names(&speakers, NETWORK, std::slice::from_ref(&other)).known, [None, None]);
        assert_eq!(names(&speakers, "another", &[other]).known, [None, Some("Anna".into())]);
    }
}
