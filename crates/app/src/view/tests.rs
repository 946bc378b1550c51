use std::path::Path;

use ts_rs::{Config, TS};

use super::*;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};

/// Run `STENO_WRITE_CONTRACT=1 cargo test -p app` after a change.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/lib/generated/contract.ts");

fn contract() -> String {
    let config = Config::new().with_large_int("number");
    let mut text = String::from("// Made from crates/app by `STENO_WRITE_CONTRACT=1 cargo test -p app`.\n\n");
    text.push_str(&names("CommandName", include!("../../../../src-tauri/src/commands.in")));
    text.push_str(&names("ErrorCode", variants::<wire::ErrorCode>()));
    text.push_str(&names("Backend", variants::<wire::Backend>()));
    text.push_str(&names("Stage", variants::<wire::Stage>()));
    text.push_str(&names("Format", variants::<transcript::export::Format>()));
    text.push_str(&names("Severity", variants::<transcript::Severity>()));
    text.push_str(&names("Suspicion", variants::<transcript::Suspicion>()));
    text.push_str(&names("FitWord", variants::<memory::fit::Fit>()));
    text.push_str(&names("DeviceKind", variants::<memory::Kind>()));
    text.push_str(&names("MemoryStage", variants::<memory::Stage>()));
    // Notices about memory have severities of their own type, written alike.
    assert_eq!(variants::<memory::Severity>(), variants::<transcript::Severity>());
    let variables = config::preferences::variables();
    text.push_str(&names("PreferenceName", variables.map(|(name, _)| memory::settings::key(name))));
    let unsure = transcript::review::UNSURE;
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
        MemoryRoom,
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
        Shelf,
        Offer,
        Stands,
        OfferFacts,
        Transfer,
        TransferStage,
        Connection,
        Edit,
        EditCommand,
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
        WindowCommand,
        BlockingCommand,
    );
    format!("{}\n", text.trim_end())
}

fn names<'a>(name: &str, values: impl IntoIterator<Item = impl AsRef<str> + 'a>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| format!("\"{}\"", value.as_ref())).collect();
    format!("export type {name} = {};\n\n", values.join(" | "))
}

/// What serde writes for each variant of an enum, asked of the enum itself.
fn variants<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Asking<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Asking<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _: &'static str,
            variants: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = variants;
            Err(Self::Error::custom("only the names were wanted"))
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::custom("this is no enum"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }

    let mut variants: &[&str] = &[];
    let asked = T::deserialize(Asking(&mut variants));
    assert!(asked.is_err() && !variants.is_empty());
    variants
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
    use advisor::fit::{Announcement, Room};
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter-whisper");
    let job = advisor::with_alternatives(wire::Job::new(wire::NO_JOB, "talk.flac", model));
    let warning = |free| {
        let room = Room { kind: memory::Kind::Host, name: "the CPU".into(), free, total: 16 << 30 };
        FitWarning::from(Announcement::of("starter-whisper", &job, room).unwrap())
    };
    let nothing = warning(1 << 20);
    assert_eq!((nothing.model.as_str(), nothing.instead.as_ref()), ("starter-whisper", None));
    // More than the difference: some of what is free stays free.
    assert!(nothing.room.free == 1 << 20 && nothing.missing > nothing.needed - nothing.room.free);
    let instead = warning(nothing.room.free + nothing.missing - 1).instead.unwrap();
    assert_eq!(instead.model, "starter-whisper");
    assert!(instead.precision != nothing.precision && instead.windows >= 1, "{instead:?}");
}
