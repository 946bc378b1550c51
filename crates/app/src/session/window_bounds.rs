//! The window opens where and as large as it was last closed.

use super::WindowBounds;

/// How much of the title bar has to be on a screen, so that it can be moved.
const GRIP: f64 = 48.0;

/// A screen's place among the others and its size, in the desktop's units.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Its left upper corner.
    pub at: (f64, f64),
    /// Width and height.
    pub size: (f64, f64),
}

impl Screen {
    fn shows(&self, place: &WindowBounds) -> bool {
        let (x, y) = (place.x + GRIP, place.y + GRIP / 2.0);
        (self.at.0..self.at.0 + self.size.0).contains(&x) && (self.at.1..self.at.1 + self.size.1).contains(&y)
    }
}

impl WindowBounds {
    /// The size and the position that was remembered, as far as today's screens
    /// show it: one may have been unplugged since, or become a smaller one.
    pub fn fitted(&self, screens: &[Screen], least: (f64, f64)) -> ((f64, f64), Option<(f64, f64)>) {
        let screen = screens.iter().find(|screen| screen.shows(self));
        let most = screen.or(screens.first()).map_or((f64::MAX, f64::MAX), |screen| screen.size);
        let size = (self.width.min(most.0).max(least.0), self.height.min(most.1).max(least.1));
        (size, screen.map(|_| (self.x, self.y)))
    }

    /// What is remembered of a window that is now like this: the size to go
    /// back to from the whole screen is the one before.
    pub fn after(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if self.maximized => Self { maximized: true, ..before },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_opens_where_it_was_unless_nobody_would_see_it_there() {
        let (left, right) = (
            Screen { at: (0.0, 0.0), size: (1280.0, 800.0) },
            Screen { at: (1280.0, -200.0), size: (1920.0, 1080.0) },
        );
        // (x, y, width, height), screens -> size, position
        for ((x, y, width, height), screens, size, position) in [
            ((10.0, 20.0, 900.0, 700.0), vec![left], (900.0, 700.0), Some((10.0, 20.0))),
            ((1500.0, -150.0, 900.0, 700.0), vec![left, right], (900.0, 700.0), Some((1500.0, -150.0))),
            // The right one was unplugged.
            ((1500.0, -150.0, 1900.0, 1000.0), vec![left], (1280.0, 800.0), None),
            // Its title bar is above the screen, or all but its edge beside it.
            ((100.0, -600.0, 900.0, 700.0), vec![left], (900.0, 700.0), None),
            ((1270.0, 100.0, 900.0, 700.0), vec![left], (900.0, 700.0), None),
            ((-20.0, 0.0, 900.0, 700.0), vec![left], (900.0, 700.0), Some((-20.0, 0.0))),
            // Values that Steno never writes.
            ((0.0, 0.0, 1.0, -5.0), vec![left], (640.0, 480.0), Some((0.0, 0.0))),
            ((5.0, 5.0, 900.0, 700.0), vec![], (900.0, 700.0), None),
        ] {
            let place = WindowBounds { x, y, width, height, maximized: false };
            assert_eq!(place.fitted(&screens, (640.0, 480.0)), (size, position), "{place:?}");
        }
    }
}
