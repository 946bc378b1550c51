//! The language of a text whose model does not say it.

use whatlang::{Detector, Lang};

/// The European languages that Parakeet writes, with their ISO 639-1 codes; Maltese is not among those that can be
/// told.
const LANGUAGES: [(Lang, &str); 24] = [
    (Lang::Bul, "bg"),
    (Lang::Hrv, "hr"),
    (Lang::Ces, "cs"),
    (Lang::Dan, "da"),
    (Lang::Nld, "nl"),
    (Lang::Eng, "en"),
    (Lang::Est, "et"),
    (Lang::Fin, "fi"),
    (Lang::Fra, "fr"),
    (Lang::Deu, "de"),
    (Lang::Ell, "el"),
    (Lang::Hun, "hu"),
    (Lang::Ita, "it"),
    (Lang::Lav, "lv"),
    (Lang::Lit, "lt"),
    (Lang::Pol, "pl"),
    (Lang::Por, "pt"),
    (Lang::Ron, "ro"),
    (Lang::Slk, "sk"),
    (Lang::Slv, "sl"),
    (Lang::Spa, "es"),
    (Lang::Swe, "sv"),
    (Lang::Rus, "ru"),
    (Lang::Ukr, "uk"),
];
/// Less text tells no language, in characters.
const LEAST: usize = 40;

/// The ISO 639-1 code of a text's language by its letters and their neighbours, and how sure that is, 0 to 1; `None`
/// where it is too short or too unsure.
pub fn language_of(text: &str) -> Option<(&'static str, f32)> {
    if text.chars().count() < LEAST {
        return None;
    }
    let detector = Detector::with_allowlist(LANGUAGES.iter().map(|(lang, _)| *lang).collect());
    let found = detector.detect(text).filter(whatlang::Info::is_reliable)?;
    let (_, code) = LANGUAGES.iter().find(|(lang, _)| *lang == found.lang())?;
    Some((code, found.confidence() as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_text_is_told_where_it_is_sure() {
        let cases = [
            ("The meeting begins at nine, and everybody who has a question may ask it then.", Some("en")),
            ("Die Sitzung beginnt um neun, und wer eine Frage hat, kann sie dann stellen.", Some("de")),
            ("La réunion commence à neuf heures, et ceux qui ont une question la posent alors.", Some("fr")),
            ("Собрание начинается в девять часов, и тогда можно будет задать вопросы.", Some("ru")),
            ("Збори починаються о дев'ятій годині, і тоді можна буде поставити запитання.", Some("uk")),
            ("Zebranie zaczyna się o dziewiątej i wtedy każdy będzie mógł zadać pytanie.", Some("pl")),
            ("Good morning.", None),
            ("", None),
        ];
        for (text, language) in cases {
            assert_eq!(language_of(text).map(|(code, _)| code), language, "{text}");
        }
    }
}
