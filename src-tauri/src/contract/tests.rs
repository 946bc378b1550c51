use std::collections::BTreeSet;
use std::path::Path;

use ts_rs::{Config, TS};

use super::*;

/// Run `STENO_WRITE_CONTRACT=1 cargo test -p steno-window contract` after a change.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui/src/lib/generated/contract.ts");

fn contract() -> String {
    let config = Config::new().with_large_int("number");
    let mut text = String::from(
        "// Made from src-tauri/src/contract.rs by `STENO_WRITE_CONTRACT=1 cargo test -p steno-window contract`.\n\n",
    );
    text.push_str(&names("Command", include!("../commands.in")));
    text.push_str(&names("ErrorCode", error_codes()));
    let variables = api::preferences::variables();
    text.push_str(&names("PreferenceName", variables.map(|(name, _)| api::memory::settings::key(name))));
    macro_rules! declare {
        ($($kind:ty),* $(,)?) => { $(
            text.push_str(&<$kind>::docs().unwrap_or_default());
            text.push_str(&format!("export {}\n\n", <$kind>::decl(&config)));
        )* };
    }
    declare!(
        Setup,
        ModelChoice,
        Settings,
        OwnSettings,
        Preset,
        WatchedFolder,
        Switches,
        Look,
        Exporting,
        EngineInfo,
        Backend,
        Device,
        WindowEvent,
        Job,
        JobState,
        Progress,
        Stage,
        TextUpdate,
        Segment,
        Suspicion,
        Notice,
        Severity,
        Ending,
        Gap,
        Format,
        Place,
        Saved,
        NotSaved,
        Failure,
        ModelFits,
        MemoryRoom,
        ModelFit,
        ModelFacts,
        FitWord,
        Preference,
        MemoryUpdate,
        DeviceKind,
        MemorySample,
        MemoryLevels,
        MemoryNotice,
        MemoryStage,
        StageUse,
        Forecast,
        MemoryParts,
        ChartFile,
        Shelf,
        Offer,
        Stands,
        OfferFacts,
        Transfer,
        TransferStage,
        Connection,
    );
    format!("{}\n", text.trim_end())
}

fn names<'a>(name: &str, values: impl IntoIterator<Item = impl AsRef<str> + 'a>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| format!("\"{}\"", value.as_ref())).collect();
    format!("export type {name} = {};\n\n", values.join(" | "))
}

/// A new code fails to compile here, and then in the page, which has a text for each.
fn error_codes() -> Vec<String> {
    use wire::ErrorCode::*;
    let all = [
        FileNotFound,
        FileUnreadable,
        NotAFile,
        FileEmpty,
        NoAudioTrack,
        NoSuchTrack,
        UnknownFormat,
        UnsupportedCodec,
        NeedsFfmpeg,
        AudioBroken,
        ModelNotFound,
        ModelInvalid,
        ModelUnsupported,
        LanguageUnknown,
        BadSettings,
        DeviceUnavailable,
        OutOfMemory,
        NetworkOff,
        NetworkFailed,
        DownloadRefused,
        ModelCorrupt,
        ModelInUse,
        DiskFull,
        OutputExists,
        OutputUnwritable,
        EngineNotFound,
        EngineFailed,
        EngineSilent,
        ProtocolMismatch,
        Cancelled,
        Internal,
    ];
    all.iter()
        .map(|code| {
            match code {
                FileNotFound | FileUnreadable | NotAFile | FileEmpty | NoAudioTrack | NoSuchTrack
                | UnknownFormat | UnsupportedCodec | NeedsFfmpeg | AudioBroken | ModelNotFound
                | ModelInvalid | ModelUnsupported | LanguageUnknown | BadSettings | DeviceUnavailable
                | OutOfMemory | NetworkOff | NetworkFailed | DownloadRefused | ModelCorrupt | ModelInUse
                | DiskFull | OutputExists | OutputUnwritable | EngineNotFound | EngineFailed
                | EngineSilent | ProtocolMismatch | Cancelled | Internal => {}
            }
            serde_json::to_value(code).unwrap().as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn the_pages_contract_is_not_stale() {
    let fresh = contract();
    if std::env::var_os("STENO_WRITE_CONTRACT").is_some() {
        std::fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        std::fs::write(FILE, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        committed == fresh,
        "{FILE} is stale: STENO_WRITE_CONTRACT=1 cargo test -p steno-window contract"
    );
}

#[test]
fn every_command_is_granted_and_nothing_else_is() {
    let capability = include_str!("../../capabilities/main.json");
    let capability: serde_json::Value = serde_json::from_str(capability).unwrap();
    let granted: BTreeSet<String> = capability["permissions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().into())
        .collect();
    let commands = include!("../commands.in");
    let wanted = commands.iter().map(|name| format!("allow-{}", name.replace('_', "-"))).collect();
    assert_eq!(granted, wanted);
}

#[test]
fn every_command_that_is_handled_is_listed() {
    let main = include_str!("../main.rs");
    let handler = main.split("generate_handler![").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let names = handler.split(',').filter_map(|path| path.trim().rsplit("::").next());
    let handled: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let listed: BTreeSet<&str> = include!("../commands.in").into_iter().collect();
    assert_eq!(handled, listed);
}
