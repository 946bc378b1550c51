use candle_core::{IndexOp, Tensor};
use models::whisper::Whisper;

use super::scores::softmax;
use crate::Control;

/// Probabilities of all languages the model knows, likeliest first, per window.
///
/// `audio` is the encoder's output, (windows, source positions, width). An
/// English-only model answers English with certainty.
///
/// # Errors
/// Where computing fails, the model knows one language only, or the job was cancelled.
pub fn detect_language(
    model: &Whisper,
    audio: &Tensor,
    control: &Control,
) -> Result<Vec<Vec<(String, f32)>>, models::Error> {
    let windows = audio.dim(0)?;
    let vocabulary = &model.vocabulary;
    if !vocabulary.is_multilingual() {
        return Ok(vec![vec![("en".to_owned(), 1.0)]; windows]);
    }
    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    let mut state = model.decoder.start(audio, 1, 1)?;
    let tokens = vec![vocabulary.start_of_transcript; windows];
    let hidden = model.decoder.forward(&tokens, &mut state, None, &tick)?;
    let logits: Vec<Vec<f32>> = model.decoder.logits(&hidden.i((.., 0))?)?.to_vec2()?;
    Ok(logits
        .into_iter()
        .map(|logits| {
            let mut shares: Vec<f32> =
                vocabulary.languages.iter().map(|(_, token)| logits[*token as usize]).collect();
            softmax(&mut shares);
            let codes = vocabulary.languages.iter().map(|(code, _)| code.clone());
            let mut probabilities: Vec<(String, f32)> = codes.zip(shares).collect();
            probabilities.sort_by(|a, b| b.1.total_cmp(&a.1));
            probabilities
        })
        .collect())
}

/// The code of a language given as a code (`de`) or by its English name
/// (`German`), in any case.
pub fn language_name_or_code(text: &str) -> Option<&'static str> {
    let text = text.trim().to_lowercase();
    LANGUAGES.iter().find(|(code, name)| *code == text || *name == text).map(|(code, _)| *code)
}

/// Languages of Whisper's tokens, ISO 639 code and English name.
#[rustfmt::skip]
pub const LANGUAGES: &[(&str, &str)] = &[
    ("en", "english"), ("zh", "chinese"), ("de", "german"), ("es", "spanish"), ("ru", "russian"),
    ("ko", "korean"), ("fr", "french"), ("ja", "japanese"), ("pt", "portuguese"), ("tr", "turkish"),
    ("pl", "polish"), ("ca", "catalan"), ("nl", "dutch"), ("ar", "arabic"), ("sv", "swedish"),
    ("it", "italian"), ("id", "indonesian"), ("hi", "hindi"), ("fi", "finnish"), ("vi", "vietnamese"),
    ("he", "hebrew"), ("uk", "ukrainian"), ("el", "greek"), ("ms", "malay"), ("cs", "czech"),
    ("ro", "romanian"), ("da", "danish"), ("hu", "hungarian"), ("ta", "tamil"), ("no", "norwegian"),
    ("th", "thai"), ("ur", "urdu"), ("hr", "croatian"), ("bg", "bulgarian"), ("lt", "lithuanian"),
    ("la", "latin"), ("mi", "maori"), ("ml", "malayalam"), ("cy", "welsh"), ("sk", "slovak"),
    ("te", "telugu"), ("fa", "persian"), ("lv", "latvian"), ("bn", "bengali"), ("sr", "serbian"),
    ("az", "azerbaijani"), ("sl", "slovenian"), ("kn", "kannada"), ("et", "estonian"),
    ("mk", "macedonian"), ("br", "breton"), ("eu", "basque"), ("is", "icelandic"), ("hy", "armenian"),
    ("ne", "nepali"), ("mn", "mongolian"), ("bs", "bosnian"), ("kk", "kazakh"), ("sq", "albanian"),
    ("sw", "swahili"), ("gl", "galician"), ("mr", "marathi"), ("pa", "punjabi"), ("si", "sinhala"),
    ("km", "khmer"), ("sn", "shona"), ("yo", "yoruba"), ("so", "somali"), ("af", "afrikaans"),
    ("oc", "occitan"), ("ka", "georgian"), ("be", "belarusian"), ("tg", "tajik"), ("sd", "sindhi"),
    ("gu", "gujarati"), ("am", "amharic"), ("yi", "yiddish"), ("lo", "lao"), ("uz", "uzbek"),
    ("fo", "faroese"), ("ht", "haitian creole"), ("ps", "pashto"), ("tk", "turkmen"), ("nn", "nynorsk"),
    ("mt", "maltese"), ("sa", "sanskrit"), ("lb", "luxembourgish"), ("my", "myanmar"), ("bo", "tibetan"),
    ("tl", "tagalog"), ("mg", "malagasy"), ("as", "assamese"), ("tt", "tatar"), ("haw", "hawaiian"),
    ("ln", "lingala"), ("ha", "hausa"), ("ba", "bashkir"), ("jw", "javanese"), ("su", "sundanese"),
    ("yue", "cantonese"),
];
