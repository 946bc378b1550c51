//! The vocabulary of a file of whisper.cpp. The file lists the bytes of text
//! tokens in order of ids; the special tokens after them are the same in all of
//! OpenAI's models and are not in the file.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tokenizers::Tokenizer;

use super::generation::GenerationConfig;
use super::vocabulary::{TokenizerSource, Vocabulary, byte_alphabet};
use crate::Error;
use crate::ggml::{self, Contents};

/// ISO 639 codes in the order of their tokens (`LANGUAGES` of openai/whisper's
/// `tokenizer.py`). Models before large-v3 lack the last one.
const LANGUAGES: &str = "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no \
                         th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw \
                         gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl \
                         mg as tt haw ln ha ba jw su yue";
/// The size of a multilingual vocabulary of 99 languages. English-only ones have
/// one text token less.
const MULTILINGUAL: usize = 51_865;
/// The number of timestamps, `<|0.00|>` to `<|30.00|>`.
const TIMESTAMPS: usize = 1_501;
/// The special tokens after the languages.
const PROMPT_TOKENS: [&str; 6] =
    ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"];

impl Vocabulary {
    /// Builds the vocabulary of the file at `path`. The error is a reason for [`Error::Files`].
    pub(super) fn of_ggml(path: &Path, file: &[u8], contents: &Contents) -> Result<Self, String> {
        let tokens = GgmlTokens::of(file, contents)?;
        let generation =
            GenerationConfig { is_multilingual: Some(tokens.is_multilingual), ..GenerationConfig::default() };
        let all = tokens.spelled().map(|(spelling, id)| (spelling, id as u32)).collect();
        let size = contents.dimensions.vocabulary as usize;
        let source = TokenizerSource::Ggml(path.into());
        Self::new(all, &|| tokens.tokenizer(), &generation, size, source)
    }
}

/// The tokenizer of the file at `path`.
pub(super) fn tokenizer(path: &Path) -> Result<Tokenizer, Error> {
    let file = formats::map_file(path)?;
    let tokenizer = ggml::contents(&file).and_then(|contents| GgmlTokens::of(&file, &contents)?.tokenizer());
    tokenizer.map_err(|reason| Error::invalid(path, reason))
}

/// The tokens of a file.
struct GgmlTokens<'a> {
    /// The bytes of text tokens in order of ids.
    text: Vec<&'a [u8]>,
    /// (id, name)
    special: Vec<(usize, String)>,
    is_multilingual: bool,
}

impl<'a> GgmlTokens<'a> {
    fn of(file: &'a [u8], contents: &Contents) -> Result<Self, String> {
        let size = contents.dimensions.vocabulary as usize;
        let mut spellings: Vec<&[u8]> = contents.tokens.iter().map(|range| &file[range.clone()]).collect();
        let is_multilingual = size >= MULTILINGUAL;
        let codes: Vec<&str> = LANGUAGES.split_whitespace().collect();
        // After the text: end of text, start of transcript, languages, prompt tokens,
        // timestamps.
        let after_text = size.checked_sub(2 + PROMPT_TOKENS.len() + TIMESTAMPS);
        let text = if is_multilingual { 50_257 } else { 50_256 };
        let languages = after_text.and_then(|ids| ids.checked_sub(text));
        let languages =
            languages.filter(|count| (1..=codes.len()).contains(count) && spellings.len() >= text);
        let Some(languages) = languages else {
            let found = spellings.len();
            return Err(format!("a vocabulary of {found} tokens and {size} ids is none of Whisper's"));
        };

        let mut special = vec!["endoftext".to_owned(), "startoftranscript".to_owned()];
        special.extend(codes[..languages].iter().map(|code| (*code).to_owned()));
        special.extend(PROMPT_TOKENS.map(str::to_owned));
        special.extend((0..TIMESTAMPS).map(|step| format!("{:.2}", step as f64 * 0.02)));
        let special: Vec<(usize, String)> =
            special.into_iter().enumerate().map(|(i, name)| (text + i, format!("<|{name}|>"))).collect();
        spellings.truncate(text);
        Ok(Self { text: spellings, special, is_multilingual })
    }

    /// (spelling, id) of all tokens.
    fn spelled(&self) -> impl Iterator<Item = (String, usize)> {
        let spelled = speller();
        let text = self.text.iter().enumerate().map(move |(id, bytes)| (spelled(bytes), id));
        text.chain(self.special.iter().map(|(id, name)| (name.clone(), *id)))
    }

    fn tokenizer(&self) -> Result<Tokenizer, String> {
        // The description, which takes more than the tokenizer, is dropped before the text is read.
        let text = description(self).to_string();
        Tokenizer::from_bytes(text).map_err(|error| format!("the vocabulary: {error}"))
    }
}

/// Spells bytes with the characters that stand for them.
fn speller() -> impl Fn(&[u8]) -> String {
    let alphabet: HashMap<u8, char> = byte_alphabet().into_iter().map(|(c, byte)| (byte, c)).collect();
    move |bytes| bytes.iter().filter_map(|byte| alphabet.get(byte)).collect()
}

/// A `tokenizer.json` of these tokens.
fn description(tokens: &GgmlTokens) -> Value {
    let spelled = speller();
    let vocabulary: Map<String, Value> =
        tokens.spelled().map(|(spelling, id)| (spelling, json!(id))).collect();
    let merges: Vec<Value> =
        merges(&tokens.text).into_iter().map(|(a, b)| json!([spelled(a), spelled(b)])).collect();
    let added: Vec<Value> = tokens
        .special
        .iter()
        .map(|(id, name)| {
            json!({
                "id": id, "content": name, "special": true,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false
            })
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": vocabulary, "merges": merges
        },
    })
}

/// The pair that each token of several bytes is merged from, in order of tokens:
/// the two parts that remain when its bytes are merged with all earlier merges.
fn merges<'a>(spellings: &[&'a [u8]]) -> Vec<(&'a [u8], &'a [u8])> {
    let ranks: HashMap<&[u8], usize> = spellings.iter().enumerate().map(|(id, bytes)| (*bytes, id)).collect();
    let mut merges = Vec::new();
    for (id, token) in spellings.iter().enumerate() {
        /// Bytes. Real tokens are much shorter.
        const MAX_BYTES: usize = 256;
        if token.len() < 2 || token.len() > MAX_BYTES {
            continue;
        }
        // The offsets of the parts, and the end.
        let mut bounds: Vec<usize> = (0..=token.len()).collect();
        while bounds.len() > 3 {
            let rank = |i: &usize| ranks.get(&token[bounds[*i]..bounds[*i + 2]]).filter(|rank| **rank < id);
            let Some(best) = (0..bounds.len() - 2).filter(|i| rank(i).is_some()).min_by_key(rank) else {
                break;
            };
            bounds.remove(best + 1);
        }
        if let [_, middle, _] = bounds.as_slice() {
            merges.push(token.split_at(*middle));
        }
    }
    merges
}
