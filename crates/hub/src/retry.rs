use std::time::Duration;

use crate::settings::NetworkLimits;
use crate::{Control, Error};

/// An attempt that failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The next may succeed, after a wait if the server named one.
    Passing {
        error: Error,
        wait: Option<Duration>,
    },
    /// Paused or cancelled by the caller.
    Interrupted,
    Final(Error),
}

impl Trouble {
    pub fn passing(error: Error) -> Self {
        Self::Passing { error, wait: None }
    }

    /// Whether it ends the download with an error of this kind.
    pub fn is_final_with(&self, is_it: impl FnOnce(&Error) -> bool) -> bool {
        matches!(self, Self::Final(error) if is_it(error))
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Counts attempts that brought nothing, and waits between them.
#[derive(Debug)]
pub(crate) struct Retries<'a> {
    limits: &'a NetworkLimits,
    control: &'a Control,
    attempts: u32,
    fruitless: u32,
}

/// Attempts before anything was got: a wrong address shows soon.
const AT_FIRST: u32 = 3;

impl<'a> Retries<'a> {
    pub fn new(limits: &'a NetworkLimits, control: &'a Control) -> Self {
        Self { limits, control, attempts: limits.attempts, fruitless: 0 }
    }

    /// For the questions before a download.
    pub fn at_first(limits: &'a NetworkLimits, control: &'a Control) -> Self {
        Self { attempts: limits.attempts.min(AT_FIRST), ..Self::new(limits, control) }
    }

    /// An attempt brought something: counting begins anew.
    pub fn progressed(&mut self) {
        self.fruitless = 0;
    }

    /// Waits before the next attempt, or ends with what is wrong. `tell` hears
    /// of the wait.
    pub async fn after(
        &mut self,
        trouble: Trouble,
        tell: &mut (dyn FnMut(&Error, Duration) + Send),
    ) -> Result<(), Error> {
        let (error, asked) = match trouble {
            Trouble::Final(error) => return Err(error),
            Trouble::Interrupted => return self.control.ready().await,
            Trouble::Passing { error, wait } => (error, wait),
        };
        self.fruitless += 1;
        let longest = self.limits.longest_pause;
        if self.fruitless >= self.attempts || asked.is_some_and(|wait| wait > longest) {
            return Err(error);
        }
        let doubled = self.limits.pause.saturating_mul(1 << (self.fruitless - 1).min(16)).min(longest);
        let wait = asked.unwrap_or(doubled);
        tell(&error, wait);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.control.interrupted() => {}
        }
        self.control.ready().await
    }
}
