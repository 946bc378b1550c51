//! What the page may ask for. Listed in commands.in and granted in
//! capabilities/main.json; arguments and answers are in `app::view`.

use advisor::choice::Choices;
use app::session;
use tauri::ipc::{Channel, Response};
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::shell::{self, Shell, lock};
use crate::{dialogs, first_paint};
use app::view::{
    ChartFile, EngineInfo, Exporting, Failure, Gap, MemoryUpdate, ModelFits, NamePreview, PlaySource,
    Preference, SaveLocation, Saved, Setup, WindowEvent,
};

pub type Answer<T> = Result<T, Failure>;

/// Called when the page is loaded: returns its setup, and sends later changes to
/// `events`.
#[tauri::command]
pub fn attach(shell: State<'_, Shell>, events: Channel<WindowEvent>) -> Setup {
    shell.first_paint.scripts_run();
    shell.attach(events);
    shell.setup()
}

/// Starts the engine where there is none yet.
#[tauri::command]
pub async fn describe(shell: State<'_, Shell>) -> Answer<EngineInfo> {
    let (description, note) = shell.state.session.describe().await?;
    Ok(EngineInfo::new(description, note))
}

/// How each model fits into what is free now, for the settings in force. The models are read
/// again first: the page asks this whenever it shows them.
#[tauri::command]
pub async fn model_fits(app: AppHandle) -> Answer<ModelFits> {
    blocking(move || {
        let shell = app.state::<Shell>();
        shell.read_models();
        let (models, job) = shell.state.models_and_job();
        Ok(Choices::now(&models, &job, &shell.state.session.preferences()).into())
    })
    .await
}

/// In a dialog with that title, as in the other commands that open one.
#[tauri::command]
pub async fn choose_files(shell: State<'_, Shell>, window: WebviewWindow, title: String) -> Answer<()> {
    let files = dialogs::open_files(&window, &title, shell.state.session.latest_folder()).await;
    shell.state.session.add(files);
    Ok(())
}

#[tauri::command]
pub async fn choose_model(shell: State<'_, Shell>, window: WebviewWindow, title: String) -> Answer<()> {
    if let Some(folder) = dialogs::open_folder(&window, &title).await {
        shell.state.use_model(advisor::models::model_at(&folder)?);
        shell.tell_setup();
    }
    Ok(())
}

/// Asks for a folder for transcripts: its number; null where the dialog was closed.
#[tauri::command]
pub async fn choose_output_folder(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    title: String,
) -> Answer<Option<usize>> {
    let Some(folder) = dialogs::open_folder(&window, &title).await else { return Ok(None) };
    let number = shell.state.add_output_folder(&folder);
    shell.tell_setup();
    Ok(Some(number))
}

/// The words of the lists that the user chooses; null where the dialog was closed.
#[tauri::command]
pub async fn read_word_lists(window: WebviewWindow, title: String) -> Answer<Option<Vec<String>>> {
    let files = dialogs::open_files(&window, &title, None).await;
    if files.is_empty() {
        return Ok(None);
    }
    blocking(move || {
        let lists = files.iter().map(|file| session::read_word_list(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(lists.concat()))
    })
    .await
}

/// Saves words as a list, where the user says; the file written, or null where the dialog was closed. `name`: what the
/// dialog proposes.
#[tauri::command]
pub async fn save_word_list(
    window: WebviewWindow,
    words: Vec<String>,
    name: String,
    title: String,
) -> Answer<Option<String>> {
    let proposed = std::env::home_dir().unwrap_or_default().join(name);
    let Some(file) = dialogs::save_file(&window, &title, proposed).await else { return Ok(None) };
    blocking(move || {
        session::write_bytes(&file, session::word_list(&words).as_bytes())?;
        Ok(Some(file.display().to_string()))
    })
    .await
}

/// What the files of a recording of this name would be called.
#[tauri::command]
pub fn preview_name(shell: State<'_, Shell>, template: String, name: String) -> NamePreview {
    NamePreview::of(&template, &name, &shell.state)
}

/// The settings of the user's config file.
#[tauri::command]
pub fn preferences() -> Answer<Vec<Preference>> {
    Ok(Preference::all()?)
}

/// Writes one of them, or takes it out, and gives all of them as they are now.
#[tauri::command]
pub fn change_preference(
    shell: State<'_, Shell>,
    name: String,
    value: Option<String>,
) -> Answer<Vec<Preference>> {
    app::view::Preference::change(&name, value.as_deref())?;
    shell.state.read_preferences();
    shell.tell_setup();
    Ok(Preference::all()?)
}

/// What a bug report needs; nothing of any transcript.
#[tauri::command]
pub async fn diagnostics(shell: State<'_, Shell>) -> Answer<String> {
    let description = shell.state.session.describe().await;
    let window = first_paint::report(&shell);
    let remarks = lock(&shell.attending.said).iter().cloned().collect();
    blocking(move || Ok(app::diagnostics::text(env!("CARGO_PKG_VERSION"), window, description, remarks)))
        .await
}

/// Sends a recording's text to `updates`, each a `TextUpdate`, until another one is watched.
#[tauri::command]
pub fn watch(shell: State<'_, Shell>, job: u64, updates: Channel<Response>) {
    shell.watch(job, updates);
}

/// Sends what is seen of a job's memory to `updates`, until another one is watched.
#[tauri::command]
pub fn watch_memory(shell: State<'_, Shell>, job: u64, updates: Channel<MemoryUpdate>) {
    shell.watch_memory(job, updates);
}

/// Null where the user closed the dialog.
#[tauri::command]
pub async fn save(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    job: u64,
    exporting: Exporting,
    place: SaveLocation,
    title: String,
) -> Answer<Option<Saved>> {
    // What is written over other files is a part of an export that is remembered already.
    let is_part = matches!(place, SaveLocation::BesideReplacing);
    let Some(place) = place_of(&shell, &window, job, &exporting, place, &title).await? else {
        return Ok(None);
    };
    if !is_part {
        remember_exporting(&shell, &exporting);
    }
    let session = shell.state.session.clone();
    blocking(move || Ok(Some(session.save_as(job, &exporting, &place).into()))).await
}

/// Saves what was not saved when a transcript was finished. `replace`: over files that are there.
#[tauri::command]
pub async fn save_unsaved(shell: State<'_, Shell>, job: u64, replace: bool) -> Answer<Saved> {
    let session = shell.state.session.clone();
    blocking(move || Ok(session.save_unsaved(job, replace).into())).await
}

pub fn remember_exporting(shell: &Shell, exporting: &Exporting) {
    shell.state.remember(|remembered| remembered.exporting = exporting.clone());
    shell.tell_setup();
}

async fn place_of(
    shell: &Shell,
    window: &WebviewWindow,
    job: u64,
    exporting: &Exporting,
    place: SaveLocation,
    title: &str,
) -> Answer<Option<session::SaveTarget>> {
    Ok(match (place, exporting.formats.as_slice()) {
        (SaveLocation::Beside, _) => Some(session::SaveTarget::Beside { replace: false }),
        (SaveLocation::BesideReplacing, _) => Some(session::SaveTarget::Beside { replace: true }),
        (SaveLocation::Ask, [format]) => {
            let proposed = shell.state.session.proposed_file(job, *format)?;
            dialogs::save_file(window, title, proposed).await.map(session::SaveTarget::At)
        }
        (SaveLocation::Ask, _) => dialogs::open_folder(window, title)
            .await
            .map(|folder| session::SaveTarget::Within { folder, replace: false }),
    })
}

/// Saves what the page made of a job's memory where the user says; the file
/// written, or null where the dialog was closed.
#[tauri::command]
pub async fn save_chart(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    job: u64,
    kind: ChartFile,
    bytes: Vec<u8>,
    title: String,
) -> Answer<Option<String>> {
    let proposed = shell.state.session.beside(job, kind.ending())?;
    let Some(file) = dialogs::save_file(&window, &title, proposed).await else { return Ok(None) };
    blocking(move || Ok(session::write_bytes(&file, &bytes).map(|()| Some(file.display().to_string()))?))
        .await
}

/// Saves a part of a recording as a sound file where the user says; the file written, or null where
/// the dialog was closed.
#[tauri::command]
pub async fn save_sound(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    job: u64,
    part: Gap,
    title: String,
) -> Answer<Option<String>> {
    let (recording, track) = shell.state.session.sound_of(job)?;
    let proposed = session::clip_name(&recording, part.clone().into());
    let Some(file) = dialogs::save_file(&window, &title, proposed).await else { return Ok(None) };
    let player = std::sync::Arc::clone(&shell.player);
    // The dialog has asked before it let an existing file be replaced.
    blocking(move || {
        player.clip(&recording, track, part.into(), &file, true)?;
        Ok(Some(file.display().to_string()))
    })
    .await
}

/// Where a recording is to be listened to.
#[tauri::command]
pub async fn play_source(shell: State<'_, Shell>, job: u64) -> Answer<PlaySource> {
    let (session, player) = (shell.state.session.clone(), std::sync::Arc::clone(&shell.player));
    blocking(move || {
        let (file, track) = session.sound_of(job)?;
        Ok(player.open(&file, track)?.into())
    })
    .await
}

/// Shows what was saved of a recording, else the recording, in the file manager.
#[tauri::command]
pub async fn show_in_folder(shell: State<'_, Shell>, job: u64) -> Answer<()> {
    let file = shell.state.session.file_to_show(job)?;
    blocking(move || {
        let shown = desktop::show_in_folder(&file);
        Ok(shown.map_err(|text| wire::Failure::new(wire::ErrorCode::OutputUnwritable, text).file(file))?)
    })
    .await
}

/// The user's answer to `close_requested`.
#[tauri::command]
pub fn close(app: AppHandle, shell: State<'_, Shell>, really: bool) {
    if really {
        shell::close(app);
    } else {
        shell.keep_open();
    }
}

/// For what waits for a disk or a driver.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Answer<T> + Send + 'static) -> Answer<T> {
    let done = tauri::async_runtime::spawn_blocking(work).await;
    done.map_err(|error| wire::Failure::new(wire::ErrorCode::Internal, error.to_string()))?
}
