//! Frames between the ports themselves: marks and reports, from which a port estimates the rate of its link.

use airlane_base::{Instant, Rate};

use super::Port;
use crate::bottleneck::Seen;
use crate::departure::DepartingFrame;
use crate::flow::Packet;
use crate::rate::FoundRate;
use crate::schedule::Turn;
use crate::wire::{Body, Frame, FrameKind, Header, Layout, Report};

impl<P: Packet> Port<P> {
    /// The present sending rate: the configured one, or lower if the port estimates the link's rate.
    #[inline]
    pub fn rate(&self) -> Rate {
        match &self.estimator {
            Some(estimator) => estimator.rate(),
            None => self.config.rate,
        }
    }

    /// The estimated rate and its limit; none where the port does not estimate it.
    pub fn found_rate(&self) -> Option<FoundRate> {
        self.estimator.as_ref().map(|estimator| estimator.found())
    }

    /// The last measurement of the path below; none where the port does not estimate the rate, or has no
    /// recent one.
    pub fn seen(&self, now: Instant) -> Option<Seen> {
        self.estimator.as_ref()?.seen(now)
    }

    /// Moves the estimated rate to this value, as [`Bottlenecks`](crate::Bottlenecks) divides it, bit/s.
    pub fn shift_found(&mut self, bps: u64) {
        if let Some(estimator) = &mut self.estimator {
            estimator.shift(bps);
        }
        self.follow_link();
    }

    /// The path accepts longer or shorter frames from now on; the rate estimator treats it as another link.
    pub fn path_changed(&mut self) {
        if let Some(estimator) = &mut self.estimator {
            estimator.path_changed();
        }
        self.follow_link();
    }

    /// Whether losses have reduced the rate since the last call: the path may have begun to swallow long
    /// frames.
    pub fn doubts_path(&mut self) -> bool {
        self.estimator
            .as_mut()
            .is_some_and(|estimator| estimator.take_losing())
    }

    /// Handles a mark or a report, which no service sees.
    pub(super) fn handle_from_port(&mut self, now: Instant, frame: &Frame<P>) {
        let number = frame.header.seq;
        self.next_timer.set(None);
        match (frame.report(), &mut self.estimator) {
            (Some(report), Some(estimator)) => {
                estimator.handle_report(now, number, report);
                self.follow_link();
            }
            (Some(_), None) => {}
            (None, _) => {
                // The clock and the count wrap.
                let report = Report {
                    received: self.received_bytes as u32,
                    at_us: (now.as_nanos() / 1_000) as u32,
                };
                (self.answer, self.speaks) = (Some((number, report)), true);
            }
        }
        self.received_bytes += self.own_len(frame) as u64;
    }

    /// The frame for the peer's port. It precedes all packets, because it reports the present state of the
    /// link.
    pub(super) fn speak(&mut self, now: Instant) -> Turn<DepartingFrame<P>> {
        let frame = match self.answer.take() {
            Some((number, report)) => Frame {
                header: Header::new(FrameKind::Report, number),
                body: Body::Report(report),
            },
            None => {
                let estimator = self.estimator.as_mut();
                let number = estimator.map_or(0, |estimator| estimator.mark(now, self.sent_bytes));
                Frame::control(FrameKind::Mark, number)
            }
        };
        self.speaks = self
            .estimator
            .as_ref()
            .is_some_and(|estimator| estimator.is_due());
        Turn {
            service: usize::from(frame.header.service),
            len: self.own_len(&frame),
            item: DepartingFrame { frame, came: None },
        }
    }

    pub(super) fn own_len(&self, frame: &Frame<P>) -> usize {
        let codec = self.facts.codec;
        codec.len_without_packet(frame, &Layout::PORTS) + self.config.frame_overhead
    }

    /// Adapts the services' timers to the estimated rate, once it has changed much.
    fn follow_link(&mut self) {
        let Some(estimator) = &self.estimator else {
            return;
        };
        let (found, round_trip) = (estimator.carries(), estimator.round_trip());
        let (was, fitted) = (self.facts.rate.as_bps(), self.fitted);
        let is_another = found.as_bps().abs_diff(was) > was / 4;
        if is_another {
            self.retime(found);
        }
        if is_another || round_trip.as_nanos().abs_diff(fitted.as_nanos()) > fitted.as_nanos() / 4 {
            self.fitted = round_trip;
            for slot in self.slots.iter_mut().flatten() {
                slot.fit_queue(found, round_trip);
            }
        }
    }
}
