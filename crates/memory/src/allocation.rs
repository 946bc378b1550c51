//! A limit on what one thread's work may allocate. For decoders of files: a
//! damaged length field can make one ask for all the memory of a machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, counted. Without it as the program's
/// `#[global_allocator]`, [`limited`] limits nothing.
#[derive(Debug)]
pub struct Counted {
    refuse: fn() -> !,
}

/// Bytes that the whole program has allocated and not freed.
static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How far `LIVE` may rise through this thread. Neither made at run time
    /// nor dropped, so an allocator may use it.
    static CEILING: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Counted {
    /// `refuse` is called in place of an allocation that would go beyond the
    /// limit. An allocator must not unwind and its caller can't go on, so it
    /// ends the process; it must not allocate.
    pub const fn new(refuse: fn() -> !) -> Self {
        Self { refuse }
    }

    fn add(&self, bytes: usize) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        // A thread that is ending has no ceiling any more.
        if CEILING.try_with(|ceiling| live > ceiling.get()).unwrap_or(false) {
            (self.refuse)()
        }
    }
}

/// Runs `work`, in which this thread may have the program's memory grow by
/// `bytes` at most. Within a limited piece of work the tighter limit holds.
pub fn limited<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            CEILING.set(self.0);
        }
    }

    let before = CEILING.get();
    let _restore = Restore(before);
    CEILING.set(before.min(LIVE.load(Ordering::Relaxed).saturating_add(bytes)));
    work()
}

// SAFETY: every call goes to the system's allocator with the arguments that
// came; counting allocates nothing and unwinds nowhere.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match size.checked_sub(layout.size()) {
            Some(more) => self.add(more),
            None => drop(LIVE.fetch_sub(layout.size() - size, Ordering::Relaxed)),
        }
        // SAFETY: as the caller's.
        unsafe { System.realloc(block, layout, size) }
    }
}
