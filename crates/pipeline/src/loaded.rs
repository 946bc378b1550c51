use std::path::{Path, PathBuf};

use candle_core::DType;
use models::whisper::Whisper;
use serde::Deserialize;
use wire::{DeviceChoice, ErrorCode, Failure};

use crate::device::{self, Chosen};
use crate::{Control, StageError};

/// A model on its device.
#[derive(Debug)]
pub struct Loaded {
    pub whisper: Whisper,
    pub device: Chosen,
    pub model: transcript::Model,
    folder: PathBuf,
    choice: DeviceChoice,
}

/// What `steno-model.json` beside the weights may say.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Marker {
    name: Option<String>,
    demonstration: bool,
}

impl Loaded {
    pub fn is(&self, folder: &Path, choice: DeviceChoice) -> bool {
        self.folder == folder && self.choice == choice
    }

    pub fn load(folder: &Path, choice: DeviceChoice, control: &Control) -> Result<Self, StageError> {
        if !folder.is_dir() {
            let message = format!("There is no model at {}.", folder.display());
            return Err(Failure::new(ErrorCode::ModelNotFound, message)
                .remedy("`steno models` lists those that are installed.")
                .into());
        }
        let device = device::choose(choice)?;
        let dtype = Whisper::preferred_dtype(&device.device);
        let whisper = Whisper::load(folder, &device.device, dtype, &|| {
            control.worked();
            !control.is_cancelled()
        })?;
        let marker: Marker = std::fs::read_to_string(folder.join("steno-model.json"))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let name = marker.name.unwrap_or_else(|| {
            folder.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
        });
        let precision = match dtype {
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            _ => "f32",
        };
        let model =
            transcript::Model { name, precision: precision.into(), demonstration: marker.demonstration };
        Ok(Self { whisper, device, model, folder: folder.into(), choice })
    }
}
