//! Whether there may be other models on disk than those that the window knows: the command
//! line, another window or a file manager may have brought or removed some.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use advisor::models::Places;

/// When the folders in which models are looked for last got or lost an entry. A model comes
/// into the store by one rename, so that this is enough, and it costs no reading.
#[derive(Debug, Default, PartialEq)]
pub struct ModelFolders(Vec<(PathBuf, Option<SystemTime>)>);

impl ModelFolders {
    /// As they are now; a folder that is not there has no time.
    pub fn now(places: &Places) -> Self {
        let modified = |folder: &Path| std::fs::metadata(folder).and_then(|it| it.modified()).ok();
        Self(places.folders().into_iter().map(|folder| (folder.clone(), modified(&folder))).collect())
    }
}
