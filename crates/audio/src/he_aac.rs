//! Recognises HE-AAC: an AAC-LC stream of half the sample rate with additional data
//! for the upper half of the spectrum (SBR) and the second channel (PS). A
//! decoder of AAC-LC alone plays only the lower half, or at the wrong rate.

/// Whether an AudioSpecificConfig (ISO 14496-3, 1.6.2.1) signals SBR or PS, by its
/// object type or by the backward compatible extension after it.
pub(crate) fn announced(config: &[u8]) -> bool {
    const SBR: u32 = 5;
    const PS: u32 = 29;
    const SYNC_EXTENSION: u32 = 0x2b7;
    let Some(object_type) = object_type(config, &mut 0) else { return false };
    if object_type == SBR || object_type == PS {
        return true;
    }
    // The extension follows a part of variable length: its sync word of eleven
    // bits is searched for from the third byte on. The extended object type and
    // a flag follow it.
    (16..config.len() * 8).any(|start| {
        let mut at = start;
        bits(config, &mut at, 11) == Some(SYNC_EXTENSION)
            && bits(config, &mut at, 5) == Some(SBR)
            && bits(config, &mut at, 1) == Some(1)
    })
}

/// Whether most access units of a stream contain SBR without signalling it. A unit
/// ends with fill elements and an end mark (ISO 14496-3, table 4.57), and a fill
/// element with SBR starts with the type 13 or 14. About one in fifty units
/// without SBR looks the same by chance.
pub(crate) fn present<'a>(units: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut seen, mut with) = (0, 0);
    for unit in units.filter(|unit| unit.len() > 8) {
        seen += 1;
        with += usize::from(ends_with_sbr(unit));
    }
    seen > 0 && 2 * with > seen
}

fn ends_with_sbr(unit: &[u8]) -> bool {
    const FILL: u32 = 6;
    const END: u32 = 7;
    let total = unit.len() * 8;
    // Bit positions that only fill elements and the end mark follow. The end mark
    // itself is in the last ten bits, followed by zeros.
    let mut tails: Vec<usize> = (total - 10..=total - 3)
        .filter(|start| {
            let mut at = *start;
            bits(unit, &mut at, 3) == Some(END) && bits(unit, &mut at, (total - *start - 3) as u32) == Some(0)
        })
        .collect();
    // Fill elements hold at most 269 bytes.
    let earliest = total.saturating_sub(4 * 270 * 8);
    for start in (earliest..total - 10).rev() {
        let mut at = start;
        if bits(unit, &mut at, 3) != Some(FILL) {
            continue;
        }
        let mut count = bits(unit, &mut at, 4).unwrap_or(0) as usize;
        if count == 15 {
            count = 14 + bits(unit, &mut at, 8).unwrap_or(0) as usize;
        }
        if count > 0 && tails.contains(&(at + 8 * count)) {
            if matches!(bits(unit, &mut at, 4), Some(13 | 14)) {
                return true;
            }
            tails.push(start);
        }
    }
    false
}

fn object_type(config: &[u8], at: &mut usize) -> Option<u32> {
    match bits(config, at, 5)? {
        31 => Some(32 + bits(config, at, 6)?),
        kind => Some(kind),
    }
}

/// Reads `count` bits (up to 32), most significant first, and advances `at`.
fn bits(bytes: &[u8], at: &mut usize, count: u32) -> Option<u32> {
    let mut value = 0;
    for _ in 0..count {
        let byte = bytes.get(*at / 8)?;
        value = value << 1 | u32::from(byte >> (7 - *at % 8) & 1);
        *at += 1;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_signalling_is_recognised() {
        for (name, config, expected) in [
            ("AAC-LC 44.1 kHz stereo", &[0x12, 0x10][..], false),
            ("AAC-LC with padding", &[0x12, 0x10, 0x56, 0xe5, 0x00], false),
            ("AAC-LC 22.05 kHz, extension says SBR", &[0x13, 0x90, 0x56, 0xe5, 0xa0], true),
            ("object type 5: SBR", &[0x2b, 0x92, 0x08, 0x00], true),
            ("object type 29: PS", &[0xeb, 0x8a, 0x08, 0x00], true),
            ("nothing", &[], false),
        ] {
            assert_eq!(announced(config), expected, "{name}");
        }
    }
}
