//! Pulls one model as a program of its own, so that tests can kill it.
//! Arguments: the hub's address, the store's folder, `owner/name`, and where to
//! kill itself: `verify`, `install` or `installed`, and after how many
//! microseconds.

use std::time::Duration;

use hub::{Catalogue, Connections, Control, HubSettings, Proxying, Puller, Store, TransferStage};

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, store, name, rest @ ..] = arguments.as_slice() else { return 2.into() };
    let at = rest.first().cloned();
    let after = rest.get(1).and_then(|text| text.parse().ok()).map(Duration::from_micros);
    let run = async {
        let settings = HubSettings { proxy: Proxying::Never, ..HubSettings::of_hub(endpoint)? };
        let puller = Puller::new(settings, Connections::nowhere())?;
        let wanted = Catalogue::public()?.wanted(name)?;
        let mut on_progress = |progress: hub::TransferProgress| {
            let stage = match progress.stage {
                TransferStage::Verify => "verify",
                TransferStage::Install => "install",
                TransferStage::Installed => "installed",
                _ => return,
            };
            if at.as_deref() == Some(stage) {
                match after {
                    None => kill(),
                    Some(after) => drop(std::thread::spawn(move || {
                        std::thread::sleep(after);
                        kill();
                    })),
                }
            }
        };
        puller.pull(&Store::at(store), &wanted, &Control::default(), &mut on_progress).await
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    match runtime.map(|runtime| runtime.block_on(run)) {
        Ok(Ok(_)) => 0.into(),
        Ok(Err(error)) => {
            eprintln!("{error}");
            1.into()
        }
        Err(_) => 3.into(),
    }
}

/// As `kill -9` does.
fn kill() {
    #[cfg(unix)]
    // SAFETY: the calls take numbers only.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGKILL);
    }
}
