//! Compiles the kernels of `kernels/` for NVIDIA cards, as the build script of candle-kernels compiles candle's.

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    #[cfg(feature = "cuda")]
    if let Err(error) = kernels() {
        println!("cargo::error=The kernels for NVIDIA cards were not compiled: {error}");
    }
}

#[cfg(feature = "cuda")]
fn kernels() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("kernels.rs");
    let compiled =
        cudaforge::KernelBuilder::new().source_dir("kernels").arg("-std=c++17").arg("-O3").build_ptx()?;
    compiled.write(&out)?;
    Ok(())
}
