//! `random-models SIZE FOLDER [--precision f32|f16|bf16] [--shards N] [--seed N] [--activation NAME]`

use std::path::PathBuf;
use std::process::ExitCode;

use random_models::{
    CANARY_SIZES, CanarySize, Options, PARAKEET_SIZES, ParakeetSize, SIZES, Size, WeightType,
};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("random-models: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let mut options = Options::default();
    let mut rest = Vec::new();
    while let Some(argument) = arguments.next() {
        if !argument.starts_with("--") {
            rest.push(argument);
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{argument} needs a number, not {value}"));
        match argument.as_str() {
            "--precision" => {
                options.precision = match value.as_str() {
                    "f32" => WeightType::F32,
                    "f16" => WeightType::F16,
                    "bf16" => WeightType::BF16,
                    _ => return Err(format!("no precision {value}; there are f32, f16 and bf16")),
                }
            }
            "--shards" => options.shards = number()? as usize,
            "--seed" => options.seed = number()?,
            "--activation" => options.activation = value,
            _ => return Err(format!("no option {argument}")),
        }
    }
    let [size, folder] = rest.as_slice() else {
        return Err("usage: random-models SIZE FOLDER [--precision f32|f16|bf16] [--shards N] [--seed N] [--activation NAME]".into());
    };
    let known = || {
        let of_others =
            PARAKEET_SIZES.iter().map(|size| size.name).chain(CANARY_SIZES.iter().map(|size| size.name));
        SIZES.iter().map(|size| size.name).chain(of_others).collect::<Vec<_>>().join(", ")
    };
    let folder = PathBuf::from(folder);
    if random_models::is_complete(&folder) {
        return Ok(format!("{} is already there", folder.display()));
    }
    let written = if let Some(size) = Size::named(size) {
        random_models::write(&folder, size, &options)
    } else if let Some(size) = ParakeetSize::named(size) {
        random_models::write_parakeet_model(&folder, size, &options)
    } else if let Some(size) = CanarySize::named(size) {
        random_models::write_canary_model(&folder, size, &options)
    } else {
        return Err(format!("no size {size}; there are {}", known()));
    };
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(format!("{}: {size} with random weights", folder.display()))
}
