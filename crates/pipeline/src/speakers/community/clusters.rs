//! Which voices of the windows are the same person.

use models::speakers::Plda;

use super::super::Bounds;
use super::super::listen::normalise;
use super::LocalVoice;
use super::vbx;

/// Distance of two centres up to which voices are joined before [`vbx`].
const THRESHOLD: f64 = 0.6;
/// Frames alone from which on a voice is compared: a fifth of a window.
const ENOUGH_ALONE: usize = 118;
/// Share of a speaker that is none.
const LEAST_SHARE: f64 = 1e-7;
/// Voices that are compared at once: a matrix of 64 MB. An hour of talk has about as
/// many.
pub const BLOCK: usize = 4000;
/// Within a block of a longer recording only voices this close are joined; each round
/// joins what is less alike, so that there is an end.
const SURELY_SAME: f64 = 0.2;

/// Who is who.
#[derive(Debug)]
pub struct Assigned {
    /// The speaker of each voice; `None` for one too many in its window.
    pub speakers: Vec<Option<usize>>,
    /// How each speaker sounds.
    pub centres: Vec<Vec<f32>>,
}

/// Finds the speakers among the voices of the windows.
pub fn assign(voices: &[LocalVoice], plda: &Plda, bounds: Bounds) -> Assigned {
    let is_enough =
        |voice: &&LocalVoice| voice.alone >= ENOUGH_ALONE && voice.vector.iter().all(|x| x.is_finite());
    let compared: Vec<&[f32]> =
        voices.iter().filter(is_enough).map(|voice| voice.vector.as_slice()).collect();
    if compared.len() < 2 {
        let all: Vec<&[f32]> = voices.iter().map(|voice| voice.vector.as_slice()).collect();
        let one = mean(if compared.is_empty() { &all } else { &compared }, &|_| 1.0);
        return Assigned { speakers: vec![Some(0); voices.len()], centres: vec![one] };
    }
    let directions: Vec<Vec<f32>> = compared.iter().map(|vector| direction(vector)).collect();
    let first = ahc(&directions, THRESHOLD);
    let features: Vec<Vec<f64>> = compared.iter().map(|vector| plda.features(vector)).collect();
    let found = vbx::responsibilities(&features, plda.between(), &first);
    let kept = (0..found.shares.len()).filter(|speaker| found.shares[*speaker] > LEAST_SHARE);
    let mut centres: Vec<Vec<f32>> =
        kept.map(|speaker| mean(&compared, &|vector| found.of_vectors[vector][speaker])).collect();
    let wanted = centres.len().clamp(bounds.min, bounds.max.max(bounds.min)).min(compared.len());
    let is_forced = wanted != centres.len();
    if is_forced {
        let groups = k_means(&directions, wanted);
        let count = groups.iter().max().map_or(0, |last| last + 1);
        let weight = |group: usize| {
            let groups = &groups;
            move |vector: usize| f64::from(u8::from(groups[vector] == group))
        };
        centres = (0..count).map(|group| mean(&compared, &weight(group))).collect();
    }
    let speakers = voices
        .chunk_by(|a, b| a.window == b.window)
        .flat_map(|of_window| {
            let likeness: Vec<Vec<f64>> = of_window
                .iter()
                .map(|voice| centres.iter().map(|centre| cosine(&voice.vector, centre)).collect())
                .collect();
            if is_forced {
                likeness.iter().map(|row| Some(largest(row))).collect()
            } else {
                matched(&likeness)
            }
        })
        .collect();
    Assigned { speakers, centres }
}

fn direction(vector: &[f32]) -> Vec<f32> {
    let mut direction = vector.to_vec();
    normalise(&mut direction);
    direction
}

/// The weighted mean of vectors.
fn mean(vectors: &[&[f32]], weight: &dyn Fn(usize) -> f64) -> Vec<f32> {
    let mut sum = vec![0.0; vectors.first().map_or(0, |vector| vector.len())];
    let mut total = 0.0;
    for (number, vector) in vectors.iter().enumerate() {
        let weight = weight(number);
        total += weight;
        sum.iter_mut().zip(*vector).for_each(|(sum, x)| *sum += weight * f64::from(*x));
    }
    sum.iter().map(|sum| (sum / f64::max(total, 1e-300)) as f32).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let product =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt().max(1e-300)
}

fn largest(row: &[f64]) -> usize {
    // Of equal ones the first.
    (0..row.len()).rev().max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0)
}

/// Gives the voices of a window different speakers, those with the greatest likeness
/// in all. Where there are fewer speakers, as many voices as there are have one.
fn matched(likeness: &[Vec<f64>]) -> Vec<Option<usize>> {
    let speakers = likeness.first().map_or(0, Vec::len);
    // One of a voice's best as many speakers as there are voices is free in any case.
    let best: Vec<Vec<usize>> = likeness
        .iter()
        .map(|row| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
            order.truncate(likeness.len());
            order
        })
        .collect();
    let mut search = Search {
        likeness,
        best: &best,
        unmatched: likeness.len().saturating_sub(speakers),
        most: f64::NEG_INFINITY,
        found: vec![None; likeness.len()],
    };
    search.go_on(&mut Vec::new(), 0.0, 0);
    search.found
}

/// Tries all ways to match the voices of a window; there are at most three.
struct Search<'a> {
    likeness: &'a [Vec<f64>],
    best: &'a [Vec<usize>],
    /// Voices that have no speaker in the end.
    unmatched: usize,
    most: f64,
    found: Vec<Option<usize>>,
}

impl Search<'_> {
    fn go_on(&mut self, chosen: &mut Vec<Option<usize>>, total: f64, without: usize) {
        let row = chosen.len();
        if row == self.likeness.len() {
            if total > self.most {
                self.most = total;
                self.found.clone_from(chosen);
            }
            return;
        }
        for speaker in &self.best[row] {
            if !chosen.contains(&Some(*speaker)) {
                // Any match counts more than none.
                chosen.push(Some(*speaker));
                self.go_on(chosen, total + self.likeness[row][*speaker] + 2.0, without);
                chosen.pop();
            }
        }
        if without < self.unmatched {
            chosen.push(None);
            self.go_on(chosen, total, without + 1);
            chosen.pop();
        }
    }
}

/// A cluster: the mean of its directions, and what it is made of.
#[derive(Debug, Clone)]
struct Group {
    centre: Vec<f32>,
    members: Vec<usize>,
}

/// The clusters of directions, joined by the distance of their centres (centroid
/// linkage), in the numbering of scipy's `fcluster`.
pub fn ahc(directions: &[Vec<f32>], threshold: f64) -> Vec<usize> {
    let single =
        |(number, direction): (usize, &Vec<f32>)| Group { centre: direction.clone(), members: vec![number] };
    let mut groups: Vec<Group> = directions.iter().enumerate().map(single).collect();
    let mut same = SURELY_SAME;
    while groups.len() > BLOCK {
        let joined = groups.chunks(BLOCK).flat_map(|block| {
            let numbers = flat(block.len(), &tree(block), same);
            merged(block, &numbers)
        });
        groups = joined.collect();
        same += 0.05;
    }
    let numbers = flat(groups.len(), &tree(&groups), threshold);
    let mut of_directions = vec![0; directions.len()];
    for (group, number) in groups.iter().zip(numbers) {
        group.members.iter().for_each(|member| of_directions[*member] = number);
    }
    of_directions
}

/// Groups with the same number are one.
fn merged(groups: &[Group], numbers: &[usize]) -> Vec<Group> {
    let count = numbers.iter().max().map_or(0, |last| last + 1);
    let mut merged: Vec<Group> = vec![Group { centre: Vec::new(), members: Vec::new() }; count];
    for (group, number) in groups.iter().zip(numbers) {
        let into = &mut merged[*number];
        let (own, its) = (into.members.len() as f32, group.members.len() as f32);
        into.centre.resize(group.centre.len(), 0.0);
        into.centre.iter_mut().zip(&group.centre).for_each(|(a, b)| *a = (*a * own + b * its) / (own + its));
        into.members.extend(&group.members);
    }
    merged
}

/// Two clusters that are joined, the smaller number first; numbers from the count of
/// leaves on are those of earlier joins.
#[derive(Debug, Clone, Copy)]
struct Join {
    children: [usize; 2],
    distance: f64,
}

/// The two closest clusters are joined again and again until one is left. Distances
/// can become smaller: a centroid linkage has inversions.
fn tree(groups: &[Group]) -> Vec<Join> {
    let count = groups.len();
    let mut sizes: Vec<f64> = groups.iter().map(|group| group.members.len() as f64).collect();
    let mut numbers: Vec<usize> = (0..count).collect();
    // Squares of distances.
    let mut distances = vec![f32::INFINITY; count * count];
    for a in 0..count {
        for b in 0..a {
            let differences = groups[a].centre.iter().zip(&groups[b].centre).map(|(x, y)| x - y);
            let square: f32 = differences.map(|x| x * x).sum();
            distances[a * count + b] = square;
            distances[b * count + a] = square;
        }
    }
    let nearest_of = |distances: &[f32], a: usize| {
        let row = &distances[a * count..(a + 1) * count];
        (0..count).min_by(|b, c| row[*b].total_cmp(&row[*c])).map_or((a, f32::INFINITY), |b| (b, row[b]))
    };
    let mut nearest: Vec<(usize, f32)> = (0..count).map(|a| nearest_of(&distances, a)).collect();
    let mut joins: Vec<Join> = Vec::with_capacity(count.saturating_sub(1));
    while joins.len() + 1 < count {
        let left = (0..count).filter(|a| sizes[*a] > 0.0);
        let Some(a) = left.min_by(|a, b| nearest[*a].1.total_cmp(&nearest[*b].1)) else { break };
        let (b, square) = nearest[a];
        let square = f64::from(square);
        let mut children = [numbers[a], numbers[b]];
        children.sort_unstable();
        joins.push(Join { children, distance: square.max(0.0).sqrt() });
        let (own, its) = (sizes[a] / (sizes[a] + sizes[b]), sizes[b] / (sizes[a] + sizes[b]));
        for c in 0..count {
            // Lance and Williams (1967): the centroid linkage of a joined cluster.
            let is_other = c != a && c != b && sizes[c] > 0.0;
            let (to_a, to_b) = (f64::from(distances[a * count + c]), f64::from(distances[b * count + c]));
            let joined = if is_other { own * to_a + its * to_b - own * its * square } else { f64::INFINITY };
            distances[a * count + c] = joined as f32;
            distances[c * count + a] = joined as f32;
            distances[b * count + c] = f32::INFINITY;
            distances[c * count + b] = f32::INFINITY;
        }
        sizes[a] += std::mem::take(&mut sizes[b]);
        numbers[a] = count + joins.len() - 1;
        for c in (0..count).filter(|c| sizes[*c] > 0.0) {
            if c == a || nearest[c].0 == a || nearest[c].0 == b {
                nearest[c] = nearest_of(&distances, c);
            } else if distances[c * count + a] < nearest[c].1 {
                nearest[c] = (a, distances[c * count + a]);
            }
        }
    }
    joins
}

/// The numbers of the leaves' clusters: the largest subtrees in which no join is above
/// the threshold, from left to right, in each join other joins before leaves.
fn flat(leaves: usize, joins: &[Join], threshold: f64) -> Vec<usize> {
    let mut highest: Vec<f64> = Vec::with_capacity(joins.len());
    for join in joins {
        let of_children = join.children.iter().filter_map(|child| child.checked_sub(leaves));
        highest.push(of_children.map(|child| highest[child]).fold(join.distance, f64::max));
    }
    let mut numbers = vec![0; leaves];
    let mut next = 0;
    // Nodes with whether they lie within a cluster that was begun.
    let mut open = vec![((leaves + joins.len()).saturating_sub(1), false)];
    while let Some((node, mut within)) = open.pop() {
        let join = node.checked_sub(leaves);
        if !within && join.is_none_or(|join| highest[join] <= threshold) {
            next += 1;
            within = true;
        }
        match join {
            Some(join) => {
                // Joins come before leaves.
                let mut children = joins[join].children;
                children.sort_by_key(|child| *child < leaves);
                open.extend(children.into_iter().rev().map(|child| (child, within)));
            }
            None => {
                if let Some(number) = numbers.get_mut(node) {
                    *number = next - 1;
                }
            }
        }
    }
    numbers
}

/// Divides directions into so many groups (Lloyd, 1982). The first centres are as far
/// from each other as possible, so that the result does not depend on chance.
fn k_means(directions: &[Vec<f32>], count: usize) -> Vec<usize> {
    const MOST_ROUNDS: usize = 100;
    let square = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f32>();
    let all: Vec<&[f32]> = directions.iter().map(Vec::as_slice).collect();
    let whole = mean(&all, &|_| 1.0);
    let farthest = |from: &dyn Fn(&[f32]) -> f32| {
        (0..all.len()).max_by(|a, b| from(all[*a]).total_cmp(&from(all[*b]))).unwrap_or(0)
    };
    let mut centres = vec![all[farthest(&|vector| square(vector, &whole))].to_vec()];
    while centres.len() < count {
        let nearest = |vector: &[f32]| {
            centres.iter().map(|centre| square(vector, centre)).fold(f32::INFINITY, f32::min)
        };
        let next = all[farthest(&nearest)].to_vec();
        centres.push(next);
    }
    let mut groups = vec![usize::MAX; all.len()];
    for _ in 0..MOST_ROUNDS {
        let nearest = |vector: &[f32]| {
            let distance = |centre: &usize| square(vector, &centres[*centre]);
            (0..centres.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let next: Vec<usize> = all.iter().map(|vector| nearest(vector)).collect();
        if next == groups {
            break;
        }
        groups = next;
        for (number, centre) in centres.iter_mut().enumerate() {
            if groups.contains(&number) {
                *centre = mean(&all, &|vector| f64::from(u8::from(groups[vector] == number)));
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inversion_is_cut_by_the_highest_join_below_it() {
        // Three points of a triangle: the third joins the first two at a lower height.
        let join = |children, distance| Join { children, distance };
        let joins = [join([0, 1], 1.0), join([2, 4], 0.9), join([3, 5], 5.0)];
        for (threshold, expected) in [(0.95, [0, 1, 2, 3]), (1.0, [1, 1, 1, 0]), (5.0, [0, 0, 0, 0])] {
            let found = flat(4, &joins, threshold);
            let same = |numbers: &[usize]| -> Vec<bool> {
                (0..4)
                    .flat_map(|a| (0..4).map(move |b| (a, b)))
                    .map(|(a, b)| numbers[a] == numbers[b])
                    .collect()
            };
            assert_eq!(same(&found), same(&expected), "{threshold}: {found:?}");
        }
        assert_eq!(flat(1, &[], 0.5), [0]);
    }

    #[test]
    fn voices_of_a_window_have_different_speakers() {
        for (likeness, expected) in [
            (vec![vec![0.9, 0.8], vec![0.85, 0.1]], vec![Some(1), Some(0)]),
            (vec![vec![0.9, 0.8], vec![0.1, 0.85]], vec![Some(0), Some(1)]),
            // One too many: the least alike has none, even with negative likeness.
            (vec![vec![0.9], vec![0.95]], vec![None, Some(0)]),
            (vec![vec![-0.9, -0.2], vec![-0.5, -0.8], vec![-0.1, -0.1]], vec![Some(1), None, Some(0)]),
        ] {
            assert_eq!(matched(&likeness), expected, "{likeness:?}");
        }
    }

    #[test]
    fn voices_of_a_long_recording_are_clustered_as_those_of_a_short_one() {
        let mut random = fastrand::Rng::with_seed(3);
        let direction = |axis: usize, random: &mut fastrand::Rng| {
            let mut vector: Vec<f32> = (0..16).map(|_| 0.2 * (random.f32() - 0.5)).collect();
            vector[axis] += 1.0;
            super::direction(&vector)
        };
        for count in [30, 3 * BLOCK / 2] {
            let directions: Vec<_> = (0..count).map(|number| direction(number % 3, &mut random)).collect();
            let found = ahc(&directions, THRESHOLD);
            assert_eq!(found.iter().max(), Some(&2), "{count}");
            assert!((0..count).all(|number| found[number] == found[number % 3]));
        }
    }

    #[test]
    fn groups_are_as_many_as_are_asked_for() {
        let directions: Vec<Vec<f32>> = (0..40)
            .map(|n| {
                super::direction(&[
                    (n % 4 == 0) as u8 as f32,
                    (n % 4 == 1) as u8 as f32,
                    (n % 4 == 2) as u8 as f32,
                    0.01 * n as f32 + 0.1,
                ])
            })
            .collect();
        for count in 1..=4 {
            let groups = k_means(&directions, count);
            assert_eq!(groups.iter().collect::<std::collections::HashSet<_>>().len(), count);
        }
    }
}
