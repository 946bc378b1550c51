//! Agglomerative clustering of voices by average linkage on the cosine distance.
//!
//! The average distance between the members of two clusters of vectors of
//! length 1 is 1 minus the product of the clusters' mean vectors. So a cluster
//! is known by its mean and its size, and clusters that were made from a part
//! of the recording are joined further as if all of it had been compared at
//! once. Memory is bounded for that reason: [`BLOCK`] vectors are compared at a
//! time.

use super::listen::normalise;

/// Vectors that are compared at once: a matrix of 4 MB.
const BLOCK: usize = 1000;
/// Within a block only voices that are surely the same are joined.
const SURELY_SAME: f32 = 0.15;

/// Some vectors of length 1.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The mean vector, shorter than 1.
    mean: Vec<f32>,
    /// How many vectors.
    count: usize,
    /// Seconds of speech.
    pub seconds: f32,
}

impl Cluster {
    /// A vector with its seconds of speech.
    pub fn single(vector: &[f32], seconds: f32) -> Self {
        Self { mean: vector.to_vec(), count: 1, seconds }
    }

    /// The direction of the mean, of length 1.
    pub fn centre(&self) -> Vec<f32> {
        let mut centre = self.mean.clone();
        normalise(&mut centre);
        centre
    }

    fn joined(&self, other: &Self) -> Self {
        let (own, its) = (self.count as f32, other.count as f32);
        let mean = self.mean.iter().zip(&other.mean).map(|(x, y)| (x * own + y * its) / (own + its));
        Self { mean: mean.collect(), count: self.count + other.count, seconds: self.seconds + other.seconds }
    }
}

/// How many speakers there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The fewest, from 1. Where less is heard than tells so many voices apart, there are
    /// fewer.
    pub min: usize,
    /// The most.
    pub max: usize,
}

/// Clusters, and what they were joined from: the closest two first, until one is left.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Nodes that nothing was joined for; all others follow them, in the order in which they
    /// were joined.
    leaves: usize,
}

#[derive(Debug)]
struct Node {
    cluster: Cluster,
    /// The two nodes that it was joined from, and how far apart they are.
    parts: Option<(usize, usize, f32)>,
}

/// A cluster divided in two that both have enough speech.
#[derive(Debug, Clone, Copy)]
pub struct Division {
    /// The nodes of the two.
    pub parts: [usize; 2],
    /// Average distance between their members.
    pub distance: f32,
}

impl Tree {
    /// Joins clusters. Of many, those that are surely the same are leaves of the tree
    /// together.
    pub fn new(mut clusters: Vec<Cluster>) -> Self {
        let mut same = SURELY_SAME;
        while clusters.len() > BLOCK {
            let blocks = clusters.chunks(BLOCK).map(<[Cluster]>::to_vec);
            clusters = blocks.flat_map(|block| Self::of_block(block).cut(same)).collect();
            // The next round joins what is less alike, so that there is an end.
            same += 0.05;
        }
        Self::of_block(clusters)
    }

    fn of_block(clusters: Vec<Cluster>) -> Self {
        let (joins, leaves) = (joins(&clusters), clusters.len());
        let mut node_of: Vec<usize> = (0..leaves).collect();
        let mut nodes: Vec<Node> =
            clusters.into_iter().map(|cluster| Node { cluster, parts: None }).collect();
        for Join { a, b, distance } in joins {
            let (first, second) = (node_of[a], node_of[b]);
            let cluster = nodes[first].cluster.joined(&nodes[second].cluster);
            node_of[a] = nodes.len();
            nodes.push(Node { cluster, parts: Some((first, second, distance)) });
        }
        Self { nodes, leaves }
    }

    /// The cluster of a node.
    pub fn cluster(&self, node: usize) -> &Cluster {
        &self.nodes[node].cluster
    }

    /// The clusters of which no two are closer than `threshold`.
    pub fn cut(&self, threshold: f32) -> Vec<Cluster> {
        self.nodes_cut(threshold).into_iter().map(|node| self.cluster(node).clone()).collect()
    }

    /// As [`Tree::cut`], the numbers of the nodes.
    pub fn nodes_cut(&self, threshold: f32) -> Vec<usize> {
        let is_closer = |node: &Node| node.parts.is_some_and(|(.., distance)| distance < threshold);
        self.after(self.nodes[self.leaves..].partition_point(is_closer))
    }

    /// At most so many clusters: the closest are joined.
    pub fn at_most(&self, count: usize) -> Vec<Cluster> {
        let joins = self.leaves.saturating_sub(count.max(1));
        self.after(joins).into_iter().map(|node| self.cluster(node).clone()).collect()
    }

    /// The nodes that are left after the first joins.
    fn after(&self, joins: usize) -> Vec<usize> {
        let made = &self.nodes[..self.leaves + joins];
        let mut is_left = vec![true; made.len()];
        for (a, b, _) in made.iter().filter_map(|node| node.parts) {
            is_left[a] = false;
            is_left[b] = false;
        }
        (0..made.len()).filter(|node| is_left[*node]).collect()
    }

    /// The first division of a node, from above, in which both parts have `least` seconds of
    /// speech; what is split off before is too little to be counted.
    pub fn division(&self, mut node: usize, least: f32) -> Option<Division> {
        loop {
            let (a, b, distance) = self.nodes[node].parts?;
            let seconds = |node: usize| self.nodes[node].cluster.seconds;
            let (large, small) = if seconds(a) < seconds(b) { (b, a) } else { (a, b) };
            if seconds(small) >= least {
                return Some(Division { parts: [a, b], distance });
            }
            node = large;
        }
    }
}

/// Cluster `b` joins cluster `a`.
#[derive(Debug, Clone, Copy)]
struct Join {
    a: usize,
    b: usize,
    distance: f32,
}

/// The two closest clusters are joined again and again until one is left.
/// Distances grow, because an average linkage has no inversions.
fn joins(clusters: &[Cluster]) -> Vec<Join> {
    let count = clusters.len();
    let mut weights: Vec<f32> = clusters.iter().map(|cluster| cluster.count as f32).collect();
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
    fn around(axes: usize, count: usize, noise: f32) -> Vec<Cluster> {
        let mut random = fastrand::Rng::with_seed(7);
        let vector = |number: usize, random: &mut fastrand::Rng| {
            let mut vector: Vec<f32> = (0..16).map(|_| noise * (random.f32() - 0.5)).collect();
            vector[number % axes] += 1.0;
            normalise(&mut vector);
            Cluster::single(&vector, 2.0)
        };
        (0..axes * count).map(|number| vector(number, &mut random)).collect()
    }

    #[test]
    fn voices_that_sound_alike_are_together() {
        // More than a block: the result is that of one comparison of all.
        for count in [1, 2, 40, 700] {
            let found = Tree::new(around(3, count, 0.6)).cut(0.5);
            assert_eq!(found.len(), 3, "{count} of each");
            let mut axes: Vec<usize> = Vec::new();
            for cluster in found {
                let centre = cluster.centre();
                axes.push((0..16).max_by(|a, b| centre[*a].total_cmp(&centre[*b])).unwrap());
                assert_eq!((cluster.count, cluster.seconds), (count, 2.0 * count as f32));
            }
            axes.sort_unstable();
            assert_eq!(axes, [0, 1, 2]);
        }
        assert!(Tree::new(Vec::new()).cut(0.5).is_empty());
    }

    #[test]
    fn clusters_are_joined_until_they_are_few_and_divided_where_both_parts_count() {
        let mut voices = around(3, 20, 0.6);
        // A scrap of a fourth.
        let mut scrap = vec![0.0; 16];
        scrap[9] = 1.0;
        voices.push(Cluster::single(&scrap, 1.0));
        let tree = Tree::new(voices);
        assert_eq!([1, 2, 3, 9].map(|count| tree.at_most(count).len()), [1, 2, 3, 9]);
        let all = tree.nodes_cut(f32::INFINITY);
        let division = tree.division(all[0], 4.0).unwrap();
        let mut seconds = division.parts.map(|node| tree.cluster(node).seconds);
        seconds.sort_by(f32::total_cmp);
        assert_eq!(seconds, [40.0, 80.0]);
        assert!(division.distance > 0.5);
        // Within one voice there are divisions too, but close ones; a scrap has none.
        let one = tree.nodes_cut(0.5).into_iter().find(|node| tree.cluster(*node).count == 20).unwrap();
        assert!(tree.division(one, 4.0).is_some_and(|division| division.distance < 0.5));
        assert!(tree.division(one, 30.0).is_none());
    }
}
