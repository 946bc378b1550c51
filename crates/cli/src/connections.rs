use clap::Args;

use crate::ended::Ended;
use crate::outputs::print;

/// Show every network connection that Steno made: time, host, bytes, purpose
#[derive(Debug, Args)]
pub struct Connections {
    /// Print JSON
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
            return writeln!(out, "No network connections.");
        }
        connections.iter().try_for_each(|it| {
            let bytes = it.bytes.map_or_else(|| "?".into(), |bytes| bytes.to_string());
            writeln!(out, "{}  {}  {bytes} bytes  {}", utc(it.at), it.host, it.why)
        })
    });
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}

/// Seconds since 1970 as `2026-11-21 19:05:43Z`; the number itself where no date has it.
fn utc(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map_or_else(|| seconds.to_string(), |time| time.strftime("%F %TZ").to_string())
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
            (u64::MAX, "18446744073709551615"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }
}
