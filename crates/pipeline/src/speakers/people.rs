//! How many people speak in a recording, and how each of them sounds.
//!
//! Who says a few words at a time only is found by short utterances that sound like no
//! one's long ones. Where more people are known to speak than were found, the speech of two
//! who sound alike is divided, or who hardly speaks becomes a speaker; never is the speech
//! of what is surely one voice divided, so that a wrong number does no harm.

use super::clusters::{Bounds, Cluster, Tree};
use super::listen::{ENOUGH_ALONE, Utterance, WINDOWS_PER_MOMENT};

/// Average cosine distance from which on two voices are taken for two speakers.
/// Two halves of what one voice says are up to 0.27 apart, two voices from 0.28 on, and but
/// for one pair in a hundred from 0.32 on (docs/measurements.md).
pub(super) const THRESHOLD: f32 = 0.29;
/// Up to this distance, two halves of what is said are one voice's, whatever number of
/// speakers is given: no two voices were found to be so close.
const SURELY_ONE: f32 = 0.25;
/// The vector of a shorter utterance is not clustered with those of longer ones, in seconds.
const ENOUGH_TO_CLUSTER: f32 = 1.6;
/// The same for short utterances: their vectors vary more. One in a hundred is further from
/// its own speaker.
const THRESHOLD_OF_SHORT: f32 = 0.35;
/// Share of all speech from which on a cluster is a speaker, and its limits in
/// seconds: a few words that two people say at once sound like a third.
const LEAST_SHARE: f32 = 0.02;
const LEAST_SECONDS: (f32, f32) = (2.5, 8.0);
/// Less speech than this makes no speaker even where one is missing, in seconds.
const LEAST_OF_MISSING: f32 = 0.5;

/// A speaker that was found.
struct Person {
    cluster: Cluster,
    /// In the tree of long utterances.
    node: Option<usize>,
}

/// The voices of those who speak, each of length 1. There is at least one utterance.
pub fn voices(utterances: &[Utterance], bounds: Bounds) -> Vec<Vec<f32>> {
    let single = |one: &Utterance| Cluster::single(&one.vector, one.seconds / WINDOWS_PER_MOMENT as f32);
    let is_long = |one: &&Utterance| one.seconds >= ENOUGH_TO_CLUSTER;
    let mut long: Vec<Cluster> = utterances.iter().filter(is_long).map(single).collect();
    let has_long = long.len() > 1;
    if !has_long {
        long = utterances.iter().map(single).collect();
    }
    let total: f32 = long.iter().map(|cluster| cluster.seconds).sum();
    let least = (LEAST_SHARE * total).clamp(LEAST_SECONDS.0, LEAST_SECONDS.1);

    let tree = Tree::new(long);
    let mut nodes = tree.nodes_cut(THRESHOLD);
    nodes.sort_by(|a, b| tree.cluster(*b).seconds.total_cmp(&tree.cluster(*a).seconds));
    let count = nodes.iter().filter(|node| tree.cluster(**node).seconds >= least).count().max(1);
    let of_node = |node: &usize| Person { cluster: tree.cluster(*node).clone(), node: Some(*node) };
    let mut people: Vec<Person> = nodes.iter().take(count).map(of_node).collect();

    let mut rest: Vec<Cluster> = nodes.iter().skip(count).map(|node| tree.cluster(*node).clone()).collect();
    if has_long {
        let centres: Vec<Vec<f32>> = people.iter().map(|person| person.cluster.centre()).collect();
        let is_short = |one: &&Utterance| one.seconds > ENOUGH_ALONE && one.seconds < ENOUGH_TO_CLUSTER;
        let short = utterances.iter().filter(is_short);
        rest.extend(short.filter(|one| nearest(&one.vector, &centres) > THRESHOLD_OF_SHORT).map(single));
    }
    let mut rest = Tree::new(rest).cut(THRESHOLD_OF_SHORT);
    rest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let hardly_speaking = rest.split_off(rest.iter().filter(|cluster| cluster.seconds >= least).count());
    people.extend(rest.into_iter().map(|cluster| Person { cluster, node: None }));

    if people.len() > bounds.max {
        let clusters = people.into_iter().map(|person| person.cluster).collect();
        return Tree::new(clusters).at_most(bounds.max).iter().map(Cluster::centre).collect();
    }
    add_missing(&mut people, hardly_speaking, &tree, bounds.min, least);
    people.iter().map(|person| person.cluster.centre()).collect()
}

/// Cosine distance to the nearest of some vectors.
fn nearest(vector: &[f32], others: &[Vec<f32>]) -> f32 {
    others.iter().map(|other| distance(vector, other)).fold(f32::INFINITY, f32::min)
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    1.0 - a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>()
}

/// What is gained by taking two for two people: the distances of what they say to their
/// centre become so much less (Ward, 1963).
fn gain(a: &Cluster, b: &Cluster) -> f32 {
    distance(&a.centre(), &b.centre()) * a.seconds * b.seconds / (a.seconds + b.seconds)
}

/// Divides voices, and adds those of who hardly speaks, until there are so many people, as
/// long as anything tells more of them apart; what tells most first.
fn add_missing(
    people: &mut Vec<Person>,
    mut hardly_speaking: Vec<Cluster>,
    tree: &Tree,
    count: usize,
    least: f32,
) {
    hardly_speaking.retain(|cluster| cluster.seconds >= LEAST_OF_MISSING);
    while people.len() < count {
        let divided = people.iter().enumerate().filter_map(|(number, person)| {
            let division = tree.division(person.node?, least).filter(|it| it.distance >= SURELY_ONE)?;
            let [a, b] = division.parts;
            Some((gain(tree.cluster(a), tree.cluster(b)), number, division.parts))
        });
        let divided = divided.max_by(|a, b| a.0.total_cmp(&b.0));
        let added = hardly_speaking.iter().enumerate().map(|(number, cluster)| {
            // What the closest loses by it.
            let far = |person: &&Person| distance(&person.cluster.centre(), &cluster.centre());
            let closest = people.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
            (closest.map_or(0.0, |person| gain(&person.cluster, cluster)), number)
        });
        let added = added.max_by(|a, b| a.0.total_cmp(&b.0));
        match (divided, added) {
            (Some((more, number, parts)), added) if added.is_none_or(|(gain, _)| gain < more) => {
                let parts =
                    parts.map(|node| Person { cluster: tree.cluster(node).clone(), node: Some(node) });
                people.splice(number..=number, parts);
            }
            (_, Some((_, number))) => {
                people.push(Person { cluster: hardly_speaking.swap_remove(number), node: None });
            }
            (_, None) => break,
        }
    }
}
