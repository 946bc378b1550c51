//! The largest entries of a row of logits.

/// The first of the largest entries; 0 where there are none.
pub fn arg_max(logits: &[f32]) -> usize {
    let most = logits.iter().fold(f32::NEG_INFINITY, |most, x| if *x > most { *x } else { most });
    logits.iter().position(|x| *x == most).unwrap_or_default()
}

/// The `count` largest entries with their values, largest first, earlier ones
/// before later ones of the same value. Masked entries are left out.
pub fn top(logits: &[f32], count: usize) -> Vec<(usize, f32)> {
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(count.min(logits.len()) + 1);
    for (index, value) in logits.iter().enumerate() {
        if *value == f32::NEG_INFINITY {
            continue;
        }
        if best.len() == count && best.last().is_some_and(|(_, worst)| worst >= value) {
            continue;
        }
        let place = best.partition_point(|(_, other)| other >= value);
        best.insert(place, (index, *value));
        best.truncate(count);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_is_ordered_and_skips_masked_entries() {
        let row = [0.5, f32::NEG_INFINITY, 2.0, 2.0, -1.0];
        assert_eq!(top(&row, 3), [(2, 2.0), (3, 2.0), (0, 0.5)]);
        assert_eq!(top(&row, 9).len(), 4);
        assert_eq!(arg_max(&row), 2);
        assert_eq!((top(&[], 3), arg_max(&[])), (Vec::new(), 0));
    }
}
