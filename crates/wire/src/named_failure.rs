//! Failures of crates that don't depend on this one and so name their codes as text.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use crate::{ErrorCode, Failure, sentence};

impl ErrorCode {
    /// The code that has this name in JSON, e.g. `file_not_found`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }
}

impl Failure {
    /// A failure with the code of this name, [`ErrorCode::Internal`] where no
    /// code has it. `text` becomes a sentence.
    pub fn named(code: &str, text: &str, remedy: Option<&str>) -> Self {
        let failure = Self::new(ErrorCode::from_name(code).unwrap_or(ErrorCode::Internal), sentence(text));
        match remedy {
            Some(remedy) => failure.remedy(remedy),
            None => failure,
        }
    }
}
