//! whisper.cpp's `ggml-*.bin`: dimensions, mel filters, vocabulary and tensors
//! in one file, as its `convert-pt-to-ggml.py` writes them. Nothing is aligned.

use std::collections::HashMap;
use std::ops::Range;

use memory::Dimensions;

use crate::reader::HeaderReader;
use crate::{TensorInfo, check_dimensions, gguf};

/// The first four bytes: 0x67676d6c, "ggml", as a little-endian number.
pub const MAGIC: [u8; 4] = *b"lmgg";

/// The contents of a file: dimensions, and the positions of tokens and tensors.
#[derive(Debug)]
pub struct Contents {
    /// The dimensions of the network.
    pub dimensions: Dimensions,
    /// The bytes of each text token, as ranges of the file, in order of ids.
    pub tokens: Vec<Range<usize>>,
    /// The tensors by their names in the Hugging Face layout.
    pub index: HashMap<String, TensorInfo>,
}

/// Reads the header of a file, `bytes` being the whole file.
///
/// # Errors
/// The reason why it is not a valid file of whisper.cpp, for
/// [`crate::Error::Invalid`].
pub fn contents(bytes: &[u8]) -> Result<Contents, String> {
    let mut reader = HeaderReader::new(bytes);
    if reader.bytes(4, "the magic number")? != MAGIC {
        return Err("it does not begin as a file of whisper.cpp does".into());
    }
    let mut size = |what| reader.u32(what).map(u64::from);
    let vocabulary = size("the size of the vocabulary")?;
    let audio_context = size("the audio context")?;
    let width = size("the encoder's width")?;
    let encoder_heads = size("the encoder's heads")?;
    let encoder_layers = size("the encoder's layers")?;
    let text_context = size("the text context")?;
    let decoder_width = size("the decoder's width")?;
    let decoder_heads = size("the decoder's heads")?;
    let decoder_layers = size("the decoder's layers")?;
    let mel_bins = size("the number of mel bins")?;
    // The quantisation of the file; each tensor states its own type.
    let _ = size("the file's type")?;
    if decoder_width != width {
        return Err(format!("the encoder is {width} wide, the decoder {decoder_width}"));
    }
    let dimensions = Dimensions {
        mel_bins,
        audio_context,
        text_context,
        width,
        encoder_layers,
        encoder_heads,
        encoder_ffn: 4 * width,
        decoder_layers,
        decoder_heads,
        decoder_ffn: 4 * width,
        vocabulary,
    };
    check_dimensions(&dimensions)?;

    // Skipped: the filters follow from the number of bins, and `audio` computes them.
    let filters =
        u64::from(reader.u32("the filters' number")?) * u64::from(reader.u32("the filters' width")?);
    let filters = filters.checked_mul(4).ok_or("too many filters")?;
    reader.range(filters, "the mel filters")?;

    let tokens = reader.u32("the number of tokens")?;
    let tokens = reader.count(u64::from(tokens), 4, "tokens")?;
    if tokens as u64 > vocabulary {
        return Err(format!("{tokens} tokens in a vocabulary of {vocabulary}"));
    }
    let tokens = (0..tokens)
        .map(|number| {
            let length = reader.u32("a token's length")?;
            reader.range(u64::from(length), &format!("token {number}"))
        })
        .collect::<Result<_, String>>()?;

    let mut index = HashMap::new();
    while !reader.is_at_end() {
        let dimensions = reader.u32("a number of dimensions")?;
        let length = reader.u32("the length of a tensor's name")?;
        let kind = reader.u32("a tensor's type")?;
        if !(1..=4).contains(&dimensions) {
            return Err(format!("a tensor of {dimensions} dimensions"));
        }
        let mut shape = (0..dimensions)
            .map(|_| reader.u32("a dimension").map(u64::from))
            .collect::<Result<Vec<_>, _>>()?;
        // In the file the fastest varying dimension comes first.
        shape.reverse();
        let name = reader.text(u64::from(length), "a tensor's name")?;
        let tensor = |reason: String| format!("the tensor {name:?}: {reason}");
        // The size of an unknown type, and so the start of the next tensor, is unknown.
        let stored =
            gguf::precision_of_type(kind).ok_or_else(|| tensor(format!("the unknown type {kind}")))?;
        let size = gguf::tensor_bytes(&shape, stored).map_err(tensor)?;
        let bytes = reader.range(size, "its data").map_err(tensor)?;
        // Biases of convolutions are stored as (width, 1).
        if name.ends_with(".bias") {
            shape.retain(|size| *size != 1);
        }
        if index.insert(hugging_face_name(name), TensorInfo::new(0, bytes, shape, Ok(stored))).is_some() {
            return Err(tensor("it is there twice".into()));
        }
    }
    Ok(Contents { dimensions, tokens, index })
}

/// The Hugging Face layout's name of the tensor that openai/whisper calls `name`.
fn hugging_face_name(name: &str) -> String {
    /// Replaced in this order: some names contain a later one.
    const PARTS: [(&str, &str); 17] = [
        ("encoder.ln_post", "encoder.layer_norm"),
        ("decoder.ln.", "decoder.layer_norm."),
        ("encoder.positional_embedding", "encoder.embed_positions.weight"),
        ("decoder.positional_embedding", "decoder.embed_positions.weight"),
        ("decoder.token_embedding", "decoder.embed_tokens"),
        (".blocks.", ".layers."),
        (".cross_attn_ln.", ".encoder_attn_layer_norm."),
        (".cross_attn.", ".encoder_attn."),
        (".attn_ln.", ".self_attn_layer_norm."),
        (".attn.", ".self_attn."),
        (".query.", ".q_proj."),
        (".key.", ".k_proj."),
        (".value.", ".v_proj."),
        (".out.", ".out_proj."),
        (".mlp_ln.", ".final_layer_norm."),
        (".mlp.0.", ".fc1."),
        (".mlp.2.", ".fc2."),
    ];
    let name = PARTS.iter().fold(name.to_owned(), |name, (theirs, ours)| name.replace(theirs, ours));
    format!("model.{name}")
}
