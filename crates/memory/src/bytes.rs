//! Amounts of memory as people read and write them. One unit throughout: a
//! GB is 2^30 bytes, as in the log lines and in `nvidia-smi`.

/// Bytes in a binary megabyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a binary gigabyte.
pub const GIB: u64 = 1 << 30;

/// `4.2 GB`, `512 MB`, `12 kB`: for sentences, one form per magnitude.
pub fn human(bytes: u64) -> String {
    let value = bytes as f64;
    // Just below a unit rounds up to it: 1023.7 MB reads better as 1.0 GB.
    if value >= GIB as f64 * 0.9995 {
        format!("{:.1} GB", value / GIB as f64)
    } else if value >= MIB as f64 * 0.9995 {
        format!("{:.0} MB", value / MIB as f64)
    } else {
        format!("{:.0} kB", value / 1024.0)
    }
}

/// A size that a user wrote and that can't be read as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an amount of memory; write for example 6GiB, 512MiB or 2.5G")]
pub struct BadSize(pub String);

/// Reads `6GiB`, `2.5G`, `512 mb` or plain bytes, of which fewer than a megabyte
/// are a unit that was forgotten. Every unit is a power of
/// 1024, whether or not an `i` says so: memory is sold and reported that way.
///
/// # Errors
///
/// Fails with [`BadSize`] for anything else, and for 2^60 bytes and more.
pub fn parse(text: &str) -> Result<u64, BadSize> {
    let bad = || BadSize(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| bad())?;
    let unit = unit.trim().to_ascii_lowercase();
    let exponent = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" if unit.is_empty() || unit == "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(bad()),
    };
    let bytes = number * 1024f64.powi(exponent);
    if unit.is_empty() && bytes > 0.0 && bytes < MIB as f64 {
        return Err(bad());
    }
    // 2^60 is far above any machine and far below what would overflow later.
    if bytes.is_finite() && bytes < (1u64 << 60) as f64 { Ok(bytes as u64) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_users_write_them() {
        let cases = [
            ("6GiB", Some(6 * GIB)),
            ("6g", Some(6 * GIB)),
            ("2.5 GB", Some(2 * GIB + GIB / 2)),
            ("512MiB", Some(512 * MIB)),
            (" 700 mb ", Some(700 * MIB)),
            ("64k", Some(64 * 1024)),
            ("1048576", Some(MIB)),
            ("12B", Some(12)),
            ("", None),
            ("GiB", None),
            ("6 apples", None),
            ("-1G", None),
            ("1.2.3G", None),
            ("9999999999T", None),
            ("5i", None),
            ("5bb", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_unit_that_fits() {
        for (bytes, expected) in [
            (0, "0 kB"),
            (1536, "2 kB"),
            (38 * MIB, "38 MB"),
            (GIB - 1, "1.0 GB"),
            (GIB + GIB / 5, "1.2 GB"),
            (24 * GIB, "24.0 GB"),
        ] {
            assert_eq!(human(bytes), expected);
        }
    }
}
