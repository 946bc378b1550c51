//! logind and desktop notifications, through D-Bus.

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use gio::prelude::*;
use gio::{BusType, Cancellable, DBusCallFlags, DBusConnection, UnixFDList};
use glib::{ToVariant, Variant, VariantTy};

use crate::NAME;

/// Timeout of a call, in milliseconds.
const TIMEOUT_MS: i32 = 5000;

/// An inhibitor of logind, which lasts as long as its file descriptor is open
/// (<https://systemd.io/INHIBITOR_LOCKS>).
#[derive(Debug)]
pub struct SleepInhibitor {
    _inhibitor: OwnedFd,
}

pub fn stay_awake(why: &str) -> Result<SleepInhibitor, String> {
    let bus = bus(BusType::System)?;
    let answer = bus.call_with_unix_fd_list_sync(
        Some("org.freedesktop.login1"),
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "Inhibit",
        // What, who, why; to block and not only to delay.
        Some(&("sleep:idle", NAME, why, "block").to_variant()),
        VariantTy::new("(h)").ok(),
        DBusCallFlags::NONE,
        TIMEOUT_MS,
        None::<&UnixFDList>,
        None::<&Cancellable>,
    );
    let (_, files) = answer.map_err(|error| format!("logind says {}", said(&error)))?;
    let inhibitor = files.get(0).map_err(|error| said(&error))?;
    // SAFETY: `get` returns a duplicate of the descriptor, which nothing else owns.
    Ok(SleepInhibitor { _inhibitor: unsafe { OwnedFd::from_raw_fd(inhibitor) } })
}

pub fn notify(title: &str, text: &str) -> Result<(), String> {
    let no_actions: Vec<String> = Vec::new();
    let hints = glib::VariantDict::new(None);
    hints.insert_value("desktop-entry", &"steno-window".to_variant());
    // Replaces no other notification (0), has the icon of the desktop file, and
    // stays for the desktop's usual time (-1).
    let parts: [Variant; 8] = [
        NAME.to_variant(),
        0u32.to_variant(),
        "steno-window".to_variant(),
        title.to_variant(),
        text.to_variant(),
        no_actions.to_variant(),
        hints.end(),
        (-1i32).to_variant(),
    ];
    let call = bus(BusType::Session)?.call_sync(
        Some("org.freedesktop.Notifications"),
        "/org/freedesktop/Notifications",
        "org.freedesktop.Notifications",
        "Notify",
        Some(&Variant::tuple_from_iter(parts)),
        None,
        DBusCallFlags::NONE,
        TIMEOUT_MS,
        None::<&Cancellable>,
    );
    call.map(drop).map_err(|error| format!("the desktop says {}", said(&error)))
}

/// <https://www.freedesktop.org/wiki/Specifications/file-manager-interface/>; without such a file manager, the
/// program that opens folders.
pub fn show_in_folder(file: &Path) -> Result<(), String> {
    let uri = gio::File::for_path(file).uri();
    let asked = bus(BusType::Session).and_then(|bus| {
        let call = bus.call_sync(
            Some("org.freedesktop.FileManager1"),
            "/org/freedesktop/FileManager1",
            "org.freedesktop.FileManager1",
            "ShowItems",
            Some(&(vec![uri.as_str()], "").to_variant()),
            None,
            DBusCallFlags::NONE,
            TIMEOUT_MS,
            None::<&Cancellable>,
        );
        call.map(drop).map_err(|error| format!("the desktop says {}", said(&error)))
    });
    if asked.is_ok() {
        return Ok(());
    }
    let folder = gio::File::for_path(file.parent().unwrap_or(file)).uri();
    gio::AppInfo::launch_default_for_uri(&folder, None::<&gio::AppLaunchContext>)
        .map_err(|error| said(&error))
}

fn bus(kind: BusType) -> Result<DBusConnection, String> {
    let bus = gio::bus_get_sync(kind, None::<&Cancellable>)
        .map_err(|error| format!("there is no D-Bus to ask on ({})", said(&error)))?;
    // By default GLib ends the process when the bus disappears.
    bus.set_exit_on_close(false);
    Ok(bus)
}

fn said(error: &glib::Error) -> String {
    let text = error.message();
    // `GDBus.Error:org.freedesktop.…: the text`
    let text =
        text.split_once(": ").filter(|(name, _)| name.starts_with("GDBus")).map_or(text, |(_, text)| text);
    format!("\"{}\"", text.trim_end_matches('.'))
}
