use std::collections::HashMap;
use std::path::Path;

use formats::read_json;
use tokenizers::Tokenizer;

use super::generation::GenerationConfig;
use crate::Error;

/// The tokens of a model. Special tokens are found by name, as their ids differ
/// between models.
#[derive(Debug)]
pub struct Vocabulary {
    encoder: Tokenizer,
    /// The bytes of each text token by id.
    bytes: Vec<Vec<u8>>,
    /// The names of tokens that are not text.
    special: HashMap<u32, String>,
    /// The number of ids.
    pub size: usize,
    /// `<|endoftext|>`, the first id that is not text.
    pub end_of_text: u32,
    /// `<|startoftranscript|>`.
    pub start_of_transcript: u32,
    /// `<|startofprev|>`, which precedes the text of the previous window.
    pub start_of_previous: Option<u32>,
    /// `<|transcribe|>`; `None` for an English-only model.
    pub transcribe: Option<u32>,
    /// `<|translate|>`; `None` for an English-only model.
    pub translate: Option<u32>,
    /// `<|nospeech|>`, which older models call `<|nocaptions|>`.
    pub no_speech: Option<u32>,
    /// `<|notimestamps|>`.
    pub no_timestamps: u32,
    /// `<|0.00|>`. The other timestamps follow in steps of 0.02 s.
    pub timestamp_begin: u32,
    /// (ISO 639 code, token) in order of tokens. Empty for an English-only model.
    pub languages: Vec<(String, u32)>,
    /// Tokens that are never generated: symbols for sounds, brackets, and special
    /// tokens that belong in prompts. Sorted.
    pub suppressed: Vec<u32>,
    /// Tokens that are never generated as the first one of a window: a space and
    /// the end of the text.
    pub begin_suppressed: Vec<u32>,
}

impl Vocabulary {
    pub(super) fn read(
        folder: &Path,
        generation: &GenerationConfig,
        vocab_size: usize,
    ) -> Result<Self, Error> {
        let path = folder.join("tokenizer.json");
        // Read as JSON first, as the error of a missing or broken file then names it.
        let _: serde::de::IgnoredAny = read_json(folder, "tokenizer.json")?;
        let encoder = Tokenizer::from_file(&path).map_err(|error| Error::invalid(&path, error))?;
        Self::new(encoder, generation, vocab_size).map_err(|reason| Error::invalid(path, reason))
    }

    pub(super) fn new(
        encoder: Tokenizer,
        generation: &GenerationConfig,
        vocab_size: usize,
    ) -> Result<Self, String> {
        let all = encoder.get_vocab(true);
        let token = |name: &str| all.get(name).copied().filter(|id| (*id as usize) < vocab_size);
        let need = |name: &str| token(name).ok_or_else(|| format!("the token {name} is missing"));
        let end_of_text = need("<|endoftext|>")?;
        let start_of_transcript = need("<|startoftranscript|>")?;
        let no_timestamps = need("<|notimestamps|>")?;
        // Older tokenizers do not list the timestamps, which follow directly.
        let timestamp_begin = token("<|0.00|>").unwrap_or(no_timestamps + 1);

        let mut bytes = vec![Vec::new(); vocab_size];
        let mut special = HashMap::new();
        let alphabet = byte_alphabet();
        for (spelling, id) in &all {
            if *id < end_of_text {
                if let Some(slot) = bytes.get_mut(*id as usize) {
                    *slot = spelling.chars().filter_map(|c| alphabet.get(&c).copied()).collect();
                }
            } else {
                special.insert(*id, spelling.clone());
            }
        }

        let mut languages: Vec<(String, u32)> = all
            .iter()
            .filter(|(_, id)| (**id as usize) < vocab_size)
            .filter_map(|(name, id)| {
                let code = name.strip_prefix("<|")?.strip_suffix("|>")?;
                let is_code = matches!(code.len(), 2 | 3) && code.bytes().all(|b| b.is_ascii_lowercase());
                is_code.then(|| (code.to_owned(), *id))
            })
            .collect();
        languages.sort_by_key(|(_, id)| *id);
        if generation.is_multilingual == Some(false) {
            languages.clear();
        }

        let prompt_tokens =
            ["<|translate|>", "<|transcribe|>", "<|startoftranscript|>", "<|startofprev|>", "<|startoflm|>"];
        let mut suppressed = match &generation.suppress_tokens {
            Some(tokens) => tokens.clone(),
            None => non_speech_tokens(&encoder, end_of_text),
        };
        suppressed.extend(prompt_tokens.iter().filter_map(|name| token(name)));
        let no_speech = ["<|nospeech|>", "<|nocaptions|>"].iter().find_map(|name| token(name));
        suppressed.extend(no_speech);
        suppressed.retain(|id| (*id as usize) < vocab_size);
        suppressed.sort_unstable();
        suppressed.dedup();
        let begin_suppressed = match &generation.begin_suppress_tokens {
            Some(tokens) => tokens.iter().copied().filter(|id| (*id as usize) < vocab_size).collect(),
            None => encode(&encoder, " ").into_iter().chain([end_of_text]).collect(),
        };
        Ok(Self {
            start_of_previous: token("<|startofprev|>"),
            transcribe: token("<|transcribe|>"),
            translate: token("<|translate|>"),
            encoder,
            bytes,
            special,
            size: vocab_size,
            end_of_text,
            start_of_transcript,
            no_speech,
            no_timestamps,
            timestamp_begin,
            languages,
            suppressed,
            begin_suppressed,
        })
    }

    /// The token of a language by its ISO 639 code.
    pub fn language_token(&self, code: &str) -> Option<u32> {
        self.languages.iter().find(|(known, _)| known == code).map(|(_, id)| *id)
    }

    /// Whether the model knows languages besides English.
    pub fn is_multilingual(&self) -> bool {
        !self.languages.is_empty()
    }

    /// Whether `token` is text, not special.
    pub fn is_text(&self, token: u32) -> bool {
        token < self.end_of_text
    }

    /// Whether `token` is a timestamp.
    pub fn is_timestamp(&self, token: u32) -> bool {
        token >= self.timestamp_begin
    }

    /// The bytes of each token by its number, none where it is not text.
    pub fn texts(&self) -> &[Vec<u8>] {
        &self.bytes
    }

    /// The tokens of a text, without special tokens.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        encode(&self.encoder, text)
    }

    /// The text of the text tokens among `tokens`. Invalid UTF-8 becomes U+FFFD.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens
            .iter()
            .filter(|token| self.is_text(**token))
            .flat_map(|token| self.bytes[*token as usize].iter().copied())
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// As [`Self::decode`], with the names of special tokens.
    pub fn decode_with_special(&self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for token in tokens {
            match self.bytes.get(*token as usize) {
                Some(text) if self.is_text(*token) => bytes.extend_from_slice(text),
                _ => bytes.extend_from_slice(self.special.get(token).map_or("", String::as_str).as_bytes()),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn encode(encoder: &Tokenizer, text: &str) -> Vec<u32> {
    // Encoding plain text with a byte-level vocabulary can't fail. If a broken
    // tokenizer does fail, the prompt lacks this text.
    encoder.encode_fast(text, false).map(|e| e.get_ids().to_vec()).unwrap_or_default()
}

/// The characters that stand for bytes in GPT-2's byte-level vocabulary: printable
/// bytes stand for themselves, the others are numbered from U+0100.
pub(super) fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| {
            if printable(byte) {
                return (char::from(byte), byte);
            }
            let c = char::from_u32(next).unwrap_or_default();
            next += 1;
            (c, byte)
        })
        .collect()
}

/// Tokens that describe sounds rather than speech, for models without a list of
/// suppressed tokens: the `non_speech_tokens` of openai/whisper's tokenizer.
fn non_speech_tokens(encoder: &Tokenizer, end_of_text: u32) -> Vec<u32> {
    let symbols: Vec<&str> = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
        .split(' ')
        .collect();
    let notes = ["♩", "♪", "♫", "♬", "♭", "♮", "♯"];
    let mut tokens: Vec<u32> =
        [" -", " '"].iter().filter_map(|text| encode(encoder, text).first().copied()).collect();
    for symbol in symbols.iter().chain(&notes) {
        for text in [(*symbol).to_owned(), format!(" {symbol}")] {
            let encoded = encode(encoder, &text);
            if encoded.len() == 1 || notes.contains(symbol) {
                tokens.extend(encoded.first());
            }
        }
    }
    tokens.retain(|token| *token < end_of_text);
    tokens
}
