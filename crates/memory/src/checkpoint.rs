//! The stages of a job, and the checkpoints at which memory is read.

use serde::{Deserialize, Serialize};

/// The stages of a job and the models that they load: everything that holds
/// memory for a while. A model is a stage of its own because it may stay loaded
/// for the next file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Decoding the recording: the sound and its spectrogram.
    Preprocess,
    /// Weights of the speech model.
    SpeechModel,
    /// Caches and activations of decoding.
    Transcribe,
    /// Weights of the models that tell speakers apart.
    SpeakerModel,
    /// Telling speakers apart.
    Diarize,
    /// Assigning words to speakers.
    Align,
    /// Weights of the model that turns texts into vectors.
    EmbeddingModel,
    /// Turning texts into vectors.
    Embed,
    /// Training adapters.
    Adapt,
}

impl Stage {
    /// Every stage, in the order in which a job enters them; those of a transcription first.
    pub const ALL: [Self; 9] = [
        Self::Preprocess,
        Self::SpeechModel,
        Self::Transcribe,
        Self::SpeakerModel,
        Self::Diarize,
        Self::Align,
        Self::EmbeddingModel,
        Self::Embed,
        Self::Adapt,
    ];

    /// The name within a sentence, without an article: "transcription".
    pub fn label(self) -> &'static str {
        match self {
            Self::Preprocess => "preprocessing",
            Self::SpeechModel => "speech model",
            Self::Transcribe => "transcription",
            Self::SpeakerModel => "speaker model",
            Self::Diarize => "diarization",
            Self::Align => "alignment",
            Self::EmbeddingModel => "embedding model",
            Self::Embed => "embedding of texts",
            Self::Adapt => "adaptation",
        }
    }

    /// When it runs, within a sentence: "during the transcription".
    pub(crate) fn moment(self) -> String {
        match self {
            Self::SpeechModel | Self::SpeakerModel | Self::EmbeddingModel => {
                format!("while the {} was loaded", self.label())
            }
            _ => format!("during the {}", self.label()),
        }
    }

    /// Whether it is the weights of a model, which are loaded and then stay.
    pub fn is_model(self) -> bool {
        matches!(self, Self::SpeechModel | Self::SpeakerModel | Self::EmbeddingModel)
    }

    pub(crate) fn marks(self) -> Marks {
        use Checkpoint as C;
        let [entered, worked, before_release, after_release] = match self {
            Self::Preprocess => {
                [C::BeforePreprocess, C::AfterPreprocess, C::BeforeAudioRelease, C::AfterAudioRelease]
            }
            Self::SpeechModel => [
                C::BeforeSpeechModelLoad,
                C::AfterSpeechModelLoad,
                C::BeforeSpeechModelRelease,
                C::AfterSpeechModelRelease,
            ],
            Self::Transcribe => {
                [C::BeforeTranscribe, C::AfterTranscribe, C::BeforeDecodingRelease, C::AfterDecodingRelease]
            }
            Self::SpeakerModel => [
                C::BeforeSpeakerModelLoad,
                C::AfterSpeakerModelLoad,
                C::BeforeSpeakerModelRelease,
                C::AfterSpeakerModelRelease,
            ],
            Self::Diarize => {
                [C::BeforeDiarize, C::AfterDiarize, C::BeforeWaveformRelease, C::AfterWaveformRelease]
            }
            Self::Align => {
                [C::BeforeAlign, C::AfterAlign, C::BeforeAlignmentRelease, C::AfterAlignmentRelease]
            }
            Self::EmbeddingModel => [
                C::BeforeEmbeddingModelLoad,
                C::AfterEmbeddingModelLoad,
                C::BeforeEmbeddingModelRelease,
                C::AfterEmbeddingModelRelease,
            ],
            Self::Embed => {
                [C::BeforeEmbed, C::AfterEmbed, C::BeforeEmbeddingRelease, C::AfterEmbeddingRelease]
            }
            Self::Adapt => {
                [C::BeforeAdapt, C::AfterAdapt, C::BeforeAdaptationRelease, C::AfterAdaptationRelease]
            }
        };
        Marks { entered, worked, before_release, after_release }
    }
}

/// The four checkpoints of a scope, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    pub entered: Checkpoint,
    /// Loaded, for a model; done, for a stage.
    pub worked: Checkpoint,
    pub before_release: Checkpoint,
    pub after_release: Checkpoint,
}

macro_rules! checkpoints {
    ($($(#[$doc:meta])* $name:ident = $label:literal,)*) => {
        /// A point in a job at which memory is read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "ts", derive(ts_rs::TS))]
        #[serde(rename_all = "snake_case")]
        pub enum Checkpoint {
            $(
                #[doc = concat!("`", $label, "` in the log.")]
                $(#[$doc])*
                $name,
            )*
        }

        impl Checkpoint {
            /// Every checkpoint.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// As in the log lines: `Before Transcription`.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }

            /// The checkpoint of that label.
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|checkpoint| checkpoint.label() == label)
            }
        }
    };
}

checkpoints! {
    PipelineStart = "Pipeline Start",
    BeforePreprocess = "Before Preprocessing",
    AfterPreprocess = "After Preprocessing",
    BeforeAudioRelease = "Before Audio Buffer Cleanup",
    AfterAudioRelease = "After Audio Buffer Cleanup",
    BeforeSpeechModelLoad = "Before Speech Model Load",
    AfterSpeechModelLoad = "After Speech Model Load",
    BeforeTranscribe = "Before Transcription",
    /// Carries the batch's number, from 1: `Batch 12`.
    Batch = "Batch",
    AfterTranscribe = "After Transcription",
    BeforeDecodingRelease = "Before Decoding Buffer Cleanup",
    AfterDecodingRelease = "After Decoding Buffer Cleanup",
    BeforeSpeechModelRelease = "Before Speech Model Cleanup",
    AfterSpeechModelRelease = "After Speech Model Cleanup",
    BeforeSpeakerModelLoad = "Before Speaker Model Load",
    AfterSpeakerModelLoad = "After Speaker Model Load",
    BeforeDiarize = "Before Diarization",
    AfterDiarize = "After Diarization",
    BeforeWaveformRelease = "Before Waveform Cleanup",
    AfterWaveformRelease = "After Waveform Cleanup",
    BeforeSpeakerModelRelease = "Before Speaker Model Cleanup",
    AfterSpeakerModelRelease = "After Speaker Model Cleanup",
    BeforeAlign = "Before Speaker Alignment",
    AfterAlign = "After Speaker Alignment",
    BeforeAlignmentRelease = "Before Alignment Buffer Cleanup",
    AfterAlignmentRelease = "After Alignment Buffer Cleanup",
    BeforeEmbeddingModelLoad = "Before Embedding Model Load",
    AfterEmbeddingModelLoad = "After Embedding Model Load",
    BeforeEmbed = "Before Text Embedding",
    AfterEmbed = "After Text Embedding",
    BeforeEmbeddingRelease = "Before Embedding Buffer Cleanup",
    AfterEmbeddingRelease = "After Embedding Buffer Cleanup",
    BeforeEmbeddingModelRelease = "Before Embedding Model Cleanup",
    AfterEmbeddingModelRelease = "After Embedding Model Cleanup",
    BeforeAdapt = "Before Adaptation",
    /// Carries the epoch's number, from 1: `Before Epoch 3`.
    BeforeEpoch = "Before Epoch",
    /// Carries the epoch's number, from 1: `After Epoch 3`.
    AfterEpoch = "After Epoch",
    AfterAdapt = "After Adaptation",
    BeforeAdaptationRelease = "Before Adaptation Cleanup",
    AfterAdaptationRelease = "After Adaptation Cleanup",
    BeforeRecovery = "Before Out-Of-Memory Recovery",
    AfterRecovery = "After Out-Of-Memory Recovery",
    BeforeTrim = "Before Trim",
    AfterTrim = "After Trim",
    BeforeFinalCleanup = "Before Final Cleanup",
    FinalCleanup = "Final Cleanup",
}

impl Checkpoint {
    /// Whether all unused memory was released just before this checkpoint. At the
    /// others a pool normally holds more than is in use.
    pub fn follows_trim(self) -> bool {
        matches!(self, Self::AfterTrim | Self::AfterRecovery | Self::FinalCleanup)
            || Stage::ALL.iter().any(|stage| stage.marks().after_release == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_checkpoint_has_a_label_of_its_own() {
        let labels: HashSet<_> = Checkpoint::ALL.iter().map(|c| c.label()).collect();
        assert_eq!(labels.len(), Checkpoint::ALL.len());
        assert!(labels.len() >= 19);
        for checkpoint in Checkpoint::ALL {
            assert_eq!(Checkpoint::from_label(checkpoint.label()), Some(*checkpoint));
        }
    }

    #[test]
    fn no_two_stages_share_a_checkpoint() {
        let mut seen = HashSet::new();
        for stage in Stage::ALL {
            let marks = stage.marks();
            for mark in [marks.entered, marks.worked, marks.before_release, marks.after_release] {
                assert!(seen.insert(mark), "{mark:?} of {stage:?} belongs to another stage too");
            }
        }
    }
}
