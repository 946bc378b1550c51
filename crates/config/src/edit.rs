//! Changes of the user's config file by a program: one key at a time, and the
//! rest of the file, comments included, as it was.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table};
use transcript::save::{Existing, write_file};
use wire::{ErrorCode, Failure};

use crate::preferences::{ConfigFile, Preferences, Values, environment, place_in_file, variables};

/// One setting as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingStatus {
    /// The variable.
    pub name: &'static str,
    /// What it takes, in a few words.
    pub takes: &'static str,
    /// In the user's file.
    pub in_file: Option<String>,
    /// In the environment, which goes before the file.
    pub in_environment: Option<String>,
}

/// Every setting of this user. Errors as in [`setting_statuses`].
///
/// # Errors
/// As [`setting_statuses`], and where this system has no folder for settings.
pub fn user_settings() -> Result<Vec<SettingStatus>, Failure> {
    setting_statuses(&user_config_file()?, &environment())
}

/// Changes one of this user's, named by its variable or by its key in the file.
/// Errors as in [`change`].
///
/// # Errors
/// As [`change`], and where the system has no folder for settings.
pub fn change_user_setting(name: &str, value: Option<&str>) -> Result<(), Failure> {
    let variable = variables().map(|(name, _)| name).find(|variable| memory::settings::key(variable) == name);
    change(&user_config_file()?, variable.unwrap_or(name), value)
}

fn user_config_file() -> Result<ConfigFile, Failure> {
    ConfigFile::of_this_user().ok_or_else(|| {
        let message = "There is no folder for the settings of this user.";
        Failure::new(ErrorCode::BadSettings, message).remedy("Set STENO_CONFIG to a file.")
    })
}

/// Every setting, in the order of the table.
///
/// # Errors
/// `BadSettings`, naming the file, for one that can't be read.
pub fn setting_statuses(file: &ConfigFile, environment: &Values) -> Result<Vec<SettingStatus>, Failure> {
    let in_file = file.read()?;
    let of = |values: &Values, wanted: &str| {
        values.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
    };
    Ok(variables()
        .map(|(name, takes)| SettingStatus {
            name,
            takes,
            in_file: of(&in_file, name),
            in_environment: of(environment, name),
        })
        .collect())
}

/// Writes one setting to the file, or takes it out; makes the file where there
/// is none. A file that can't be read is left alone.
///
/// # Errors
/// `BadSettings` for a name or value that is not taken, and for a file that is
/// wrong already; `OutputUnwritable` where it can't be written.
pub fn change(file: &ConfigFile, name: &str, value: Option<&str>) -> Result<(), Failure> {
    let (name, _) = variables().find(|(known, _)| *known == name).ok_or_else(|| {
        Failure::new(ErrorCode::BadSettings, format!("There is no setting \"{name}\"."))
            .remedy("Choose one of the listed settings.")
    })?;
    if let Some(value) = value {
        Preferences::check(name, value).map_err(|takes| {
            Failure::new(ErrorCode::BadSettings, format!("\"{value}\" can't be used: {takes}."))
                .remedy("Enter another value, or none.")
        })?;
    }
    // So that a mistake in the file is not overwritten.
    file.read()?;
    let text = std::fs::read_to_string(&file.path).unwrap_or_default();
    let mut document: DocumentMut = text.parse().map_err(|_| unwritable(&file.path, "it is not TOML"))?;
    let (table_name, key) = place_in_file(name);
    let table = document.entry(table_name).or_insert(Item::Table(Table::new()));
    let table = table
        .as_table_like_mut()
        .ok_or_else(|| unwritable(&file.path, format!("[{table_name}] is not a table")))?;
    match value {
        Some(value) => {
            table.insert(&key, typed(value.trim()));
        }
        None => {
            table.remove(&key);
        }
    }
    if let Some(folder) = file.path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(&file.path, error))?;
    }
    let bytes = document.to_string().into_bytes();
    write_file(&file.path, Existing::Replace, |out| out.write_all(&bytes))
        .map_err(|error| unwritable(&file.path, error.message()))
}

/// As a user would write it: a number and a switch without quotation marks.
fn typed(value: &str) -> Item {
    match (value.parse::<i64>(), value.parse::<bool>()) {
        (Ok(number), _) => toml_edit::value(number),
        (_, Ok(switch)) => toml_edit::value(switch),
        _ => toml_edit::value(value),
    }
}

fn unwritable(path: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::OutputUnwritable, format!("The config file can't be changed: {problem}."))
        .file(path)
        .remedy("Change its permissions, or correct it by hand.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, text: &str) -> ConfigFile {
        let path = folder.join("steno/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        ConfigFile { path, named: false }
    }

    #[test]
    fn one_key_changes_and_the_rest_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let before = "# mine\n[memory]\nbatch_size = 6 # not more\nkeep = [\"model\"]\n";
        // (variable, value) -> the file
        for (name, value, expected) in [
            ("STENO_TRIM_EVERY", Some("3"), format!("{before}trim_every = 3\n")),
            ("STENO_FAST_PATH", Some("false"), format!("{before}fast_path = false\n")),
            ("STENO_BATCH_SIZE", None, "# mine\n[memory]\nkeep = [\"model\"]\n".to_owned()),
            ("STENO_KEEP", Some("model,gpu"), before.replace("[\"model\"]", "\"model,gpu\"")),
        ] {
            let file = file(folder.path(), before);
            change(&file, name, value).unwrap();
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), expected, "{name}");
            let stands = setting_statuses(&file, &Vec::new()).unwrap();
            let found = stands.into_iter().find(|one| one.name == name).unwrap().in_file;
            assert_eq!(found.as_deref(), value);
        }
    }

    #[test]
    fn the_first_setting_makes_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = ConfigFile { path: folder.path().join("new/steno/config.toml"), named: false };
        change(&file, "STENO_MEMORY_LIMIT", Some(" 6GiB ")).unwrap();
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), "[memory]\nmemory_limit = \"6GiB\"\n");
        let preferences = Preferences::of(Some(&file), &Vec::new(), &Vec::new()).unwrap();
        assert_eq!(preferences.memory.memory_limit, Some(6 << 30));
    }

    #[test]
    fn what_is_wrong_is_refused_and_the_file_kept() {
        let folder = tempfile::tempdir().unwrap();
        for (text, name, value, part) in [
            ("", "STENO_BATCH_SIZE", "none", "\"none\" can't be used: it takes a number from 1"),
            ("", "STENO_COLOUR", "red", "There is no setting \"STENO_COLOUR\""),
            ("[memory]\nbatch_size =", "STENO_TRIM_EVERY", "3", "The config file is not TOML in line 2"),
            ("[other]\n", "STENO_TRIM_EVERY", "3", "a table [other], which is not known"),
        ] {
            let file = file(folder.path(), text);
            let failure = change(&file, name, Some(value)).unwrap_err();
            assert_eq!(failure.code, ErrorCode::BadSettings);
            assert!(failure.to_string().contains(part), "{failure}");
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), text);
        }
    }

    #[test]
    fn the_environment_is_told_apart_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), "[memory]\nprofile = \"safe\"\n");
        let environment = vec![("STENO_MEMORY_PROFILE", "fast".to_owned())];
        let first = setting_statuses(&file, &environment).unwrap().remove(0);
        assert_eq!(first.name, "STENO_MEMORY_PROFILE");
        assert_eq!((first.in_file.as_deref(), first.in_environment.as_deref()), (Some("safe"), Some("fast")));
    }
}
