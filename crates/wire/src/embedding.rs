use serde::{Deserialize, Serialize};

use crate::Job;

/// Texts to be turned into vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedTexts {
    /// Model, device, precision, threads, memory settings, and where it stands on its ladder;
    /// its file is not read.
    pub job: Job,
    /// What the texts are.
    pub role: TextRole,
    /// Any number of them.
    pub texts: Vec<String>,
}

/// What a text is for: models put different words before each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextRole {
    /// Something is searched for with it.
    Query,
    /// It is to be found.
    Passage,
}

/// The vector of a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextVector {
    /// The text's place in [`EmbedTexts::texts`].
    pub text: usize,
    /// Of length 1.
    pub vector: Vec<f32>,
}
