use std::path::Path;

use ts_rs::{Config, TS};

use super::*;

/// Run `STENO_WRITE_CONTRACT=1 cargo test -p app` after a change.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/lib/generated/contract.ts");

fn contract() -> String {
    let config = Config::new().with_large_int("number");
    let mut text = String::from("// Made from crates/app by `STENO_WRITE_CONTRACT=1 cargo test -p app`.\n\n");
    text.push_str(&names("CommandName", include!("../../../../src-tauri/src/commands.in")));
    let variables = config::preferences::variables();
    text.push_str(&list("NOTICE_CODES", "Every code of a notice", wire::notice::AnyMessage::codes()));
    let codes = wire::ErrorCode::decl(&config);
    text.push_str(&list("ERROR_CODES", "Every code of an error", quoted(&codes)));
    text.push_str(&names("PreferenceName", variables.map(|(name, _)| memory::settings::key(name))));
    let unsure = transcript::review::UNSURE_BELOW;
    text.push_str(&format!(
        "/** A word of less probability is uncertain. */\nexport const UNSURE = {unsure};\n\n"
    ));
    let share = wire::KnownVoice::FALSE_ACCEPTS;
    text.push_str(&format!(
        "/** Share of other people whose voice is mistaken for a known one. */\nexport const FALSE_ACCEPTS = {share};\n\n"
    ));
    macro_rules! declare {
        ($($kind:ty),* $(,)?) => { $(
            text.push_str(&<$kind>::docs().unwrap_or_default());
            text.push_str(&format!("export {}\n\n", <$kind>::decl(&config)));
        )* };
    }
    declare!(
        wire::ErrorCode,
        wire::Backend,
        wire::Channels,
        wire::AudioTrack,
        memory::Stage,
        memory::Checkpoint,
        memory::ladder::Trouble,
        memory::message::Relief,
        memory::message::Program,
        memory::message::Fragmented,
        memory::message::Pinned,
        memory::Message,
        wire::notice::CardProblem,
        wire::notice::Message,
        wire::notice::AnyMessage,
        transcript::export::Format,
        transcript::Severity,
        transcript::Suspicion,
        memory::fit::Fit,
        memory::DeviceKind,
        advisor::fit::DeviceMemory,
        advisor::catalog::ModelCatalog,
        advisor::catalog::CatalogEntry,
        advisor::catalog::EntryFacts,
        advisor::catalog::InstallState,
        hub::TransferStage,
        Setup,
        ModelChoice,
        Settings,
        OwnSettings,
        Part,
        NamePreview,
        transcript::naming::TemplateError,
        Preset,
        WatchedFolder,
        Switches,
        MachineSetup,
        Machine,
        Elsewhere,
        session::WorkerQueue,
        WorkersView,
        WorkerView,
        UnplacedView,
        Look,
        Exporting,
        transcript::export::DocumentOptions,
        EngineInfo,
        Device,
        WindowEvent,
        Job,
        JobState,
        Progress,
        TextUpdate,
        TextChange,
        Segment,
        Word,
        Notice,
        Ending,
        Gap,
        SaveLocation,
        PlaySource,
        Saved,
        NotSaved,
        Failure,
        ModelFits,
        ModelFit,
        ModelFacts,
        FitWarning,
        FitInstead,
        Preference,
        MemoryUpdate,
        MemorySample,
        MemoryLevels,
        MemoryNotice,
        StageUse,
        Forecast,
        MemoryParts,
        ChartFile,
        Transfer,
        hub::Purpose,
        hub::ModelKind,
        Connection,
        Edit,
        EditCommand,
        Chapter,
        Attempt,
        Again,
        Found,
        Review,
        Passage,
        Finding,
        Place,
        Edited,
        Editing,
        Replaced,
        Undone,
        DocumentInfo,
        formats::WordErrors,
        formats::AdapterFigures,
        formats::Learnt,
        formats::AdapterCard,
        Adapter,
        CorrectedSegment,
        CorrectedText,
        Lessons,
        LearningStage,
        LearningRun,
        SearchResults,
        Hit,
        SearchFilter,
        SearchChoices,
        library::documents::CorrectedWord,
        PassageResults,
        FoundPassage,
        IndexState,
        library::Flaw,
        VoiceList,
        Voice,
        VoiceSample,
        Microphone,
        WindowCommand,
        BlockingCommand,
    );
    format!("{}\n", text.trim_end())
}

fn names<'a>(name: &str, values: impl IntoIterator<Item = impl AsRef<str> + 'a>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| format!("\"{}\"", value.as_ref())).collect();
    format!("export type {name} = {};\n\n", values.join(" | "))
}

fn list<'a>(name: &str, about: &str, values: impl IntoIterator<Item = &'a str>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| format!("\"{value}\"")).collect();
    format!("/** {about}. */\nexport const {name} = [{}] as const;\n\n", values.join(", "))
}

/// What stands in quotation marks in a declaration.
fn quoted(declaration: &str) -> impl Iterator<Item = &str> {
    declaration.split('"').skip(1).step_by(2)
}

#[test]
fn the_pages_contract_is_not_stale() {
    let fresh = contract();
    if std::env::var_os("STENO_WRITE_CONTRACT").is_some() {
        std::fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        std::fs::write(FILE, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(committed == fresh, "{FILE} is stale: STENO_WRITE_CONTRACT=1 cargo test -p app");
}

#[test]
fn a_fit_warning_tells_what_is_missing_and_what_fits_instead() {
    use advisor::fit::{Announcement, DeviceMemory};
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");
    let job = advisor::with_alternatives(wire::Job::new(wire::NO_JOB, "talk.flac", model));
    let warning = |free| {
        let device =
            DeviceMemory { kind: memory::DeviceKind::Host, name: "the CPU".into(), free, total: 16 << 30 };
        FitWarning::from(Announcement::of("starter-whisper", &job, device).unwrap())
    };
    let nothing = warning(1 << 20);
    assert_eq!((nothing.model.as_str(), nothing.instead.as_ref()), ("starter-whisper", None));
    // More than the difference: some of what is free stays free.
    assert!(nothing.device.free == 1 << 20 && nothing.missing > nothing.needed - nothing.device.free);
    let instead = warning(nothing.device.free + nothing.missing - 1).instead.unwrap();
    assert_eq!(instead.model, "starter-whisper");
    assert!(instead.precision != nothing.precision && instead.windows >= 1, "{instead:?}");
}
