use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// What the latest panic said and where. Global, since a panic on one of a
/// pool's threads is caught on the thread that waits for the pool.
static LATEST: Mutex<Option<String>> = Mutex::new(None);

/// Has every panic remembered, and printed on standard error as before.
pub fn install_hook() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
        let text = format!("{}{}", message(info.payload()), place.unwrap_or_default());
        *LATEST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
}

/// Runs `work`; a panic in it becomes its message and place.
///
/// The caller throws away what `work` changed, which is why unwind safety is
/// asserted here.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner).take();
        latest.unwrap_or_else(|| message(payload.as_ref()).to_owned())
    })
}

fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
