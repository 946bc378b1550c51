//! How many connections there are, and which of them can be closed for another one.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::{Notify, watch};

use crate::reply::Body;

/// The open connections. Where there are as many as allowed, the one that has been idle for longest makes room, so
/// that clients that connect and say nothing keep nobody out.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    open: Mutex<Open>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Open {
    latest: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    /// Requests that are being answered.
    busy: Arc<AtomicUsize>,
    close: Arc<Notify>,
}

impl Connections {
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), open: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Room for one more; `None` where all others are busy.
    pub fn admit(self: &Arc<Self>) -> Option<Connection> {
        let mut open = self.lock();
        if open.all.len() >= self.most {
            let is_idle = |state: &State| state.busy.load(Ordering::Relaxed) == 0;
            let idle = open.all.iter().find(|(_, state)| is_idle(state)).map(|(id, _)| *id)?;
            if let Some(state) = open.all.remove(&idle) {
                state.close.notify_one();
            }
        }
        open.latest += 1;
        let (id, state) = (open.latest, State::default());
        open.all.insert(id, state.clone());
        self.count.send_replace(open.all.len());
        Some(Connection { all: Arc::clone(self), id, state })
    }

    /// Waits until all are closed, `patience` at most.
    pub async fn empty(&self, patience: Duration) {
        let mut count = self.count.subscribe();
        let _ = tokio::time::timeout(patience, count.wait_for(|count| *count == 0)).await;
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub struct Connection {
    all: Arc<Connections>,
    id: u64,
    state: State,
}

impl Connection {
    /// Waits until it has to make room for another one.
    pub async fn closed(&self) {
        self.state.close.notified().await;
    }

    /// A request has arrived.
    pub fn busy(&self) -> Busy {
        self.state.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(&self.state.busy))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        open.all.remove(&self.id);
        self.all.count.send_replace(open.all.len());
    }
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub struct Busy(Arc<AtomicUsize>);

impl Busy {
    /// The answer lasts as long as its body.
    pub fn until_the_end_of(self, body: Body) -> Body {
        BusyBody { body, _busy: self }.boxed_unsync()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl http_body::Body for BusyBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_idle_connection_makes_room_and_a_busy_one_does_not() {
        let connections = Arc::new(Connections::new(2));
        let (first, second) = (connections.admit().unwrap(), connections.admit().unwrap());
        let at_work = first.busy();
        let third = connections.admit().unwrap();
        second.closed().await;
        let _also_at_work = third.busy();
        assert!(connections.admit().is_none());
        drop(at_work);
        assert!(connections.admit().is_some());
        first.closed().await;
    }
}
