use wire::{Backend, Description, DeviceInfo};

use crate::control::Control;
use crate::device::{self, Chosen};
use crate::platform;
use crate::trouble::card_problem;

pub fn describe(control: &Control) -> Description {
    let chosen = device::first_usable().map(|chosen| verified(chosen, control));
    let (total, available) = platform::machine_memory();
    let mut devices = Vec::new();
    if let Some(chosen) = chosen.as_ref().filter(|chosen| chosen.id != "cpu") {
        // Memory of a GPU is the memory crate's to report.
        let name = "NVIDIA GPU".to_owned();
        devices.push(DeviceInfo { id: chosen.id.clone(), name, total_bytes: None, free_bytes: None });
    }
    devices.push(DeviceInfo {
        id: "cpu".into(),
        name: platform::processor_name().unwrap_or_else(|| std::env::consts::ARCH.into()),
        total_bytes: total,
        free_bytes: available,
    });
    let backend = if devices.len() > 1 { Backend::Cuda } else { Backend::Cpu };
    Description {
        engine: env!("CARGO_PKG_VERSION").into(),
        backend,
        devices,
        cpu_reason: chosen.and_then(|chosen| chosen.cpu_reason),
        threads: rayon::current_num_threads(),
        cpu_features: cpu_features(),
        codecs: audio::codecs(),
        ffmpeg: audio::find_ffmpeg().map(|path| path.display().to_string()),
        ffmpeg_codecs: audio::ffmpeg_codecs(),
        versions: vec![("candle".into(), "0.11.1".into()), ("symphonia".into(), "0.6".into())],
    }
}

/// The CPU in place of a card that computes something else than it should.
fn verified(chosen: Chosen, control: &Control) -> Chosen {
    // The first time, the driver compiles the kernels for this card, which can take a minute.
    let worked = || {
        control.worked();
        true
    };
    match device::self_test(&chosen.device, &worked).map_err(|error| card_problem(&error)) {
        Err(Some(problem)) => chosen.without_card(problem),
        _ => chosen,
    }
}

/// What the kernels choose between at run time.
fn cpu_features() -> Vec<String> {
    let mut features: Vec<&str> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("f16c", is_x86_feature_detected!("f16c")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
            ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
            ("avx512bf16", is_x86_feature_detected!("avx512bf16")),
        ];
        features.extend(known.iter().filter(|(_, there)| *there).map(|(name, _)| name));
    }
    #[cfg(target_arch = "aarch64")]
    features.push("neon");
    features.into_iter().map(str::to_owned).collect()
}
