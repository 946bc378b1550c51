use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::{Size, VocabularyKind};

/// Whisper's multilingual vocabulary of 51,865 ids, from openai/whisper (MIT).
const FULL: &[u8] = include_bytes!("../tokenizer.json.gz");
/// The generation configuration with the ids of [`FULL`].
const FULL_GENERATION: &str = include_str!("../generation_config.json");
const STARTER: &str = include_str!("../../../models/starter-whisper/tokenizer.json");
const STARTER_GENERATION: &str = include_str!("../../../models/starter-whisper/generation_config.json");

/// The contents of `tokenizer.json` and `generation_config.json`.
pub(crate) struct TokenizerFiles {
    /// `tokenizer.json` without its added tokens.
    tokenizer: Value,
    /// Special tokens and timestamps, in order of their ids.
    added: Vec<Value>,
    generation: Value,
    /// The new ids of special tokens by their ids in `generation`.
    moved: BTreeMap<u64, u64>,
    kind: VocabularyKind,
}

/// Loads a vocabulary. The public ones are derived from [`FULL`], as they differ
/// in a few tokens.
pub(crate) fn load(kind: VocabularyKind) -> io::Result<TokenizerFiles> {
    let (mut tokenizer, generation): (Value, _) = match kind {
        VocabularyKind::Starter => (serde_json::from_str(STARTER)?, STARTER_GENERATION),
        _ => {
            let mut text = String::new();
            GzDecoder::new(FULL).read_to_string(&mut text)?;
            (serde_json::from_str(&text)?, FULL_GENERATION)
        }
    };
    let generation = serde_json::from_str(generation)?;
    let Value::Array(added) = tokenizer["added_tokens"].take() else {
        return Err(io::Error::other("tokenizer.json has no added tokens"));
    };
    let mut loaded = TokenizerFiles { tokenizer, added, generation, moved: BTreeMap::new(), kind };
    match kind {
        VocabularyKind::Starter => {}
        VocabularyKind::Multilingual => loaded.rename("<|nospeech|>", "<|nocaptions|>"),
        VocabularyKind::Multilingual3 => loaded.add_language("<|yue|>", "<|su|>")?,
        VocabularyKind::English => {
            loaded.rename("<|nospeech|>", "<|nocaptions|>");
            loaded.drop_last_text_token();
        }
    }
    Ok(loaded)
}

impl TokenizerFiles {
    /// `tokenizer.json`.
    pub fn tokenizer(&self) -> Value {
        let mut tokenizer = self.tokenizer.clone();
        tokenizer["added_tokens"] = Value::Array(self.added.clone());
        tokenizer
    }

    /// The id of a special token.
    pub fn id(&self, content: &str) -> io::Result<u64> {
        self.added
            .iter()
            .find(|token| token["content"] == content)
            .and_then(|token| token["id"].as_u64())
            .ok_or_else(|| io::Error::other(format!("the vocabulary has no {content}")))
    }

    /// `generation_config.json` with the ids of this vocabulary.
    pub fn generation_config(&self, size: &Size) -> io::Result<Value> {
        let mut config = self.generation.clone();
        self.move_ids(&mut config);
        let Some(fields) = config.as_object_mut() else {
            return Err(io::Error::other("generation_config.json is no object"));
        };
        fields.insert("alignment_heads".into(), json!(size.alignment_heads));
        match self.kind {
            VocabularyKind::English => {
                fields.insert("is_multilingual".into(), json!(false));
                fields.remove("lang_to_id");
                fields.remove("task_to_id");
            }
            VocabularyKind::Multilingual3 => {
                fields["lang_to_id"]["<|yue|>"] = json!(self.id("<|yue|>")?);
            }
            VocabularyKind::Starter | VocabularyKind::Multilingual => {}
        }
        Ok(config)
    }

    fn move_ids(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.move_ids(item)),
            Value::Object(fields) => fields.values_mut().for_each(|item| self.move_ids(item)),
            Value::Number(number) => {
                if let Some(new) = number.as_u64().and_then(|old| self.moved.get(&old)) {
                    *value = json!(new);
                }
            }
            _ => {}
        }
    }

    /// Inserts a language token after another one. All later ids grow by one.
    fn add_language(&mut self, content: &str, after: &str) -> io::Result<()> {
        let id = self.id(after)? + 1;
        self.shift_from(id, 1);
        let index = self.added.partition_point(|token| token["id"].as_u64() < Some(id));
        let mut token = self.added[index - 1].clone();
        token["id"] = json!(id);
        token["content"] = json!(content);
        self.added.insert(index, token);
        Ok(())
    }

    /// Gives the vocabulary the size and ids of the `.en` models, which have
    /// another vocabulary with one text token less. The dropped token is the empty
    /// string, which no merge produces.
    fn drop_last_text_token(&mut self) {
        let first_special = self.added.iter().filter_map(|token| token["id"].as_u64()).min().unwrap_or(0);
        if let Some(vocabulary) = self.tokenizer["model"]["vocab"].as_object_mut() {
            vocabulary.retain(|_, id| id.as_u64() < first_special.checked_sub(1));
        }
        self.shift_from(first_special, -1);
    }

    /// Adds `by` to all ids of special tokens from `first` on.
    fn shift_from(&mut self, first: u64, by: i64) {
        let mut moved = BTreeMap::new();
        for token in &mut self.added {
            let Some(old) = token["id"].as_u64().filter(|&id| id >= first) else { continue };
            let new = old.wrapping_add_signed(by);
            moved.insert(old, new);
            token["id"] = json!(new);
        }
        self.moved = moved;
    }

    fn rename(&mut self, from: &str, to: &str) {
        for token in self.added.iter_mut().filter(|token| token["content"] == from) {
            token["content"] = json!(to);
        }
    }
}
