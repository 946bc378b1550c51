//! Codecs and tracks, as Symphonia and libopus name them.

use std::sync::LazyLock;

use symphonia::core::audio::{Channels, Position};
use symphonia::core::codecs::audio::well_known::*;
use symphonia::core::codecs::audio::{AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::codecs::registry::CodecRegistry;
use symphonia::core::formats::{FormatReader, TrackFlags};

use crate::Track;
use crate::native::Refusal;

/// Hertz of all decoded Opus.
pub(crate) const OPUS_RATE: u32 = 48_000;

static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
    let mut registry = CodecRegistry::new();
    symphonia::default::register_enabled_codecs(&mut registry);
    registry.register_audio_decoder::<symphonia_adapter_libopus::OpusDecoder>();
    registry
});

/// The audio tracks and their ids, in the file's order.
pub(crate) fn audio_tracks(format: &dyn FormatReader) -> (Vec<Track>, Vec<u32>) {
    let audio =
        format.tracks().iter().filter_map(|track| Some((track, track.codec_params.as_ref()?.audio()?)));
    let (mut tracks, ids): (Vec<Track>, Vec<u32>) = audio
        .enumerate()
        .map(|(index, (track, parameters))| {
            let description = Track {
                index,
                codec: codec_name(parameters.codec),
                language: track.language.clone(),
                title: None,
                sample_rate: parameters.sample_rate,
                channels: parameters.channels.as_ref().map(|channels| channels.count() as u32),
                default: track.flags.contains(TrackFlags::DEFAULT),
            };
            (description, track.id)
        })
        .unzip();
    // Exactly one default track: the first that the file marks, else the first.
    let default = tracks.iter().position(|track| track.default).unwrap_or(0);
    for track in &mut tracks {
        track.default = track.index == default;
    }
    (tracks, ids)
}

/// A decoder for a track.
pub(crate) fn decoder_for(parameters: &AudioCodecParameters) -> Result<Box<dyn AudioDecoder>, Refusal> {
    let name = || {
        let channels = parameters.channels.as_ref().map_or(0, Channels::count);
        match codec_name(parameters.codec) {
            name if channels > 2 => format!("{name} with {channels} channels"),
            name => name,
        }
    };
    let mut parameters = parameters.clone();
    if parameters.codec == CODEC_ID_OPUS {
        // Opus decodes to 48 kHz; a container may state the rate before encoding.
        parameters.sample_rate = Some(OPUS_RATE);
        // Without the header the decoder drops no delay. It would drop from the first packet
        // alone, and the delay can be longer.
        parameters.extra_data = None;
    }
    CODECS
        .make_audio_decoder(&parameters, &AudioDecoderOptions::default())
        .map_err(|_| Refusal::Codec(name()))
}

/// Whether the codec's decoder itself drops the frames that the container marks as delay and padding.
pub(crate) fn trims_itself(codec: AudioCodecId) -> bool {
    [CODEC_ID_MP1, CODEC_ID_MP2, CODEC_ID_MP3, CODEC_ID_VORBIS, CODEC_ID_OPUS].contains(&codec)
}

/// SeekIndex of the channel of low-frequency effects.
pub(crate) fn low_frequency(channels: &Channels) -> Option<usize> {
    match channels {
        Channels::Positioned(positions) if positions.contains(Position::LFE1) && channels.count() > 2 => {
            channels.get_canonical_index_for_positioned_channel(Position::LFE1)
        }
        _ => None,
    }
}

fn codec_name(codec: AudioCodecId) -> String {
    if let Some(decoder) = CODECS.get_audio_decoder(codec) {
        return decoder.codec.info.short_name.into();
    }
    match codec {
        CODEC_ID_AC3 => "AC-3",
        CODEC_ID_EAC3 => "E-AC-3",
        CODEC_ID_AC4 => "AC-4",
        CODEC_ID_DCA => "DTS",
        CODEC_ID_WMA => "WMA",
        CODEC_ID_SPEEX => "Speex",
        CODEC_ID_TRUEHD => "TrueHD",
        CODEC_ID_WAVPACK => "WavPack",
        CODEC_ID_TTA => "True Audio",
        CODEC_ID_MUSEPACK => "Musepack",
        CODEC_ID_MONKEYS_AUDIO => "Monkey's Audio",
        _ => "an unknown codec",
    }
    .into()
}
