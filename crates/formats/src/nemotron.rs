use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Error, Tensors, read_json};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// The files of a model in the layout of NVIDIA's Nemotron-3-Diarization.
#[derive(Debug, Clone, PartialEq)]
pub struct NemotronFiles {
    /// `config.json`.
    pub description: PathBuf,
    /// The weights.
    pub weights: PathBuf,
    /// The network, as its `config.json` describes it.
    pub config: NemotronConfig,
}

/// A network that hears up to eight speakers in a stream of sound. The names of the
/// fields are those of transformers' `config.json`, with its default values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct NemotronConfig {
    /// The encoder.
    pub audio_config: NemotronEncoder,
    /// What makes speakers of the encoder's output.
    pub head_config: NemotronHead,
    /// What is remembered of the sound before a chunk.
    pub streaming_config: NemotronMemory,
    /// Encoder frames of a chunk.
    pub chunk_length: usize,
    /// Encoder frames behind a chunk that are heard with it.
    pub chunk_right_context: usize,
    /// Encoder frames before a chunk that are heard with it once more.
    pub chunk_left_context: usize,
    /// The latest encoder frames that are kept as they are.
    pub fifo_length: usize,
    /// Encoder frames that leave the latest ones at a time.
    pub speaker_cache_update_period: usize,
}

/// See [`NemotronConfig::audio_config`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are transformers' and say it")]
pub struct NemotronEncoder {
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    /// As many as [`Self::num_attention_heads`] where it is not given.
    pub num_key_value_heads: Option<usize>,
    pub hidden_act: String,
    pub num_mel_bins: usize,
    /// Frames of the spectrogram that become one of the encoder.
    pub subsampling_factor: usize,
    pub rope_parameters: Option<NemotronRope>,
}

/// The rotation that tells the encoder where a frame is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are transformers' and say it")]
pub struct NemotronRope {
    pub rope_type: String,
    pub rope_theta: f64,
    /// Share of a head's width that is rotated.
    pub partial_rotary_factor: f64,
}

/// See [`NemotronConfig::head_config`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are transformers' and say it")]
pub struct NemotronHead {
    pub hidden_size: usize,
    pub num_speakers: usize,
    pub audio_hidden_size: usize,
    pub subsampling_factor: usize,
}

/// See [`NemotronConfig::streaming_config`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are transformers' and say it")]
pub struct NemotronMemory {
    pub speaker_cache_length: usize,
    pub speaker_cache_silence_frames_per_speaker: usize,
    pub prediction_score_threshold: f32,
    pub latest_frames_score_boost: f32,
    pub strong_boost_rate: f64,
    pub weak_boost_rate: f64,
    pub min_positive_scores_rate: f64,
    pub num_speakers: usize,
    pub subsampling_factor: usize,
}

impl Default for NemotronConfig {
    fn default() -> Self {
        Self {
            audio_config: NemotronEncoder::default(),
            head_config: NemotronHead::default(),
            streaming_config: NemotronMemory::default(),
            chunk_length: 340,
            chunk_right_context: 40,
            chunk_left_context: 0,
            fifo_length: 40,
            speaker_cache_update_period: 300,
        }
    }
}

impl Default for NemotronEncoder {
    fn default() -> Self {
        Self {
            hidden_size: 512,
            intermediate_size: 2048,
            num_hidden_layers: 31,
            num_attention_heads: 8,
            num_key_value_heads: None,
            hidden_act: "gelu".into(),
            num_mel_bins: 128,
            subsampling_factor: 8,
            rope_parameters: None,
        }
    }
}

impl Default for NemotronRope {
    fn default() -> Self {
        Self { rope_type: "default".into(), rope_theta: 10_000.0, partial_rotary_factor: 1.0 }
    }
}

impl Default for NemotronHead {
    fn default() -> Self {
        Self { hidden_size: 192, num_speakers: 8, audio_hidden_size: 512, subsampling_factor: 8 }
    }
}

impl Default for NemotronMemory {
    fn default() -> Self {
        Self {
            speaker_cache_length: 264,
            speaker_cache_silence_frames_per_speaker: 1,
            prediction_score_threshold: 0.25,
            latest_frames_score_boost: 0.05,
            strong_boost_rate: 0.75,
            weak_boost_rate: 1.5,
            min_positive_scores_rate: 0.5,
            num_speakers: 8,
            subsampling_factor: 8,
        }
    }
}

/// What `config.json` says first.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    model_type: String,
}

impl NemotronFiles {
    /// `model_type` in `config.json`.
    const MODEL_TYPE: &str = "nemotron3_diarization";
    /// The most that a size of the network may be: sixteen times the released model's.
    const LARGEST: usize = 1 << 15;

    /// Finds the files in a model's folder; `None` where it is no folder of such a model.
    ///
    /// # Errors
    /// [`Error::Missing`] where the weights are missing; [`Error::Invalid`] for a
    /// `config.json` that describes no network of this kind.
    pub fn find(folder: &Path) -> Result<Option<Self>, Error> {
        if !folder.join(CONFIG).is_file() {
            return Ok(None);
        }
        match read_json::<Kind>(folder, CONFIG) {
            Ok(kind) if kind.model_type == Self::MODEL_TYPE => (),
            // What another kind of model says about its configuration is its own matter.
            _ => return Ok(None),
        }
        let config: NemotronConfig = read_json(folder, CONFIG)?;
        config.check().map_err(|reason| Error::invalid(folder.join(CONFIG), reason))?;
        let weights = folder.join(WEIGHTS);
        if !weights.is_file() {
            return Err(Error::Missing { folder: folder.into(), file: WEIGHTS });
        }
        Ok(Some(Self { description: folder.join(CONFIG), weights, config }))
    }

    /// Reads the header of the weights, and checks that every tensor is there in its
    /// shape.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a damaged file and one of another network, naming what is
    /// wrong; [`Error::Io`] for what can't be read.
    pub fn check(&self) -> Result<(), Error> {
        let found = Tensors::open_file(&self.weights)?;
        for (name, shape) in self.config.tensors() {
            let reason = match found.index.get(&name) {
                None => format!("the tensor {name} is missing"),
                Some(tensor) if tensor.shape != shape => {
                    format!(
                        "the tensor {name} has the shape {:?}, config.json asks for {shape:?}",
                        tensor.shape
                    )
                }
                Some(_) => continue,
            };
            return Err(Error::invalid(&self.weights, reason));
        }
        Ok(())
    }
}

impl NemotronConfig {
    /// All tensors of the network, with their shapes.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (of, head) = (&self.audio_config, &self.head_config);
        let (width, inner, small) = (of.hidden_size, of.intermediate_size, head.hidden_size);
        let mut all = vec![
            ("silence_embeds".into(), vec![width]),
            (
                "model.audio_tower.embedder.projection.weight".into(),
                vec![width, of.subsampling_factor * of.num_mel_bins],
            ),
            ("model.proj.weight".into(), vec![small, width]),
            ("model.proj.bias".into(), vec![small]),
            ("model.upsampler.conv.weight".into(), vec![small * of.subsampling_factor, small, 3]),
            ("model.upsampler.conv.bias".into(), vec![small * of.subsampling_factor]),
            ("classifier.dense.weight".into(), vec![small, small]),
            ("classifier.dense.bias".into(), vec![small]),
            ("classifier.out_proj.weight".into(), vec![head.num_speakers, small]),
            ("classifier.out_proj.bias".into(), vec![head.num_speakers]),
        ];
        let mut norms: Vec<String> =
            ["input_layer_norm", "layer_norm"].map(|name| format!("model.audio_tower.{name}")).into();
        for layer in (0..of.num_hidden_layers).map(|number| format!("model.audio_tower.layers.{number}")) {
            for part in ["q_proj", "k_proj", "v_proj", "o_proj"] {
                all.push((format!("{layer}.self_attn.{part}.weight"), vec![width, width]));
            }
            all.push((format!("{layer}.self_attn.o_proj.bias"), vec![width]));
            for (part, output, input) in [("fc1", inner, width), ("fc2", width, inner)] {
                all.push((format!("{layer}.mlp.{part}.weight"), vec![output, input]));
                all.push((format!("{layer}.mlp.{part}.bias"), vec![output]));
            }
            norms.extend(["layer_norm1", "layer_norm2"].map(|name| format!("{layer}.{name}")));
        }
        for norm in norms {
            all.extend(["weight", "bias"].map(|part| (format!("{norm}.{part}"), vec![width])));
        }
        all
    }

    /// The rotation of positions.
    pub fn rope(&self) -> NemotronRope {
        self.audio_config.rope_parameters.clone().unwrap_or_default()
    }

    /// Numbers of a head that are rotated.
    pub fn rotated(&self) -> usize {
        let head = self.audio_config.hidden_size / self.audio_config.num_attention_heads.max(1);
        (head as f64 * self.rope().partial_rotary_factor) as usize
    }

    /// Whether a network can be made by it.
    fn check(&self) -> Result<(), String> {
        let (of, head, memory, rope) =
            (&self.audio_config, &self.head_config, &self.streaming_config, self.rope());
        for (name, value) in [
            ("audio_config.hidden_size", of.hidden_size),
            ("audio_config.intermediate_size", of.intermediate_size),
            ("audio_config.num_hidden_layers", of.num_hidden_layers),
            ("audio_config.num_attention_heads", of.num_attention_heads),
            ("audio_config.num_mel_bins", of.num_mel_bins),
            ("audio_config.subsampling_factor", of.subsampling_factor),
            ("head_config.hidden_size", head.hidden_size),
            ("head_config.num_speakers", head.num_speakers),
            ("streaming_config.speaker_cache_length", memory.speaker_cache_length),
            ("chunk_length", self.chunk_length),
            ("speaker_cache_update_period", self.speaker_cache_update_period),
        ] {
            if value == 0 || value > NemotronFiles::LARGEST {
                return Err(format!("{name} is {value}"));
            }
        }
        for (name, value) in
            [("chunk_right_context", self.chunk_right_context), ("fifo_length", self.fifo_length)]
        {
            if value > NemotronFiles::LARGEST {
                return Err(format!("{name} is {value}"));
            }
        }
        let refuse =
            |what: &str, value: &dyn std::fmt::Display| Err(format!("{what} {value} is not supported"));
        if !of.hidden_size.is_multiple_of(of.num_attention_heads) {
            return Err(format!("{} heads do not divide {}", of.num_attention_heads, of.hidden_size));
        }
        if of.num_key_value_heads.is_some_and(|heads| heads != of.num_attention_heads) {
            return Err("heads that share keys are not supported".into());
        }
        if of.hidden_act != "gelu" {
            return refuse("the activation function", &of.hidden_act);
        }
        if rope.rope_type != "default" {
            return refuse("the rope_type", &rope.rope_type);
        }
        let is_share = rope.partial_rotary_factor >= 0.0 && rope.partial_rotary_factor <= 1.0;
        if !is_share
            || !self.rotated().is_multiple_of(2)
            || rope.rope_theta.is_nan()
            || rope.rope_theta <= 1.0
        {
            return refuse("the rotation", &format!("{rope:?}"));
        }
        if self.chunk_left_context > 0 {
            return refuse("chunk_left_context", &self.chunk_left_context);
        }
        if head.num_speakers > 8 {
            return Err(format!("{} speakers are more than 8", head.num_speakers));
        }
        let factor = of.subsampling_factor;
        if head.audio_hidden_size != of.hidden_size
            || [head.subsampling_factor, memory.subsampling_factor] != [factor, factor]
            || memory.num_speakers != head.num_speakers
        {
            return Err("its parts have different sizes".into());
        }
        let silence = memory.speaker_cache_silence_frames_per_speaker;
        let least = (silence.saturating_add(1)).saturating_mul(head.num_speakers);
        if memory.speaker_cache_length < least {
            return Err(format!(
                "speaker_cache_length is {}, less than {least}",
                memory.speaker_cache_length
            ));
        }
        let rates = [memory.strong_boost_rate, memory.weak_boost_rate, memory.min_positive_scores_rate];
        if rates.iter().any(|rate| !(0.0..=1000.0).contains(rate))
            || !(memory.prediction_score_threshold > 0.0 && memory.prediction_score_threshold < 1.0)
            || !memory.latest_frames_score_boost.is_finite()
        {
            return Err("a rate or threshold of streaming_config is out of range".into());
        }
        Ok(())
    }
}
