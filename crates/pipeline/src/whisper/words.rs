use models::whisper::Vocabulary;

/// ASCII punctuation as Python's `string.punctuation` has it, in its order:
/// a run that occurs in it counts as punctuation.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Languages written without spaces: split by character.
pub const WITHOUT_SPACES: [&str; 6] = ["zh", "ja", "th", "lo", "my", "yue"];

/// Text tokens (and a closing end of text) as words with their tokens, as
/// openai/whisper's tokenizer splits them.
pub fn split_words(vocabulary: &Vocabulary, language: &str, tokens: &[u32]) -> Vec<(String, Vec<u32>)> {
    let characters = split_on_unicode(vocabulary, tokens);
    if WITHOUT_SPACES.contains(&language) {
        return characters;
    }
    let mut words: Vec<(String, Vec<u32>)> = Vec::new();
    for (text, tokens) in characters {
        let special = tokens.first().is_some_and(|token| *token >= vocabulary.end_of_text);
        let punctuation = PUNCTUATION.contains(text.trim());
        match words.last_mut() {
            Some((word, word_tokens)) if !special && !text.starts_with(' ') && !punctuation => {
                word.push_str(&text);
                word_tokens.extend(tokens);
            }
            _ => words.push((text, tokens)),
        }
    }
    words
}

/// The shortest runs of tokens that are whole characters.
fn split_on_unicode(vocabulary: &Vocabulary, tokens: &[u32]) -> Vec<(String, Vec<u32>)> {
    const REPLACEMENT: char = '\u{FFFD}';
    let full: Vec<char> = vocabulary.decode_with_special(tokens).chars().collect();
    let mut words = Vec::new();
    let mut current = Vec::new();
    let mut offset = 0;
    for token in tokens {
        current.push(*token);
        let decoded = vocabulary.decode_with_special(&current);
        // A replacement character that is in the whole text too is no torn
        // character but what the model wrote.
        let whole = match decoded.chars().position(|c| c == REPLACEMENT) {
            None => true,
            Some(position) => full.get(offset + position) == Some(&REPLACEMENT),
        };
        if whole {
            offset += decoded.chars().count();
            words.push((decoded, std::mem::take(&mut current)));
        }
    }
    words
}
