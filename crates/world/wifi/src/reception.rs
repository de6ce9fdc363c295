//! What a station receives: at most one of the overlapping frames can be decoded.
//!
//! A frame can be decoded if no other frame that the station hears overlaps it and the station does not send
//! meanwhile. With capture (ns-2's rule) the first frame survives later ones that are ten times weaker; a later one
//! that is stronger than that destroys both.

use airlane_base::Instant;

/// How much weaker a later frame must be for the first one to survive: 10 dB.
const CAPTURE: f64 = 10.0;

/// The receiver of a station.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reception {
    /// Frames that it hears now.
    sensed: u32,
    /// Of these, frames that can destroy others.
    disturbing: u32,
    /// The frame that may be decoded: its number, its power, and whether it is still intact.
    current: Option<(u64, f64, bool)>,
    /// When the last frame that it heard ended.
    quiet_since: Instant,
    /// Whether that could not be decoded.
    garbage: bool,
}

impl Reception {
    /// A frame begins. `disturbs` says whether it is strong enough to destroy others here, `silent` whether the
    /// station itself does not send.
    pub(crate) fn begin(
        &mut self,
        frame: u64,
        power: f64,
        disturbs: bool,
        silent: bool,
        capture: bool,
    ) {
        self.sensed += 1;
        if !disturbs {
            return;
        }
        self.disturbing += 1;
        if self.disturbing == 1 {
            self.current = Some((frame, power, silent));
        } else if let Some((_, first, whole)) = &mut self.current
            && !(capture && *first >= CAPTURE * power)
        {
            *whole = false;
        }
    }

    /// The station begins to send: the frame that it was receiving is lost.
    pub(crate) fn deafen(&mut self) {
        if let Some((_, _, whole)) = &mut self.current {
            *whole = false;
        }
    }

    /// A frame ends; true if it was received without overlap.
    pub(crate) fn end(&mut self, frame: u64, disturbs: bool) -> bool {
        self.sensed -= 1;
        self.disturbing -= u32::from(disturbs);
        match self.current {
            Some((current, _, whole)) if current == frame => {
                self.current = None;
                whole
            }
            _ => false,
        }
    }

    /// The frame that ended was heard by a station that does not send itself.
    pub(crate) fn heard(&mut self, now: Instant, decoded: bool) {
        self.quiet_since = now;
        self.garbage = !decoded;
    }

    /// Whether nothing is heard.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sensed == 0
    }

    /// When the last frame that it heard ended, and whether that could not be decoded.
    pub(crate) fn last(&self) -> (Instant, bool) {
        (self.quiet_since, self.garbage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(first: f64, second: f64, capture: bool) -> [bool; 2] {
        let mut ears = Reception::default();
        ears.begin(1, first, true, true, capture);
        ears.begin(2, second, true, true, capture);
        let one = ears.end(1, true);
        let two = ears.end(2, true);
        assert!(ears.is_quiet());
        [one, two]
    }

    #[test]
    fn overlapping_frames_destroy_each_other_unless_the_first_is_ten_times_stronger() {
        assert_eq!(overlap(10.0, 1.0, true), [true, false]);
        assert_eq!(overlap(10.0, 1.1, true), [false, false]);
        assert_eq!(overlap(1.0, 100.0, true), [false, false]);
        assert_eq!(overlap(10.0, 1.0, false), [false, false]);
    }

    #[test]
    fn a_sending_station_hears_nothing() {
        let mut ears = Reception::default();
        ears.begin(1, 1.0, true, true, true);
        ears.deafen();
        assert!(!ears.end(1, true));
        ears.begin(2, 1.0, true, false, true);
        assert!(!ears.end(2, true));
    }

    #[test]
    fn a_weak_signal_only_keeps_the_channel_busy() {
        let mut ears = Reception::default();
        ears.begin(1, 0.1, false, true, true);
        ears.begin(2, 1.0, true, true, true);
        assert!(ears.end(2, true) && !ears.is_quiet());
        assert!(!ears.end(1, false) && ears.is_quiet());
    }
}
