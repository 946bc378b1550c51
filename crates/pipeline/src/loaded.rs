use std::path::{Path, PathBuf};

use formats::{Abilities, AdapterFile, ModelInfo};
use memory::{DeviceKind, Footprint, Network, Plan, Precision, Scope, Stage, Tracker};
use serde::Deserialize;
use wire::{ErrorCode, Failure, Job};

use crate::device::Chosen;
use crate::speech_model::{self, SpeechModel};
use crate::trouble::{Broken, during};
use crate::{Control, StageError};

/// A model on its device, with its hold on the device's memory.
#[derive(Debug)]
pub struct Loaded {
    pub speech: Box<dyn SpeechModel>,
    pub model: transcript::Model,
    /// What decoding with it takes beyond its weights.
    pub network: Network,
    path: PathBuf,
    adapter: Option<PathBuf>,
    precision: Precision,
    /// After the weights, so that it ends when they are gone.
    scope: Scope,
}

/// What `steno-model.json` beside the weights may say.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Marker {
    name: Option<String>,
    pub demonstration: bool,
}

impl Marker {
    pub fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("steno-model.json")).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

impl Loaded {
    pub fn is(&self, path: &Path, adapter: Option<&Path>, precision: Precision) -> bool {
        self.path == path && self.adapter.as_deref() == adapter && self.precision == precision
    }

    /// Reserves the memory of the weights, then loads them.
    pub fn load(
        path: &Path,
        adapter: Option<&Path>,
        precision: Precision,
        chosen: &Chosen,
        tracker: &Tracker,
        control: &Control,
    ) -> Result<Self, Broken> {
        let network = during(Stage::SpeechModel, network(path))?;
        let marker = Marker::read(path);
        let name = name_of(path, &marker);
        let plan = network.plan(tracker.device().kind(), precision);
        let demand = Footprint::of(&network, &plan).model_demand(&name);
        let merged = during(Stage::SpeechModel, adapter.map(|file| read_adapter(file, path)).transpose())?;
        let adapted = merged.as_ref().map(|file| adapter_name(&file.path));
        let mut scope = during(Stage::SpeechModel, Scope::enter(tracker, Stage::SpeechModel, demand))?;
        // On an error `speech` was never there and the scope ends by itself.
        let speech = during(
            Stage::SpeechModel,
            speech_model::load_adapted(&network, path, merged, &chosen.device, precision, &|| {
                control.worked();
                !control.is_cancelled()
            }),
        )?;
        scope.loaded();
        let model = transcript::Model {
            name,
            precision: speech.precision().as_str().into(),
            demonstration: marker.demonstration,
            adapter: adapted,
        };
        Ok(Self {
            speech,
            model,
            network,
            path: path.into(),
            adapter: adapter.map(Into::into),
            precision,
            scope,
        })
    }

    /// Drops the weights, then verifies that their memory came back.
    pub fn free(self) {
        let Self { speech, scope, .. } = self;
        scope.leave(|| drop(speech));
    }

    /// What the job will take with this model.
    pub fn footprint(&self, job: &Job, kind: DeviceKind) -> Footprint {
        footprint(&self.network, self.precision, kind, job)
    }
}

pub fn footprint(network: &Network, precision: Precision, kind: DeviceKind, job: &Job) -> Footprint {
    let plan = Plan {
        beams: job.decoding.most_texts(Abilities::of(network).usual_beams) as u64,
        word_times: job.aligns_words(),
        ..network.plan(kind, precision)
    };
    Footprint::of(network, &plan)
}

/// An adapter of the model at `model`. One that was learnt beside other weights is refused: with
/// these it would make noise of the text.
fn read_adapter(path: &Path, model: &Path) -> Result<AdapterFile, StageError> {
    let file = AdapterFile::read(path).map_err(models::Error::from)?;
    let base = formats::fingerprint(model).map_err(models::Error::from)?;
    if file.card.base != base {
        let text = format!("The adapter belongs to other weights, those of {}.", file.card.model);
        let failure = Failure::new(ErrorCode::ModelInvalid, text).file(path);
        return Err(failure.remedy("Switch it off, or use the model that it was made for.").into());
    }
    Ok(file)
}

/// What an adapter is called: as its file.
pub fn adapter_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a model is called where its marker says nothing.
pub fn name_of(path: &Path, marker: &Marker) -> String {
    marker.name.clone().unwrap_or_else(|| {
        path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
    })
}

/// That of the model at `path`, read without loading it.
pub fn network(path: &Path) -> Result<Network, StageError> {
    if !path.exists() {
        let message = format!("There is no model at {}.", path.display());
        return Err(Failure::new(ErrorCode::ModelNotFound, message)
            .remedy("`steno models` lists those that are installed.")
            .into());
    }
    Ok(ModelInfo::network(path).map_err(models::Error::from)?)
}
