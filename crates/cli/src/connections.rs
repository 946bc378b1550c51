use clap::Args;

use crate::ended::Ended;
use crate::outputs::print;

/// Show every connection that Steno ever made: when, to which host, how many bytes, why
#[derive(Debug, Args)]
pub struct Connections {
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Connections) -> Ended {
    let read =
        advisor::store::connections_log().map_or_else(|| Ok(Vec::new()), |log| hub::Connections::read(&log));
    let connections = match read {
        Ok(connections) => connections,
        Err(error) => return advisor::store::failure(error).into(),
    };
    let printed = print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &connections)?;
            return writeln!(out);
        }
        if connections.is_empty() {
            return writeln!(out, "There was none.");
        }
        connections.iter().try_for_each(|it| {
            let bytes = it.bytes.map_or_else(|| "?".into(), |bytes| bytes.to_string());
            writeln!(out, "{}  {}  {bytes} bytes  {}", utc(it.at), it.host, it.why)
        })
    });
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}

/// `2026-11-21 19:05:43Z`, by Howard Hinnant's "days to civil".
fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400, "2000-02-29 00:00:00Z"),
            (1_795_287_943, "2026-11-21 19:05:43Z"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }
}
