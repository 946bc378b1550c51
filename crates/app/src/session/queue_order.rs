//! The order in which recordings are transcribed: as given, or the shortest first.

use wire::JobId;

#[derive(Debug, Default)]
pub struct QueueOrder {
    /// As they were added, and as the user moved them.
    given: Vec<JobId>,
    /// As they are taken and shown.
    order: Vec<JobId>,
    shortest_first: bool,
}

impl QueueOrder {
    pub fn is_shortest_first(&self) -> bool {
        self.shortest_first
    }

    pub fn iter(&self) -> impl Iterator<Item = JobId> {
        self.order.iter().copied()
    }

    /// The order that does not depend on lengths.
    pub fn given(&self) -> &[JobId] {
        &self.given
    }

    pub fn add(&mut self, id: JobId) {
        self.given.push(id);
        self.order.push(id);
    }

    pub fn remove(&mut self, id: JobId) {
        self.given.retain(|other| *other != id);
        self.order.retain(|other| *other != id);
    }

    /// Moves recordings, in their order, in front of `before`, or to the end.
    /// What is then shown is the given order. True where that changed it.
    pub fn reorder(&mut self, moved: &[JobId], before: Option<JobId>) -> bool {
        if before.is_some_and(|id| moved.contains(&id)) {
            return false;
        }
        let (moved, mut order): (Vec<JobId>, Vec<JobId>) = self.iter().partition(|id| moved.contains(id));
        let place = before.and_then(|id| order.iter().position(|other| *other == id)).unwrap_or(order.len());
        order.splice(place..place, moved);
        let changed = order != self.order;
        if changed {
            self.given.clone_from(&order);
            self.order = order;
            self.shortest_first = false;
        }
        changed
    }

    /// Gives a recording its turn before all that `wait`, in the order given.
    pub fn put_first(&mut self, id: JobId, waits: impl Fn(JobId) -> bool) {
        self.given.retain(|other| *other != id);
        let first = self.given.iter().position(|other| waits(*other)).unwrap_or(self.given.len());
        self.given.insert(first, id);
    }

    /// The given order comes back where this is switched off.
    pub fn put_shortest_first(&mut self, on: bool) {
        self.shortest_first = on;
    }

    /// Sorts the queue. `wait` gives the length of a waiting recording in seconds,
    /// infinite where that is unknown, and `None` for others, which stay in front. True
    /// where the order changed.
    pub fn arrange(&mut self, wait: impl Fn(JobId) -> Option<f64>) -> bool {
        let order = if self.shortest_first {
            let mut waiting: Vec<(f64, JobId)> =
                self.given.iter().filter_map(|id| Some((wait(*id)?, *id))).collect();
            // Stable: what is of one length stays as it was given.
            waiting.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let begun = self.iter().filter(|id| wait(*id).is_none());
            begun.chain(waiting.into_iter().map(|(_, id)| id)).collect()
        } else {
            self.given.clone()
        };
        let changed = order != self.order;
        self.order = order;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(ids: &[JobId]) -> QueueOrder {
        let mut turns = QueueOrder::default();
        ids.iter().for_each(|id| turns.add(*id));
        turns
    }

    fn order(turns: &QueueOrder) -> Vec<JobId> {
        turns.iter().collect()
    }

    #[test]
    fn the_shortest_comes_first_what_nobody_knows_last_and_what_has_begun_stays_in_front() {
        let mut turns = turns(&[1, 2, 3, 4, 5]);
        turns.put_shortest_first(true);
        let lengths = |id| Some(if id == 2 { f64::INFINITY } else { f64::from(10 - id as u32 / 2) });
        assert!(turns.arrange(lengths));
        assert_eq!(order(&turns), [4, 5, 3, 1, 2]);
        assert!(!turns.arrange(lengths));
        // The third has begun, and another one comes in.
        turns.add(6);
        assert!(turns.arrange(|id| if id == 3 { None } else { lengths(id) }));
        assert_eq!(order(&turns), [3, 6, 4, 5, 1, 2]);
        turns.put_shortest_first(false);
        assert!(turns.arrange(lengths));
        assert_eq!(order(&turns), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn who_moves_a_recording_by_hand_wants_the_order_that_is_seen() {
        let mut turns = turns(&[1, 2, 3]);
        turns.put_shortest_first(true);
        turns.arrange(|id| Some(-(id as f64)));
        assert_eq!(order(&turns), [3, 2, 1]);
        assert!(!turns.reorder(&[3], Some(3)));
        assert!(turns.is_shortest_first());
        assert!(turns.reorder(&[1], Some(3)));
        assert!(!turns.is_shortest_first());
        assert!(!turns.arrange(|id| Some(-(id as f64))));
        assert_eq!(order(&turns), [1, 3, 2]);
    }
}
