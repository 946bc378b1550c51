//! Agglomerative clustering of voices by average linkage on the cosine distance.
//!
//! The average distance between the members of two clusters of vectors of
//! length 1 is 1 minus the product of the clusters' mean vectors. So a cluster
//! is known by its sum and its weight, and clusters that were made from a part
//! of the recording are joined further as if all of it had been compared at
//! once. Memory is bounded for that reason: [`BLOCK`] vectors are compared at a
//! time.

use super::listen::normalise;

/// Vectors that are compared at once: a matrix of 4 MB.
const BLOCK: usize = 1000;
/// Within a block only voices that are surely the same are joined.
const SURELY_SAME: f32 = 0.15;

/// Some vectors, and their sum.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Numbers of the vectors in it.
    pub members: Vec<usize>,
    /// The mean vector, shorter than 1.
    mean: Vec<f32>,
    /// Seconds of speech.
    pub seconds: f32,
}

impl Cluster {
    /// The direction of the mean, of length 1.
    pub fn centre(&self) -> Vec<f32> {
        let mut centre = self.mean.clone();
        normalise(&mut centre);
        centre
    }

    fn join(&mut self, other: Self) {
        let (own, its) = (self.members.len() as f32, other.members.len() as f32);
        let total = own + its;
        for (mean, other) in self.mean.iter_mut().zip(&other.mean) {
            *mean = (*mean * own + other * its) / total;
        }
        self.members.extend(other.members);
        self.seconds += other.seconds;
    }
}

/// How many clusters there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The fewest, from 1.
    pub min: usize,
    /// The most.
    pub max: usize,
}

/// Joins vectors, each of length 1 and with its seconds of speech, until no two
/// clusters are closer than `threshold`, or fewer or more where `bounds` ask for
/// it. Clusters with less speech than `least` don't count for the bounds.
pub fn cluster(vectors: &[(&[f32], f32)], threshold: f32, bounds: Bounds, least: f32) -> Vec<Cluster> {
    let single = |(number, (vector, seconds)): (usize, &(&[f32], f32))| Cluster {
        members: vec![number],
        mean: vector.to_vec(),
        seconds: *seconds,
    };
    let mut clusters: Vec<Cluster> = vectors.iter().enumerate().map(single).collect();
    let mut same = SURELY_SAME;
    while clusters.len() > BLOCK {
        let blocks = clusters.chunks(BLOCK).map(<[Cluster]>::to_vec).collect::<Vec<_>>();
        let join = |block: Vec<Cluster>| {
            let joins = joins(&block);
            let kept = joins.partition_point(|join| join.distance < same);
            joined(block, &joins[..kept])
        };
        clusters = blocks.into_iter().flat_map(join).collect();
        // The next round joins what is less alike, so that there is an end.
        same += 0.05;
    }
    let joins = joins(&clusters);
    let chosen = chosen(&clusters, &joins, threshold, bounds, least);
    joined(clusters, &joins[..chosen])
}

/// Cluster `b` joins cluster `a`.
#[derive(Debug, Clone, Copy)]
struct Join {
    a: usize,
    b: usize,
    distance: f32,
}

/// How many of the joins are made: those below the threshold, and fewer or more
/// until the number of clusters that count is within the bounds.
fn chosen(clusters: &[Cluster], joins: &[Join], threshold: f32, bounds: Bounds, least: f32) -> usize {
    let mut seconds: Vec<f32> = clusters.iter().map(|cluster| cluster.seconds).collect();
    let mut counting = seconds.iter().filter(|seconds| **seconds >= least).count();
    let mut counts = vec![counting];
    for join in joins {
        let counts_itself = |seconds: f32| usize::from(seconds >= least);
        let total = seconds[join.a] + seconds[join.b];
        counting =
            counting + counts_itself(total) - counts_itself(seconds[join.a]) - counts_itself(seconds[join.b]);
        seconds[join.a] = total;
        counts.push(counting);
    }
    let natural = joins.partition_point(|join| join.distance < threshold);
    if counts[natural] > bounds.max {
        return (natural..counts.len()).find(|at| counts[*at] <= bounds.max).unwrap_or(joins.len());
    }
    if counts[natural] < bounds.min {
        let most = counts.iter().copied().max().unwrap_or(0).min(bounds.min);
        return (0..=natural).rev().find(|at| counts[*at] >= most).unwrap_or(natural);
    }
    natural
}

/// Makes the joins.
fn joined(clusters: Vec<Cluster>, joins: &[Join]) -> Vec<Cluster> {
    let mut clusters: Vec<Option<Cluster>> = clusters.into_iter().map(Some).collect();
    for join in joins {
        if let Some(other) = clusters[join.b].take()
            && let Some(cluster) = &mut clusters[join.a]
        {
            cluster.join(other);
        }
    }
    clusters.into_iter().flatten().collect()
}

/// The two closest clusters are joined again and again until one is left.
/// Distances grow, because an average linkage has no inversions.
fn joins(clusters: &[Cluster]) -> Vec<Join> {
    let count = clusters.len();
    let mut weights: Vec<f32> = clusters.iter().map(|cluster| cluster.members.len() as f32).collect();
    let mut distances = vec![f32::INFINITY; count * count];
    for a in 0..count {
        for b in 0..a {
            let product: f32 = clusters[a].mean.iter().zip(&clusters[b].mean).map(|(x, y)| x * y).sum();
            distances[a * count + b] = 1.0 - product;
            distances[b * count + a] = 1.0 - product;
        }
    }
    let nearest_of = |distances: &[f32], a: usize| {
        let row = &distances[a * count..(a + 1) * count];
        (0..count).min_by(|b, c| row[*b].total_cmp(&row[*c])).map_or((a, f32::INFINITY), |b| (b, row[b]))
    };
    let mut nearest: Vec<(usize, f32)> = (0..count).map(|a| nearest_of(&distances, a)).collect();
    let mut joins: Vec<Join> = Vec::with_capacity(count.saturating_sub(1));
    while joins.len() + 1 < count {
        let left = (0..count).filter(|a| weights[*a] > 0.0);
        let Some(a) = left.min_by(|a, b| nearest[*a].1.total_cmp(&nearest[*b].1)) else { break };
        let (b, distance) = nearest[a];
        // Rounding alone makes a distance smaller than the last one.
        let distance = joins.last().map_or(distance, |last| last.distance.max(distance));
        joins.push(Join { a, b, distance });
        for c in 0..count {
            // Lance and Williams (1967): the average linkage of a joined cluster.
            let mean = (weights[a] * distances[a * count + c] + weights[b] * distances[b * count + c])
                / (weights[a] + weights[b]);
            let is_other = c != a && c != b && weights[c] > 0.0;
            let mean = if is_other { mean } else { f32::INFINITY };
            distances[a * count + c] = mean;
            distances[c * count + a] = mean;
            distances[b * count + c] = f32::INFINITY;
            distances[c * count + b] = f32::INFINITY;
        }
        weights[a] += std::mem::take(&mut weights[b]);
        for c in (0..count).filter(|c| weights[*c] > 0.0) {
            if c == a || nearest[c].0 == a || nearest[c].0 == b {
                nearest[c] = nearest_of(&distances, c);
            } else if distances[c * count + a] < nearest[c].1 {
                nearest[c] = (a, distances[c * count + a]);
            }
        }
    }
    joins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` vectors around each of some axes, in turn.
    fn around(axes: usize, count: usize, noise: f32) -> Vec<Vec<f32>> {
        let mut random = fastrand::Rng::with_seed(7);
        let vector = |number: usize, random: &mut fastrand::Rng| {
            let mut vector: Vec<f32> = (0..16).map(|_| noise * (random.f32() - 0.5)).collect();
            vector[number % axes] += 1.0;
            normalise(&mut vector);
            vector
        };
        (0..axes * count).map(|number| vector(number, &mut random)).collect()
    }

    fn clusters_of(vectors: &[Vec<f32>], threshold: f32, bounds: Bounds, least: f32) -> Vec<Cluster> {
        let vectors: Vec<(&[f32], f32)> = vectors.iter().map(|vector| (vector.as_slice(), 2.0)).collect();
        cluster(&vectors, threshold, bounds, least)
    }

    const ANY: Bounds = Bounds { min: 1, max: usize::MAX };

    #[test]
    fn voices_that_sound_alike_are_together() {
        // More than a block: the result is that of one comparison of all.
        for count in [1, 2, 40, 700] {
            let vectors = around(3, count, 0.6);
            let found = clusters_of(&vectors, 0.5, ANY, 0.0);
            assert_eq!(found.len(), 3, "{count} of each");
            for cluster in found {
                let axis = cluster.members[0] % 3;
                assert!(cluster.members.iter().all(|member| member % 3 == axis));
                assert_eq!((cluster.members.len(), cluster.seconds), (count, 2.0 * count as f32));
            }
        }
        assert!(clusters_of(&[], 0.5, ANY, 0.0).is_empty());
    }

    #[test]
    fn the_number_of_speakers_is_kept_within_bounds() {
        let vectors = around(4, 20, 0.6);
        for (bounds, expected) in [
            (ANY, 4),
            (Bounds { min: 4, max: 4 }, 4),
            (Bounds { min: 1, max: 2 }, 2),
            (Bounds { min: 6, max: 9 }, 6),
            (Bounds { min: 1, max: 1 }, 1),
        ] {
            let count = |least: f32| {
                let found = clusters_of(&vectors, 0.5, bounds, least);
                found.iter().filter(|cluster| cluster.seconds >= least).count()
            };
            assert_eq!(count(0.0), expected, "{bounds:?}");
            // Clusters of a single short piece are no speakers.
            assert_eq!(count(4.0), expected, "{bounds:?}");
        }
    }
}
