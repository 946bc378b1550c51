//! The settings of the user's config file.

use api::preferences::{ConfigFile, environment, variables};
use api::preferences_edit;

use crate::contract::{Failure, Preference};

pub fn list() -> Result<Vec<Preference>, Failure> {
    let stand = preferences_edit::stand(&file()?, &environment())?;
    Ok(stand.into_iter().map(Into::into).collect())
}

/// By its name in the contract.
pub fn change(key: &str, value: Option<&str>) -> Result<(), Failure> {
    let variable = variables().map(|(name, _)| name).find(|name| api::memory::settings::key(name) == key);
    Ok(preferences_edit::change(&file()?, variable.unwrap_or(key), value)?)
}

fn file() -> Result<ConfigFile, wire::Failure> {
    ConfigFile::of_this_user().ok_or_else(|| {
        let message = "This system has no folder for the settings of its users.";
        wire::Failure::new(wire::ErrorCode::BadSettings, message).remedy("Set STENO_CONFIG to a file.")
    })
}
