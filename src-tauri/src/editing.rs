//! What the page may ask of transcripts: edits, and the history. All of it
//! waits for the disk.

use app::session;
use app::{CorrectedWord, DocumentId, PassageId};
use tauri::ipc::Response;
use tauri::{State, WebviewWindow};

use crate::commands::{Answer, blocking, remember_exporting};
use crate::dialogs;
use crate::shell::Shell;
use app::view::{
    DocumentInfo, EditCommand, Edited, Exporting, Finding, PassageResults, Place, Replaced, Review, Saved,
    SearchChoices, SearchFilter, SearchResults, Undone,
};

/// Null where it makes no sense, or not any more.
#[tauri::command]
pub async fn edit(shell: State<'_, Shell>, job: u64, command: EditCommand) -> Answer<Option<Edited>> {
    with(&shell, move |session| Ok(command.execute(session, job)?)).await
}

/// What of a transcript should be listened to, the most doubtful first.
#[tauri::command]
pub async fn review(shell: State<'_, Shell>, job: u64) -> Answer<Review> {
    with(&shell, move |session| Ok(session.review(job).into())).await
}

/// In this transcript, or in those of the history too.
#[tauri::command]
pub async fn replace_all(
    shell: State<'_, Shell>,
    job: u64,
    finding: Finding,
    with_text: String,
    everywhere: bool,
) -> Answer<Replaced> {
    with(&shell, move |session| Ok(session.replace_all(job, &finding.into(), &with_text, everywhere)?.into()))
        .await
}

/// Where the words occur in this transcript: a list of `Place`.
#[tauri::command]
pub async fn places(shell: State<'_, Shell>, job: u64, finding: Finding) -> Answer<Response> {
    with(&shell, move |session| Ok(Response::new(Place::list_json(session.places(job, &finding.into())?))))
        .await
}

/// Replaces the words at one place; the place behind what took theirs, or null if they are gone.
#[tauri::command]
pub async fn replace_one(
    shell: State<'_, Shell>,
    job: u64,
    finding: Finding,
    with_text: String,
    place: Place,
) -> Answer<Option<Place>> {
    with(&shell, move |session| {
        Ok(session.replace_one(job, &finding.into(), &with_text, &place.into())?.map(Into::into))
    })
    .await
}

/// What would be replaced in all transcripts.
#[tauri::command]
pub async fn count_places(shell: State<'_, Shell>, job: u64, finding: Finding) -> Answer<Replaced> {
    with(&shell, move |session| Ok(session.count_places(job, &finding.into())?.into())).await
}

/// Takes the latest replacement back, in all transcripts that were not edited since.
#[tauri::command]
pub async fn undo_replacing(shell: State<'_, Shell>) -> Answer<Undone> {
    with(&shell, |session| Ok(session.undo_replacing()?.into())).await
}

/// The history, what was changed last first.
#[tauri::command]
pub async fn documents(shell: State<'_, Shell>) -> Answer<Vec<DocumentInfo>> {
    with(&shell, |session| Ok(session.list_documents()?.into_iter().map(Into::into).collect())).await
}

#[tauri::command]
pub async fn search_documents(
    shell: State<'_, Shell>,
    words: String,
    filter: SearchFilter,
) -> Answer<SearchResults> {
    with(&shell, move |session| Ok(session.search_documents(&words, &filter.into())?.into())).await
}

/// The passages that answer a question best; by their meaning too, or by words alone at once.
#[tauri::command]
pub async fn find_passages(
    shell: State<'_, Shell>,
    text: String,
    filter: SearchFilter,
    by_meaning: bool,
) -> Answer<PassageResults> {
    with(&shell, move |session| Ok(session.find_passages(&text, filter.into(), by_meaning)?.into())).await
}

/// More like one passage.
#[tauri::command]
pub async fn similar_passages(
    shell: State<'_, Shell>,
    passage: i64,
    filter: SearchFilter,
) -> Answer<PassageResults> {
    with(&shell, move |session| Ok(session.similar_passages(PassageId(passage), &filter.into())?.into()))
        .await
}

/// Speakers and languages to choose from.
#[tauri::command]
pub async fn search_choices(shell: State<'_, Shell>) -> Answer<SearchChoices> {
    with(&shell, |session| Ok(session.search_choices()?.into())).await
}

/// Words that the user corrects again and again.
#[tauri::command]
pub async fn corrected_words(shell: State<'_, Shell>) -> Answer<Vec<CorrectedWord>> {
    with(&shell, |session| Ok(session.corrected_words()?)).await
}

/// Puts it in the list of recordings; its number there.
#[tauri::command]
pub async fn open_document(shell: State<'_, Shell>, document: i64) -> Answer<u64> {
    with(&shell, move |session| Ok(session.open_document(DocumentId(document))?)).await
}

/// In a folder that the user chooses: whether the recording is there. Null
/// where the dialog was closed.
#[tauri::command]
pub async fn locate_recording(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    job: u64,
    title: String,
) -> Answer<Option<bool>> {
    let Some(folder) = dialogs::open_folder(&window, &title).await else { return Ok(None) };
    with(&shell, move |session| Ok(Some(session.locate(job, &folder)?))).await
}

/// Several recordings in one folder that the user chooses, in their order; null where the dialog
/// was closed.
#[tauri::command]
pub async fn save_jobs(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    jobs: Vec<u64>,
    exporting: Exporting,
    title: String,
) -> Answer<Option<Vec<Saved>>> {
    let Some(folder) = dialogs::open_folder(&window, &title).await else { return Ok(None) };
    let place = session::SaveTarget::Within { folder, replace: false };
    let save = move |session: &session::Session| {
        Ok(Some(jobs.into_iter().map(|job| session.save_as(job, &exporting, &place).into()).collect()))
    };
    with(&shell, save).await
}

/// In a folder that the user chooses; null where the dialog was closed.
#[tauri::command]
pub async fn save_documents(
    shell: State<'_, Shell>,
    window: WebviewWindow,
    documents: Vec<i64>,
    exporting: Exporting,
    title: String,
) -> Answer<Option<Saved>> {
    let Some(folder) = dialogs::open_folder(&window, &title).await else { return Ok(None) };
    remember_exporting(&shell, &exporting);
    let documents: Vec<_> = documents.into_iter().map(DocumentId).collect();
    let place = session::SaveTarget::Within { folder, replace: false };
    with(&shell, move |session| Ok(Some(session.save_documents(&documents, &exporting, &place).into()))).await
}

async fn with<T: Send + 'static>(
    shell: &Shell,
    work: impl FnOnce(&session::Session) -> Answer<T> + Send + 'static,
) -> Answer<T> {
    let (session, under_way) = (shell.state.session.clone(), shell.under_way());
    blocking(move || {
        let _until_done = under_way;
        work(&session)
    })
    .await
}
