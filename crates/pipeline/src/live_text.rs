use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// More often nobody can read it.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);

/// Where the text goes that is being written, while it may still change. Without anyone who listens it costs nothing.
#[derive(Default)]
pub struct LiveText {
    listener: OnceLock<Box<dyn Fn(String) + Send + Sync>>,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    last: Option<Instant>,
    /// Characters of the text that is on the screen, which no shorter beginning of the same text replaces.
    shown: usize,
}

impl LiveText {
    /// Who is told of it; the first one is kept.
    pub fn listen(&self, listener: impl Fn(String) + Send + Sync + 'static) {
        // A control is made for one job, which has one listener.
        let _ = self.listener.set(Box::new(listener));
    }

    /// Whether anyone is.
    pub fn is_heard(&self) -> bool {
        self.listener.get().is_some()
    }

    /// Tells what is written so far, unless it was told a moment ago.
    pub fn tell(&self, text: impl FnOnce() -> String) {
        let Some(listener) = self.listener.get() else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.last.is_some_and(|last| last.elapsed() < SHORTEST_INTERVAL) {
            return;
        }
        let text = text();
        // A character of which some bytes are still to come.
        let text = text.trim().trim_end_matches(char::REPLACEMENT_CHARACTER);
        if !text.is_empty() && text.chars().count() >= told.shown {
            told.last = Some(Instant::now());
            listener(text.to_owned());
        }
    }

    /// Tells a text that stays on the screen until another one has grown as long, or until it is final.
    pub fn tell_whole(&self, text: &str) {
        let Some(listener) = self.listener.get() else { return };
        if text.is_empty() {
            return;
        }
        self.told.lock().unwrap_or_else(PoisonError::into_inner).shown = text.chars().count();
        listener(text.to_owned());
    }

    /// What was told is final, or gone.
    pub fn clear(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Told::default();
    }
}

impl fmt::Debug for LiveText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LiveText").field("told", &self.told).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_text_on_the_screen_is_replaced_once_another_is_as_long() {
        let live = LiveText::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        live.listen(move |text| ears.lock().unwrap().push(text));
        let ready = || live.told.lock().unwrap().last = None;
        live.tell_whole("good morning");
        for text in ["good", "good mornin", " good evening", "good"] {
            ready();
            live.tell(|| text.into());
        }
        live.clear();
        live.tell(String::new);
        live.tell(|| "and \u{fffd}".into());
        // A moment later.
        live.tell(|| "and then".into());
        assert_eq!(*heard.lock().unwrap(), ["good morning", "good evening", "and "]);
    }
}
