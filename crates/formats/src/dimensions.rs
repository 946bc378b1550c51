use memory::Dimensions;

/// Refuses dimensions that no network can have, or that are so far beyond any
/// real network's that allocating for them could exhaust memory.
///
/// # Errors
/// The reason, with the field's name in `config.json`.
pub(crate) fn check_dimensions(dimensions: &Dimensions) -> Result<(), String> {
    const LIMIT: u64 = 1 << 20;
    let sizes = [
        ("num_mel_bins", dimensions.mel_bins),
        ("max_source_positions", dimensions.audio_context),
        ("max_target_positions", dimensions.text_context),
        ("d_model", dimensions.width),
        ("encoder_layers", dimensions.encoder_layers),
        ("encoder_attention_heads", dimensions.encoder_heads),
        ("encoder_ffn_dim", dimensions.encoder_ffn),
        ("decoder_layers", dimensions.decoder_layers),
        ("decoder_attention_heads", dimensions.decoder_heads),
        ("decoder_ffn_dim", dimensions.decoder_ffn),
        ("vocab_size", dimensions.vocabulary),
    ];
    if let Some((name, size)) = sizes.iter().find(|(_, size)| *size == 0 || *size > LIMIT) {
        return Err(format!("{name} is {size}"));
    }
    let width = dimensions.width;
    for (name, heads) in [
        ("encoder_attention_heads", dimensions.encoder_heads),
        ("decoder_attention_heads", dimensions.decoder_heads),
    ] {
        if !width.is_multiple_of(heads) {
            return Err(format!("d_model {width} is not a multiple of {name} {heads}"));
        }
    }
    Ok(())
}
