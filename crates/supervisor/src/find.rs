//! Where the engine is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wire::{ErrorCode, Failure};

use crate::platform;

const CPU_ENGINE: &str = "steno-engine";
const CUDA_ENGINE: &str = "steno-engine-cuda";
const PLAYER: &str = "steno-player";

/// Beside the CUDA engine: lines `LD_LIBRARY_PATH=FOLDER:FOLDER`, relative
/// ones counted from the engine's folder, and `#` comments.
const CUDA_ENVIRONMENT: &str = "steno-engine-cuda.env";

/// Beside the CUDA engine: a folder of libraries that it needs.
const CUDA_LIBRARIES: &str = "cuda-libs";

/// Where distributions' packages put it, wherever the host itself lies.
const PACKAGE_FOLDER: &str = "/usr/lib/steno";

/// The engine that [`Engine::start`](crate::Engine::start) would try first:
/// `STENO_ENGINE`, else beside this program's executable, else in the
/// package's library folder; the CUDA engine before the CPU's where there is
/// a driver for it and `STENO_BACKEND` is not `cpu`.
///
/// Fails with `EngineNotFound`, naming the paths that were tried.
///
/// # Errors
/// `EngineNotFound`, naming the paths that were tried.
pub fn find_engine() -> Result<PathBuf, Failure> {
    let found = engines(&SearchContext::of_this_process(false))?;
    found.candidates.into_iter().next().map(|candidate| candidate.program).ok_or_else(|| not_found(&[]))
}

/// The folder in which engines lie that the user had downloaded: a store as that of models.
pub fn downloaded_engines() -> Option<PathBuf> {
    Some(config::folders::data()?.join("steno/engines"))
}

/// What the search depends on.
#[derive(Debug, Clone, Default)]
pub struct SearchContext {
    /// `STENO_ENGINE`.
    pub chosen: Option<OsString>,
    /// The host's executable.
    pub executable: Option<PathBuf>,
    /// Folders to look in after those that follow from the executable.
    pub package_folders: Vec<PathBuf>,
    /// The folder of the CUDA engine that the user had downloaded; looked in last.
    pub downloaded: Option<PathBuf>,
    /// Never the CUDA engine.
    pub cpu_only: bool,
    /// Whether the driver can be loaded.
    pub has_cuda_driver: bool,
    /// `LD_LIBRARY_PATH`.
    pub library_path: Option<OsString>,
}

impl SearchContext {
    /// As this process's environment and executable say.
    pub fn of_this_process(cpu_only: bool) -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let cpu_only = cpu_only || variable("STENO_BACKEND").is_some_and(|value| value == "cpu");
        Self {
            chosen: variable("STENO_ENGINE"),
            executable: std::env::current_exe().ok(),
            package_folders: if cfg!(unix) { vec![PACKAGE_FOLDER.into()] } else { vec![] },
            downloaded: downloaded_engines().map(|store| store.join("cuda")),
            cpu_only,
            has_cuda_driver: !cpu_only && platform::has_cuda_driver(),
            library_path: variable("LD_LIBRARY_PATH"),
        }
    }

    /// Where an engine of this name may lie, in the order in which they are looked at.
    fn paths(&self, engine: &str) -> Vec<PathBuf> {
        let file = format!("{engine}{}", std::env::consts::EXE_SUFFIX);
        let downloaded = self.downloaded.iter().filter(|_| engine == CUDA_ENGINE).cloned();
        self.folders().into_iter().chain(downloaded).map(|folder| folder.join(&file)).collect()
    }

    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        if let Some(beside) = self.executable.as_deref().and_then(Path::parent) {
            folders.push(beside.to_path_buf());
            // `/usr/local/bin/steno` belongs to `/usr/local/lib/steno`.
            if let Some(prefix) = beside.parent() {
                folders.push(prefix.join("lib/steno"));
            }
        }
        for folder in &self.package_folders {
            if !folders.contains(folder) {
                folders.push(folder.clone());
            }
        }
        folders
    }
}

/// An engine that may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineProgram {
    /// Its executable.
    pub program: PathBuf,
    /// `LD_LIBRARY_PATH` for this process alone; `None`: inherited.
    pub library_path: Option<OsString>,
}

/// Engines in the order in which to try them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnginePrograms {
    /// The best first.
    pub candidates: Vec<EngineProgram>,
    /// Why an installed CUDA engine is not among them.
    pub note: Option<String>,
}

impl EnginePrograms {
    /// This engine alone.
    pub fn only(program: PathBuf) -> Self {
        Self { candidates: vec![EngineProgram { program, library_path: None }], note: None }
    }
}

impl EngineProgram {
    /// Whether a driver's library lies on a path that only this engine will see.
    pub(crate) fn has_driver(&self) -> bool {
        let mut folders = self.library_path.iter().flat_map(std::env::split_paths);
        folders.any(|folder| folder.join("libcuda.so.1").is_file())
    }
}

/// The CUDA engine, whether or not there is a driver for it.
pub(crate) fn cuda_engine(around: &SearchContext) -> Option<EngineProgram> {
    let program = match &around.chosen {
        Some(chosen) => Some(PathBuf::from(chosen)).filter(|program| is_cuda(program) && program.is_file()),
        None => around.paths(CUDA_ENGINE).into_iter().find(|path| path.is_file()),
    }?;
    Some(EngineProgram { library_path: library_path(&program, around), program })
}

/// Looks for engines; the list is not empty.
///
/// # Errors
/// `EngineNotFound`, naming the paths that were tried.
pub fn engines(around: &SearchContext) -> Result<EnginePrograms, Failure> {
    if let Some(chosen) = &around.chosen {
        let program = PathBuf::from(chosen);
        if !program.is_file() {
            return Err(Failure::new(
                ErrorCode::EngineNotFound,
                "STENO_ENGINE is set to this file, but there is no such file.",
            )
            .file(program)
            .remedy("Set it to the path of a `steno-engine`, or unset it."));
        }
        let library_path = is_cuda(&program).then(|| library_path(&program, around)).flatten();
        return Ok(EnginePrograms { candidates: vec![EngineProgram { program, library_path }], note: None });
    }

    let mut tried = Vec::new();
    let mut first = |name: &str| {
        let paths = around.paths(name);
        let found = paths.iter().find(|path| path.is_file()).cloned();
        tried.extend(paths);
        found
    };
    let mut found = EnginePrograms { candidates: Vec::new(), note: None };
    if !around.cpu_only
        && let Some(program) = first(CUDA_ENGINE)
    {
        let engine = EngineProgram { library_path: library_path(&program, around), program };
        if around.has_cuda_driver || engine.has_driver() {
            found.candidates.push(engine);
        } else {
            found.note = Some(
                "The CPU computes: the CUDA engine is installed, but the library of the NVIDIA driver \
                 (libcuda.so.1) can't be loaded. Install the driver if this machine has an NVIDIA GPU."
                    .into(),
            );
        }
    }
    if let Some(program) = first(CPU_ENGINE) {
        found.candidates.push(EngineProgram { program, library_path: None });
    }
    if found.candidates.is_empty() { Err(not_found(&tried)) } else { Ok(found) }
}

/// The program that decodes for listening: `STENO_PLAYER`, else where the
/// engine is looked for.
///
/// Fails with `PlayerFailed`, naming the paths that were tried.
///
/// # Errors
/// `PlayerFailed`, naming the paths that were tried.
pub fn find_player() -> Result<PathBuf, Failure> {
    let remedy = "Install Steno again, or set STENO_PLAYER to the path of a `steno-player`.";
    if let Some(chosen) = std::env::var_os("STENO_PLAYER").filter(|value| !value.is_empty()) {
        let program = PathBuf::from(chosen);
        if program.is_file() {
            return Ok(program);
        }
        let text = "STENO_PLAYER is set to this file, but there is no such file.";
        return Err(Failure::new(ErrorCode::PlayerFailed, text).file(program).remedy(remedy));
    }
    let file = format!("{PLAYER}{}", std::env::consts::EXE_SUFFIX);
    let folders = SearchContext::of_this_process(true).folders();
    let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.join(&file)).collect();
    if let Some(found) = paths.iter().find(|path| path.is_file()) {
        return Ok(found.clone());
    }
    let tried: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let text = format!("The player `{PLAYER}` was not found. Tried: {}.", tried.join(", "));
    Err(Failure::new(ErrorCode::PlayerFailed, text).remedy(remedy))
}

pub(crate) fn is_cuda(program: &Path) -> bool {
    program.file_stem().is_some_and(|name| name == CUDA_ENGINE)
}

/// The folders named beside the CUDA engine, before those of the host.
fn library_path(program: &Path, around: &SearchContext) -> Option<OsString> {
    let beside = program.parent()?;
    let mut folders = Vec::new();
    let text = std::fs::read_to_string(beside.join(CUDA_ENVIRONMENT)).unwrap_or_default();
    for value in text.lines().filter_map(|line| line.trim().strip_prefix("LD_LIBRARY_PATH=")) {
        // `join` leaves absolute paths as they are.
        folders.extend(std::env::split_paths(value.trim()).map(|folder| beside.join(folder)));
    }
    let libraries = beside.join(CUDA_LIBRARIES);
    if libraries.is_dir() {
        folders.push(libraries);
    }
    if folders.is_empty() {
        return None;
    }
    folders.extend(around.library_path.iter().flat_map(std::env::split_paths));
    std::env::join_paths(folders).ok()
}

fn not_found(tried: &[PathBuf]) -> Failure {
    let tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
    Failure::new(
        ErrorCode::EngineNotFound,
        format!("The engine `steno-engine` was not found. Tried: {}.", tried.join(", ")),
    )
    .remedy("Install Steno again, or set STENO_ENGINE to the path of the engine.")
}
