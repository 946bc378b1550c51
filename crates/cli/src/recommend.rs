use std::io::{self, Write};

use advisor::recommend::{Advice, Choice, Recommendation, UnusedCard, recommend};
use clap::Args;
use config::Preferences;
use config::preferences::DEVICE;
use memory::bytes::human;
use wire::DeviceChoice;

use crate::ended::Ended;
use crate::memory_args::{Limits, checked};
use crate::outputs::print;
use crate::values::{self, Language};

/// Recommend a model for this computer, with the reason
///
/// Compares the predicted memory of each model with what is free now, on each graphics card and on the CPU.
/// Includes the memory of the speaker models unless --skip-speakers is given. Nothing is loaded.
#[derive(Debug, Args)]
pub struct Recommend {
    /// Spoken language, as a two-letter code (en, de, ...); auto for any
    #[arg(long, short, value_parser = values::language, default_value = "auto", value_name = "CODE")]
    pub language: Language,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// The device to recommend for: auto, cpu, cuda or cuda:N [default: auto]
    #[arg(long, value_parser = checked(DEVICE.0), help_heading = "Machine")]
    pub device: Option<String>,

    #[command(flatten)]
    pub limits: Limits,

    /// Leave out the memory of the speaker models
    #[arg(long, help_heading = "Memory")]
    pub skip_speakers: bool,
}

pub async fn run(args: &Recommend) -> Ended {
    let mut flags = args.limits.flags();
    flags.extend(args.device.clone().map(|device| (DEVICE.0, device)));
    let mut preferences = match Preferences::of_this_user(&flags) {
        Ok(preferences) => preferences,
        Err(failure) => return Ended::Usage(failure.to_string()),
    };
    preferences.memory.skip_speakers |= args.skip_speakers;
    if preferences.engine.device != DeviceChoice::Cpu {
        supervisor::cards::ask().await;
    }
    let recommendation = match recommend(&preferences, args.language.0.as_deref(), true) {
        Ok(recommendation) => recommendation,
        Err(failure) => return failure.into(),
    };
    let printed = print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &recommendation)?;
            return writeln!(out);
        }
        write(&recommendation, out)
    });
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}

fn write(recommendation: &Recommendation, out: &mut dyn Write) -> io::Result<()> {
    for advice in &recommendation.devices {
        let device = &advice.device;
        let (free, total) = (human(device.free), human(device.total));
        writeln!(out, "{}: {free} free of {total}, {} in use", device.name, human(advice.in_use))?;
        rows(advice).iter().try_for_each(|row| writeln!(out, "{row}"))?;
        writeln!(out)?;
    }
    // The one that explains why the CPU computes is part of the reason.
    let said = |card: &&UnusedCard| !recommendation.reason.contains(&card.reason);
    for card in recommendation.unused.iter().filter(said) {
        writeln!(out, "{} {}", card.name, card.reason)?;
    }
    writeln!(out, "{}", recommendation.reason)
}

/// A table, the choice marked.
fn rows(advice: &Advice) -> Vec<String> {
    let width = advice.choices.iter().map(|choice| choice.fit.model.chars().count()).max().unwrap_or(0);
    let row = |(number, choice): (usize, &Choice)| {
        let mark = if advice.recommended == Some(number) { '*' } else { ' ' };
        let disk = choice.disk.map_or_else(|| "?".into(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
        let languages = choice.languages.as_deref().unwrap_or("?");
        let speed = choice.speed.map(|speed| format!(", {speed:.1} times real time")).unwrap_or_default();
        let installed = if choice.installed { ", installed" } else { "" };
        format!(
            "{mark} {:width$}  {:5} needs {:>7}  {:12}  {disk:>8} on disk, languages {languages}{speed}{installed}",
            choice.fit.model,
            choice.fit.precision,
            human(choice.fit.check.peak),
            choice.fit.word(),
        )
    };
    advice.choices.iter().enumerate().map(row).collect()
}
