//! Which model to take: the models on disk, what each needs and whether it
//! fits, what may take over from it, the recommendation, downloads under
//! way, and when an idle model gives back its memory.

#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod adapters;
mod alternatives;
pub mod by_language;
pub mod catalog;
pub mod choice;
pub mod embedding;
pub mod engines;
pub mod fit;
pub mod idle;
mod job_template;
pub mod model_info;
pub mod models;
pub mod recommend;
pub mod speed;
pub mod store;
pub mod transfers;

pub use alternatives::{alternatives, with_alternatives};
pub use embedding::{embedding_model, embedding_models, list_embedding_models};
pub use job_template::{JobTemplate, speaker_model};
pub use models::{ModelRef, find_model, find_speaker_model, list_models, list_speaker_models};
