//! Flags about memory. Each stands for a variable of the same name; `config` checks both
//! and words the errors.

use clap::Args;
use clap::builder::PossibleValuesParser;
use config::Preferences;
use config::preferences::{PRECISION, Values};
use memory::Precision;
use memory::settings::PROFILE;

/// Follows the help of the command that has all of these flags.
pub const SETTINGS: &str = "\
Memory settings:
  Every option under \"Memory\", and --threads, --priority and --device, can also be set in the environment (--batch-size as STENO_BATCH_SIZE) \
and in the settings file: steno/config.toml in the user's configuration folder (Linux: ~/.config), or the file that \
STENO_CONFIG names:
    [memory]
    profile = \"safe\"
    memory_limit = \"6GiB\"
    keep = [\"model\", \"speakers\"]
    [engine]
    threads = 4
    priority = \"low\"
  A flag overrides the environment, the environment the file, the file the profile. \
STENO_FAST_PATH=false is the same as --keep speakers.";

/// All settings of memory, for commands that transcribe.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct Memory {
    #[command(flatten)]
    pub batches: Batches,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub speakers: SpeakerBatches,

    /// Never identify speakers, even if another option asks for it
    #[arg(long)]
    pub skip_speakers: bool,

    #[command(flatten)]
    pub trim: Trim,

    /// Recordings after which the engine is restarted; 0: never [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = checked("STENO_RENEW_AFTER"))]
    pub renew_after: Option<String>,

    /// What must not change when memory runs out, separated by commas; gpu: never continue on the CPU
    #[arg(long, value_delimiter = ',', value_name = "WHAT", ignore_case = true,
        value_parser = PossibleValuesParser::new(["model", "precision", "gpu", "speakers"]))]
    pub keep: Vec<String>,
}

/// Those that act where a finished text is translated.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct TranslationMemory {
    #[command(flatten)]
    pub batches: Batches,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub trim: Trim,

    /// What must not change when memory runs out, separated by commas; gpu: never continue on the CPU
    #[arg(long, value_delimiter = ',', value_name = "WHAT", ignore_case = true,
        value_parser = PossibleValuesParser::new(["model", "precision", "gpu"]))]
    pub keep: Vec<String>,
}

/// Those that act where speakers are found in a finished text.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct SpeakerMemory {
    #[command(flatten)]
    pub profile: ProfileOption,
    #[command(flatten)]
    pub amounts: Amounts,
    #[command(flatten)]
    pub speakers: SpeakerBatches,
    #[command(flatten)]
    pub trim: Trim,

    /// What must not change when memory runs out; gpu: never continue on the CPU
    #[arg(long, value_name = "WHAT", ignore_case = true, value_parser = PossibleValuesParser::new(["gpu"]))]
    pub keep: Option<String>,
}

/// Several settings at once.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct ProfileOption {
    /// Sets several of the options below: safe for long unattended runs, fast for a few files
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(["safe", "fast"]))]
    pub memory_profile: Option<String>,
}

/// How much is decoded together.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct Batches {
    #[command(flatten)]
    pub profile: ProfileOption,

    /// Maximum number of 30-second windows decoded together [default: as many as fit, at most 4 on the CPU and 16 on a card]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = checked("STENO_BATCH_SIZE"))]
    pub batch_size: Option<String>,

    /// Share of the free memory that a batch may use, such as 0.125 [default: no limit]
    #[arg(long, value_name = "PART", allow_negative_numbers = true,
        value_parser = checked("STENO_MEMORY_FRACTION"))]
    pub memory_fraction: Option<String>,
}

/// What a model may take, and how its weights are held.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct Limits {
    #[command(flatten)]
    pub amounts: Amounts,

    /// Precision of the weights: q8_0 takes half the memory of f16 and changes a few words [default: as
    /// stored]
    #[arg(long, value_name = "PRECISION", ignore_case = true,
        value_parser = PossibleValuesParser::new(Precision::ALL.map(Precision::as_str)))]
    pub precision: Option<String>,
}

/// What may be taken.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct Amounts {
    /// Memory limit on the computing device, such as 6GiB [default: what is free]
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true,
        value_parser = checked("STENO_MEMORY_LIMIT"))]
    pub memory_limit: Option<String>,

    /// Limit on main memory, such as 4GiB [default: what is free]
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true,
        value_parser = checked("STENO_RAM_LIMIT"))]
    pub ram_limit: Option<String>,
}

/// How much is searched for speakers together.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct SpeakerBatches {
    /// Maximum number of 10-second windows searched for speakers together [default: as many as fit]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = checked("STENO_SPEAKER_BATCH_SIZE"))]
    pub speaker_batch_size: Option<String>,
}

/// How often memory is given back within a stage.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub struct Trim {
    /// Batches between two checks for fragmented memory; 0: never [default: 5]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = checked("STENO_TRIM_EVERY"))]
    pub trim_every: Option<String>,
}

impl Memory {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        let Self { batches, limits, speakers, skip_speakers, trim, renew_after, keep } = self;
        let skip_speakers = skip_speakers.then(|| "true".to_owned());
        let own = given([
            ("STENO_SKIP_SPEAKERS", &skip_speakers),
            ("STENO_RENEW_AFTER", renew_after),
            ("STENO_KEEP", &list(keep)),
        ]);
        [batches.flags(), limits.flags(), speakers.flags(), trim.flags(), own].concat()
    }
}

impl TranslationMemory {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        let Self { batches, limits, trim, keep } = self;
        [batches.flags(), limits.flags(), trim.flags(), given([("STENO_KEEP", &list(keep))])].concat()
    }
}

impl SpeakerMemory {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        let Self { profile, amounts, speakers, trim, keep } = self;
        let keep = given([("STENO_KEEP", keep)]);
        [profile.flags(), amounts.flags(), speakers.flags(), trim.flags(), keep].concat()
    }
}

impl ProfileOption {
    fn flags(&self) -> Values {
        given([(PROFILE.0, &self.memory_profile)])
    }
}

impl Batches {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        let Self { profile, batch_size, memory_fraction } = self;
        let own = given([("STENO_BATCH_SIZE", batch_size), ("STENO_MEMORY_FRACTION", memory_fraction)]);
        [profile.flags(), own].concat()
    }
}

impl Limits {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        let Self { amounts, precision } = self;
        [amounts.flags(), given([(PRECISION.0, precision)])].concat()
    }
}

impl Amounts {
    /// What was given, by the names of the variables.
    pub fn flags(&self) -> Values {
        given([("STENO_MEMORY_LIMIT", &self.memory_limit), ("STENO_RAM_LIMIT", &self.ram_limit)])
    }
}

impl SpeakerBatches {
    fn flags(&self) -> Values {
        given([("STENO_SPEAKER_BATCH_SIZE", &self.speaker_batch_size)])
    }
}

impl Trim {
    fn flags(&self) -> Values {
        given([("STENO_TRIM_EVERY", &self.trim_every)])
    }
}

/// As a variable has it.
fn list(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| values.join(","))
}

fn given<const N: usize>(values: [(&'static str, &Option<String>); N]) -> Values {
    values.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
}

pub fn checked(
    name: &'static str,
) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |value| Preferences::check(name, value).map(|()| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use memory::settings::{VARIABLES, key};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        memory: Memory,
    }

    fn read(arguments: &[&str]) -> Result<Preferences, String> {
        let line =
            Line::try_parse_from([&["steno"], arguments].concat()).map_err(|error| error.to_string())?;
        let chosen = Preferences::of(None, &Values::new(), &line.memory.flags());
        chosen.map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_setting_has_a_flag() {
        let values = [("KEEP", "model,gpu"), ("FRACTION", "0.5"), ("LIMIT", "6GiB"), ("", "3")];
        for (name, _) in VARIABLES {
            let flag = config::preferences::flag(name);
            let (_, value) = values.iter().find(|(part, _)| name.contains(part)).unwrap();
            let (arguments, written) = match name {
                // Said with --keep speakers.
                "STENO_FAST_PATH" => continue,
                // Not of a transcription: environment and config file alone say it.
                "STENO_EMBEDDING_PROFILE" => continue,
                "STENO_SKIP_SPEAKERS" => (vec![flag.as_str()], "true"),
                _ => (vec![flag.as_str(), value], *value),
            };
            let mut expected = Preferences::default();
            expected.memory.set(name, written).unwrap();
            assert_ne!(expected, Preferences::default(), "{}", key(name));
            assert_eq!(read(&arguments), Ok(expected), "{arguments:?}");
        }
        assert_eq!(read(&["--precision", "Q8_0"]).unwrap().precision, Some(Precision::Q8_0));
        assert_eq!(
            read(&["--memory-profile", "safe", "--batch-size", "9"]).unwrap().memory.batch_size,
            Some(9)
        );
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_would_be_right() {
        for (arguments, parts) in [
            (["--batch-size", "0"], ["'--batch-size <N>'", "it takes a number from 1"]),
            (["--memory-limit", "6 apples"], ["'--memory-limit <AMOUNT>'", "an amount such as 6GiB"]),
            (["--memory-fraction", "2"], ["--memory-fraction", "above 0 and up to 1"]),
            (["--trim-every", "-1"], ["--trim-every", "-1"]),
            (["--keep", "cpu"], ["--keep", "[possible values: model, precision, gpu, speakers]"]),
            (["--precision", "q3"], ["--precision", "q8_0"]),
            (["--memory-profile", "quick"], ["--memory-profile", "[possible values: safe, fast]"]),
        ] {
            let error = read(&arguments).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{arguments:?}: {error}");
        }
    }
}
