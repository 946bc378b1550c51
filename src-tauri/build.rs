//! Lists the commands that the page may be granted; capabilities/main.json grants them.

/// Kept equal to the handler in src/main.rs by a test in src/tests.rs.
const COMMANDS: &[&str] = &include!("src/commands.in");

fn main() {
    // The page is embedded when this crate is compiled.
    println!("cargo:rerun-if-changed=../ui/dist");
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    if let Err(error) = tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest)) {
        println!("cargo:warning={error:#}");
        std::process::exit(1);
    }
}
