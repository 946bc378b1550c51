//! What the page may ask of other machines: the one that transcribes in place of this one, and workers.

use app::session::WorkerQueue;
use app::view::{Machine, WorkersView};
use tauri::{AppHandle, Manager, State};

use crate::commands::{Answer, blocking};
use crate::shell::Shell;

/// Sets which machine transcribes. `token`: another one; empty: none; null: as it is.
#[tauri::command]
pub async fn change_machine(app: AppHandle, machine: Machine, token: Option<String>) -> Answer<()> {
    blocking(move || {
        let shell = app.state::<Shell>();
        let changed = shell.state.change_machine(machine.into(), token.as_deref());
        // Also where it was refused: the page shows what holds.
        shell.tell_setup();
        Ok(changed?)
    })
    .await
}

/// The models of the machine at this address, which also shows that it can be used.
#[tauri::command]
pub async fn test_machine(
    shell: State<'_, Shell>,
    address: String,
    token: Option<String>,
) -> Answer<Vec<String>> {
    Ok(shell.state.test_machine(&address, token.as_deref()).await?)
}

/// Sets which queue of workers is looked at.
#[tauri::command]
pub async fn change_worker_queue(app: AppHandle, queue: WorkerQueue) -> Answer<()> {
    blocking(move || {
        let shell = app.state::<Shell>();
        let changed = shell.state.change_worker_queue(queue);
        shell.tell_setup();
        Ok(changed?)
    })
    .await
}

/// One look at the queue of workers.
#[tauri::command]
pub async fn look_at_workers(app: AppHandle) -> Answer<WorkersView> {
    // On a thread of its own: the compiler can't tell that NATS's futures may move between threads.
    blocking(move || {
        let shell = app.state::<Shell>();
        Ok(tauri::async_runtime::block_on(shell.state.look_at_workers())?.into())
    })
    .await
}
