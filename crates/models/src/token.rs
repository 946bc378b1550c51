//! Tokens of sentencepiece: Parakeet's and Canary's.

use tokenizers::Tokenizer;

use crate::boost::Boost;

/// A token that was heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Token {
    /// Its number.
    pub id: u32,
    /// The frame of the encoder at which it was heard.
    pub frame: usize,
    /// Frames that it takes, which may be none.
    pub frames: usize,
    /// How likely it was, 0 to 1.
    pub probability: f32,
}

/// The text of a piece; sentencepiece spells bytes that no piece has as `<0xE2>`.
pub fn text_of(piece: &str) -> Vec<u8> {
    let byte = piece.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
        Some(byte) => vec![byte],
        None => piece.replace('▁', " ").into_bytes(),
    }
}

/// Words to expect as a model spells them whose tokens have these texts; `None` where there are none.
pub(crate) fn spelled(
    words: &[String],
    strength: f32,
    pieces: &[String],
    tokenizer: Option<&Tokenizer>,
) -> Option<Boost> {
    if words.is_empty() {
        return None;
    }
    let texts: Vec<Vec<u8>> = pieces.iter().map(|piece| text_of(piece)).collect();
    let encode = |text: &str| {
        let encoded = tokenizer.and_then(|tokenizer| tokenizer.encode_fast(text, false).ok());
        encoded.map(|encoded| encoded.get_ids().to_vec()).unwrap_or_default()
    };
    Boost::new(words, strength, &texts, &encode)
}
