use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use formats::read_json;
use memory::platform;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokenizers::Tokenizer;

use super::generation::GenerationConfig;
use super::ggml_vocabulary;
use crate::Error;

/// The tokens of a model. Special tokens are found by name, as their ids differ
/// between models.
#[derive(Debug)]
pub struct Vocabulary {
    source: TokenizerSource,
    /// The tokens of texts that were encoded before. A preview and every attempt of a job encode the same texts.
    encoded: Mutex<HashMap<String, Vec<u32>>>,
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

/// Where the tokenizer of a model is read from.
#[derive(Debug)]
pub(super) enum TokenizerSource {
    /// A `tokenizer.json`.
    Json(PathBuf),
    /// A model file of whisper.cpp.
    Ggml(PathBuf),
}

/// The most texts whose tokens are kept.
const MOST_ENCODED: usize = 1024;

/// Divides text into tokens. Only prompts, words to expect and learning need it, and its tokenizer takes several times
/// the memory of a [`Vocabulary`] and longer to read than the weights of a small model. So the tokenizer is read when
/// the first text is encoded whose tokens are not known yet, and dropped with the encoder.
#[derive(Debug)]
pub struct TextEncoder<'a> {
    vocabulary: &'a Vocabulary,
    tokenizer: OnceCell<Result<Tokenizer, Error>>,
}

/// What a [`Vocabulary`] needs of `tokenizer.json`.
#[derive(Deserialize)]
struct TokenizerFile {
    model: BytePairs,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

#[derive(Deserialize)]
struct BytePairs {
    vocab: HashMap<String, u32>,
    /// So that a tokenizer of another kind is refused.
    #[serde(rename = "merges")]
    _merges: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
}

impl Vocabulary {
    pub(super) fn read(
        folder: &Path,
        generation: &GenerationConfig,
        vocab_size: usize,
    ) -> Result<Self, Error> {
        const FILE: &str = "tokenizer.json";
        let TokenizerFile { model, added_tokens } = read_json(folder, FILE)?;
        let mut all = model.vocab;
        all.extend(added_tokens.into_iter().map(|token| (token.content, token.id)));
        let path = folder.join(FILE);
        let tokenizer = || read_tokenizer(&path);
        Self::new(all, &tokenizer, generation, vocab_size, TokenizerSource::Json(path.clone()))
            .map_err(|reason| Error::invalid(path, reason))
    }

    /// Builds a vocabulary from the ids of all tokens. `tokenizer` is called if the generation settings don't say which
    /// tokens are never generated.
    pub(super) fn new(
        all: HashMap<String, u32>,
        tokenizer: &dyn Fn() -> Result<Tokenizer, String>,
        generation: &GenerationConfig,
        vocab_size: usize,
        source: TokenizerSource,
    ) -> Result<Self, String> {
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
        let settled = generation.suppress_tokens.is_some() && generation.begin_suppress_tokens.is_some();
        let tokenizer = if settled { None } else { Some(tokenizer()?) };
        let mut suppressed = match (&generation.suppress_tokens, &tokenizer) {
            (None, Some(tokenizer)) => non_speech_tokens(tokenizer, end_of_text),
            (tokens, _) => tokens.clone().unwrap_or_default(),
        };
        suppressed.extend(prompt_tokens.iter().filter_map(|name| token(name)));
        let no_speech = ["<|nospeech|>", "<|nocaptions|>"].iter().find_map(|name| token(name));
        suppressed.extend(no_speech);
        suppressed.retain(|id| (*id as usize) < vocab_size);
        suppressed.sort_unstable();
        suppressed.dedup();
        let begin_suppressed = match (&generation.begin_suppress_tokens, &tokenizer) {
            (None, Some(tokenizer)) => encode(tokenizer, " ").into_iter().chain([end_of_text]).collect(),
            (tokens, _) => {
                tokens.iter().flatten().copied().filter(|id| (*id as usize) < vocab_size).collect()
            }
        };
        if tokenizer.is_some() {
            drop(tokenizer);
            platform::trim_allocator();
        }
        Ok(Self {
            start_of_previous: token("<|startofprev|>"),
            transcribe: token("<|transcribe|>"),
            translate: token("<|translate|>"),
            source,
            encoded: Mutex::default(),
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

    /// Calls `encode` with an encoder, and gives its memory back to the system afterwards.
    ///
    /// # Errors
    /// [`Error::Files`] if the model's tokenizer has to be read and is gone, invalid, or another model's.
    pub fn with_encoder<T>(&self, encode: impl FnOnce(&TextEncoder) -> T) -> Result<T, Error> {
        let encoder = TextEncoder { vocabulary: self, tokenizer: OnceCell::new() };
        let encoded = encode(&encoder);
        let Some(tokenizer) = encoder.tokenizer.into_inner() else { return Ok(encoded) };
        drop(tokenizer?);
        platform::trim_allocator();
        Ok(encoded)
    }

    fn tokenizer(&self) -> Result<Tokenizer, Error> {
        let (path, tokenizer) = match &self.source {
            TokenizerSource::Json(path) => {
                (path, read_tokenizer(path).map_err(|reason| Error::invalid(path, reason))?)
            }
            TokenizerSource::Ggml(path) => (path, ggml_vocabulary::tokenizer(path)?),
        };
        // The file may have been replaced since the model was loaded.
        if tokenizer.token_to_id("<|endoftext|>") != Some(self.end_of_text) {
            return Err(Error::invalid(path, "its tokens are not those of the model that is loaded"));
        }
        Ok(tokenizer)
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

impl TextEncoder<'_> {
    /// The tokens of a text, without special tokens; none if the tokenizer can't be read, in which case
    /// [`Vocabulary::with_encoder`] returns the error.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let lock = || self.vocabulary.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = lock().get(text) {
            return tokens.clone();
        }
        let Ok(tokenizer) = self.tokenizer.get_or_init(|| self.vocabulary.tokenizer()) else {
            return Vec::new();
        };
        let tokens = encode(tokenizer, text);
        let mut encoded = lock();
        if encoded.len() >= MOST_ENCODED {
            encoded.clear();
        }
        encoded.insert(text.to_owned(), tokens.clone());
        tokens
    }
}

fn read_tokenizer(path: &Path) -> Result<Tokenizer, String> {
    Tokenizer::from_file(path).map_err(|error| error.to_string())
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    // Encoding plain text with a byte-level vocabulary can't fail. If a broken
    // tokenizer does fail, the prompt lacks this text.
    tokenizer.encode_fast(text, false).map(|e| e.get_ids().to_vec()).unwrap_or_default()
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
fn non_speech_tokens(tokenizer: &Tokenizer, end_of_text: u32) -> Vec<u32> {
    let symbols: Vec<&str> = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
        .split(' ')
        .collect();
    let notes = ["♩", "♪", "♫", "♬", "♭", "♮", "♯"];
    let mut tokens: Vec<u32> =
        [" -", " '"].iter().filter_map(|text| encode(tokenizer, text).first().copied()).collect();
    for symbol in symbols.iter().chain(&notes) {
        for text in [(*symbol).to_owned(), format!(" {symbol}")] {
            let encoded = encode(tokenizer, &text);
            if encoded.len() == 1 || notes.contains(symbol) {
                tokens.extend(encoded.first());
            }
        }
    }
    tokens.retain(|token| *token < end_of_text);
    tokens
}
