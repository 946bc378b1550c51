//! What a bug report of the window needs, as text: program, engine, cards,
//! models, settings. Nothing of any recording or transcript.

use serde::Serialize;
use wire::{Description, Failure, FilePath};

use advisor::models::Places;
use advisor::{ModelRef, list_models};
use config::edit::{SettingStatus, setting_statuses};
use config::preferences::{ConfigFile, environment};
use supervisor::find_engine;
use supervisor::status::Gpus;

#[derive(Debug, Serialize)]
struct Report<'a> {
    version: &'a str,
    system: String,
    window: Window,
    engine_path: Option<FilePath>,
    engine: Option<Description>,
    /// Why the CUDA engine does not serve, where it might.
    backend_note: Option<String>,
    /// Why there is no engine.
    failure: Option<Failure>,
    #[serde(flatten)]
    gpu: Gpus,
    settings: Vec<String>,
    settings_failure: Option<Failure>,
    model_folders: Vec<FilePath>,
    models: Vec<String>,
    /// What the host could not do.
    remarks: Vec<String>,
}

/// How the window shows itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Window {
    /// From the program's start to the first frame that the page saw.
    pub first_paint_milliseconds: Option<u128>,
    /// How the web view draws.
    pub renderer: &'static str,
    /// The version of the web view, where it is known.
    pub webview: Option<String>,
}

/// `engine` is what [`supervisor::Supervisor::describe`] gave, `remarks` what the
/// host has to say of its own. Waits for the card's driver and the disk.
pub fn text(
    version: &str,
    window: Window,
    engine: Result<(Description, Option<String>), Failure>,
    remarks: Vec<String>,
) -> String {
    let (settings, settings_failure) = match settings() {
        Ok(settings) => (settings, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    let mut report = Report {
        version,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        window,
        engine_path: find_engine().ok().map(FilePath::from),
        engine: None,
        backend_note: None,
        failure: None,
        gpu: Gpus::now(Vec::new()),
        settings,
        settings_failure,
        model_folders: Places::of_this_process().folders().into_iter().map(FilePath::from).collect(),
        models: list_models().iter().map(model).collect(),
        remarks,
    };
    match engine {
        Ok((description, note)) => {
            report.engine = Some(description);
            report.backend_note = note;
        }
        Err(failure) => report.failure = Some(failure),
    }
    serde_json::to_string_pretty(&report).unwrap_or_default()
}

/// Settings that differ from the defaults, as `name = value (where)`.
fn settings() -> Result<Vec<String>, Failure> {
    let Some(file) = ConfigFile::of_this_user() else { return Ok(Vec::new()) };
    let said = |stands: SettingStatus| {
        let of = |value: Option<String>, place: &str| {
            value.map(|value| format!("{} = {value} ({place})", stands.name))
        };
        [of(stands.in_environment.clone(), "environment"), of(stands.in_file.clone(), "file")]
    };
    Ok(setting_statuses(&file, &environment())?.into_iter().flat_map(said).flatten().collect())
}

fn model(model: &ModelRef) -> String {
    let kind = if model.demonstration { " (demonstration)" } else { "" };
    format!("{}{kind}: {}", model.name, model.path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ErrorCode;

    #[test]
    fn a_report_says_why_there_is_no_engine() {
        let failure = Failure::new(ErrorCode::EngineNotFound, "There is no engine.").remedy("Install it.");
        let window = Window { first_paint_milliseconds: Some(640), ..Window::default() };
        let remarks = vec!["There is no D-Bus.".to_owned()];
        let report: serde_json::Value =
            serde_json::from_str(&text("1.2.3", window, Err(failure), remarks)).unwrap();
        assert_eq!(report["window"]["first_paint_milliseconds"], 640);
        assert_eq!(report["version"], "1.2.3");
        assert_eq!(report["failure"]["code"], "engine_not_found");
        assert_eq!(report["remarks"][0], "There is no D-Bus.");
        assert!(report["model_folders"].as_array().is_some_and(|folders| !folders.is_empty()));
    }
}
