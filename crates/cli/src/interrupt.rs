//! Ctrl-C once: stop the job and keep its text. Twice: end at once.

use std::io;

use tokio::sync::watch;

use crate::args::EXIT_CANCELLED;
#[cfg(unix)]
use crate::platform;

/// Whether the user has interrupted the program.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Takes over Ctrl-C, and on Unix a polite kill and a closed terminal.
    pub fn listen() -> io::Result<Self> {
        let (sender, receiver) = watch::channel(false);
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            signals.next().await;
            let _ = sender.send(true);
            signals.next().await;
            // The engine ends by itself when our end of its stream closes.
            std::process::exit(i32::from(EXIT_CANCELLED));
        });
        Ok(Self(receiver))
    }

    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the user interrupts; for ever where signals can't be received.
    pub async fn raised(&mut self) {
        if self.0.wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
struct Signals([Option<tokio::signal::unix::Signal>; 3]);

#[cfg(unix)]
impl Signals {
    /// A signal that we were started to ignore (`nohup`, a background job of a
    /// script) stays ignored.
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen =
            |kind: SignalKind| (!platform::is_ignored(kind.as_raw_value())).then(|| signal(kind)).transpose();
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        async fn one(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = one(interrupt) => {}
            () = one(terminate) => {}
            () = one(hangup) => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
