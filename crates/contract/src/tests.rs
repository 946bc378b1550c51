use std::path::Path;

use ts_rs::{Config, TS};

use super::*;

/// Run `STENO_WRITE_CONTRACT=1 cargo test -p contract` after a change.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/lib/generated/contract.ts");

fn contract() -> String {
    let config = Config::new().with_large_int("number");
    let mut text =
        String::from("// Made from crates/contract by `STENO_WRITE_CONTRACT=1 cargo test -p contract`.\n\n");
    text.push_str(&names("Command", include!("../../../src-tauri/src/commands.in")));
    text.push_str(&names("ErrorCode", error_codes()));
    let variables = api::preferences::variables();
    text.push_str(&names("PreferenceName", variables.map(|(name, _)| api::memory::settings::key(name))));
    let unsure = transcript::review::UNSURE_BELOW;
    text.push_str(&format!(
        "/** A word of less probability is uncertain. */\nexport const UNSURE = {unsure};\n\n"
    ));
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
        TextChange,
        Segment,
        Word,
        Suspicion,
        Notice,
        Severity,
        Ending,
        Gap,
        Format,
        Place,
        PlaySource,
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
        Edit,
        Correction,
        Attempt,
        Again,
        Found,
        Review,
        Passage,
        Finding,
        Edited,
        Editing,
        Replaced,
        DocumentInfo,
        Hit,
        Wish,
        Chore,
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
        PlayerFailed,
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
                | EngineSilent | PlayerFailed | ProtocolMismatch | Cancelled | Internal => {}
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
    assert!(committed == fresh, "{FILE} is stale: STENO_WRITE_CONTRACT=1 cargo test -p contract");
}
