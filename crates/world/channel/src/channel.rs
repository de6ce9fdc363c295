//! One direction of a link: queue, serialisation, errors, propagation.
//!
//! ```text
//! send ─► [ FIFO queue, bounded ] ─► serialise at `rate` ─► [ policer ] ─► error model ─► `delay` ─► poll_deliver
//! ```
//!
//! The next departure of a FIFO link is known when a frame is handed over, so nothing is ever
//! polled: one call per frame, no event per departure. A frame waits until the frame before it has
//! left. The frame being sent no longer counts as queued, so an idle link accepts a frame even with
//! a queue of zero. Serialisation time is rounded up to whole nanoseconds for each frame.
//!
//! The same holds where the rate changes ([`RateSteps`](crate::RateSteps)), because all steps are
//! known in advance. A link that sends at given times only
//! ([`Opportunities`](crate::Opportunities)) has no serialisation rate: a frame waits in the queue
//! for its first opportunity, even on an idle link.
//!
//! Invariants: departures never go back, nor do arrivals without [jitter](crate::JitterConfig);
//! `offered = dropped_queue + lost_air + delivered + in flight`; no allocation once the deques have
//! grown to the number of frames on the link.

use std::collections::VecDeque;
use std::sync::Arc;

use airlane_base::{Duration, Instant, QueueLimit, Rate, Rng, Serialised};
use serde::{Deserialize, Serialize};

use crate::hazards::{Hazards, Met};
use crate::jitter::Jitter;
use crate::opportunities::Cursor;
use crate::{ErrorModel, JitterConfig, LinkRate, PolicerConfig, RateSteps};

/// The parameters of one direction of a link, except its error model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Serialisation rate; the mean rate if the link's rate varies.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// How much may wait for the transmitter, not counting the frame being sent.
    pub queue: QueueLimit,
}

/// A number of frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Total bytes of these frames.
    pub bytes: u64,
}

impl Count {
    /// Whether nothing was counted.
    pub const fn is_zero(&self) -> bool {
        self.frames == 0
    }

    /// The sum of both counts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Counts one more frame of `len` bytes.
    pub const fn add(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }
}

/// What happened to the frames of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelStats {
    /// Frames handed over.
    pub offered: Count,
    /// Frames refused because the queue was full.
    pub dropped_queue: Count,
    /// Frames sent and lost on the air.
    pub lost_air: Count,
    /// Of `lost_air`, frames that left during an outage.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub lost_outage: Count,
    /// Of `lost_air`, frames that were on the link, or destined for it, after a node had left it.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub lost_handoff: Count,
    /// Of `lost_air`, frames that exceeded a policer's rate and burst.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub lost_policed: Count,
    /// Frames taken out at the receiving end.
    pub delivered: Count,
    /// Of `delivered`, frames that arrived after a frame sent later; only with jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtaken: Option<Count>,
}

#[derive(Clone, Debug)]
struct InFlight<T> {
    arrives: Instant,
    // 32 bits, so that it shares a word with the flag: these structs are copied once per frame.
    len: u32,
    overtaken: bool,
    item: T,
}

impl<T> InFlight<T> {
    const fn len(&self) -> usize {
        self.len as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    starts: Instant,
    len: usize,
}

/// What determines when frames leave.
#[derive(Debug)]
enum Pace {
    /// The configured rate, all the time.
    Constant(Serialised),
    /// Rates that follow each other.
    Steps(Box<RateSteps>),
    /// Given times at which the link may send.
    Opportunities(Box<Cursor>),
}

/// One direction of a link that carries items of type `T`.
#[derive(Debug)]
pub struct Channel<T> {
    config: ChannelConfig,
    /// Air time per frame in addition to its bits: winning the medium and synchronising the
    /// receiver.
    overhead: Duration,
    errors: ErrorModel,
    pace: Pace,
    /// Outages, policing and jitter; `None` on links without any.
    hazards: Option<Box<Hazards>>,
    /// When the transmitter becomes idle.
    free: Instant,
    /// When the last frame handed over begins to leave.
    last_start: Instant,
    /// Frames that had not begun to leave at the last `send`.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Length of the frame that was being sent at the last `send`.
    leaving: usize,
    /// Frames in flight, in order of arrival.
    pipe: VecDeque<InFlight<T>>,
    /// Arrival of the last frame in flight or delivered; with jitter, its arrival by the usual
    /// delay.
    last_arrival: Instant,
    /// Frames in flight that errors have destroyed, in order of arrival; kept only on request.
    destroyed: Option<VecDeque<InFlight<T>>>,
    stats: ChannelStats,
}

impl<T> Channel<T> {
    /// An idle, empty channel.
    pub fn new(config: ChannelConfig, errors: ErrorModel) -> Self {
        Self {
            config,
            overhead: Duration::ZERO,
            errors,
            pace: Pace::Constant(Serialised::new(config.rate)),
            hazards: None,
            free: Instant::ORIGIN,
            last_start: Instant::ORIGIN,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            leaving: 0,
            pipe: VecDeque::new(),
            last_arrival: Instant::ORIGIN,
            destroyed: None,
            stats: ChannelStats::default(),
        }
    }

    /// Makes the channel send at this rate, whose mean must be the configured one. A trace must
    /// have been loaded.
    #[must_use]
    pub fn with_rate(mut self, rate: &LinkRate) -> Self {
        self.pace = match rate {
            LinkRate::Constant(rate) => Pace::Constant(Serialised::new(*rate)),
            LinkRate::Steps(steps) => Pace::Steps(Box::new(steps.clone())),
            LinkRate::Opportunities(_) => {
                let times = rate.opportunities().expect("the caller has read the trace");
                Pace::Opportunities(Box::new(Cursor::new(Arc::clone(times))))
            }
        };
        self
    }

    /// Adds this time to every frame's time on the air.
    #[must_use]
    pub fn with_overhead(mut self, overhead: Duration) -> Self {
        self.overhead = overhead;
        self
    }

    fn hazards(&mut self) -> &mut Hazards {
        self.hazards.get_or_insert_default()
    }

    /// Adds outages `[from, to)`, in order and not overlapping. A frame is lost if any part of it
    /// leaves during an outage.
    #[must_use]
    pub fn with_outages(mut self, outages: impl IntoIterator<Item = [Instant; 2]>) -> Self {
        for outage in outages {
            self.hazards().outages.push_back(outage);
        }
        self
    }

    /// Adds absences of the far end, given as outages are. A frame is lost if it is in flight
    /// during any part of an absence.
    #[must_use]
    pub fn with_absences(mut self, absences: impl IntoIterator<Item = [Instant; 2]>) -> Self {
        for absence in absences {
            self.hazards().absences.push_back(absence);
        }
        self
    }

    /// Puts a policer after the transmitter.
    #[must_use]
    pub fn with_police(mut self, police: Option<PolicerConfig>) -> Self {
        if let Some(police) = police {
            self.hazards().police = Some(police.bucket());
        }
        self
    }

    /// Makes delays vary from frame to frame, drawn from `random`.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Option<JitterConfig>, random: Rng) -> Self {
        if let Some(config) = jitter {
            self.stats.overtaken = Some(Count::default());
            self.hazards().jitter = Some(Jitter::new(config, random));
        }
        self
    }

    /// Keeps frames that errors destroy, for [`poll_destroyed`](Self::poll_destroyed).
    #[must_use]
    pub fn with_destroyed(mut self) -> Self {
        self.destroyed = Some(VecDeque::new());
        self
    }

    /// Hands over a frame of `len` bytes. Returns when its last bit leaves.
    ///
    /// A frame that is lost on the air is counted and discarded. `now` must not go back.
    ///
    /// # Errors
    /// Returns the item if the queue is full, and counts it as dropped.
    #[inline]
    pub fn send(&mut self, now: Instant, len: usize, item: T) -> Result<Instant, T> {
        self.stats.offered.add(len);
        let start = self.next_start(now);
        if start <= now {
            self.waiting.clear();
            (self.waiting_bytes, self.leaving) = (0, len);
        } else {
            self.begin_transmissions(now);
            let (packets, bytes) = (self.waiting.len(), self.waiting_bytes);
            if !self.config.queue.admits(packets, bytes, len) {
                self.stats.dropped_queue.add(len);
                return Err(item);
            }
            self.waiting.push_back(Waiting { starts: start, len });
            self.waiting_bytes += len;
        }
        Ok(self.transmit(start, len, item))
    }

    /// Whether the queue has room for `len` more bytes under `limit` instead of the configured
    /// limit.
    pub fn has_room(&mut self, now: Instant, len: usize, limit: QueueLimit) -> bool {
        if self.next_start(now) <= now {
            return limit.admits(0, 0, len);
        }
        self.begin_transmissions(now);
        limit.admits(self.waiting.len(), self.waiting_bytes, len)
    }

    /// When a frame handed over now would begin to leave.
    #[inline]
    pub fn next_start(&mut self, now: Instant) -> Instant {
        match &mut self.pace {
            Pace::Constant(_) | Pace::Steps(_) => self.free.max(now),
            Pace::Opportunities(cursor) => cursor.start(now),
        }
    }

    /// Hands over a frame of `len` bytes that begins to leave at `start`, the value that
    /// [`next_start`](Self::next_start) last returned. Returns when its last bit leaves.
    pub fn send_at(&mut self, start: Instant, len: usize, item: T) -> Instant {
        self.stats.offered.add(len);
        self.leaving = len;
        self.transmit(start, len, item)
    }

    /// Counts a frame that was dropped by a full queue in front of the channel.
    pub fn refuse(&mut self, len: usize) {
        self.stats.offered.add(len);
        self.stats.dropped_queue.add(len);
    }

    // Inlined to avoid copying the item, which the caller has just written.
    #[inline(always)]
    fn transmit(&mut self, start: Instant, len: usize, item: T) -> Instant {
        let departs = match &mut self.pace {
            Pace::Constant(frame) => start + self.overhead + frame.time(self.config.rate, len),
            Pace::Steps(steps) => steps.departure(start + self.overhead, len),
            Pace::Opportunities(cursor) => cursor.take(len),
        };
        (self.last_start, self.free) = (start, departs);
        // The error model always advances, so that schemes meet the same fades with outages or
        // without.
        let lost = self.errors.loses(start, departs, len);
        let usually = departs + self.config.delay + self.errors.lateness(start);
        let arrives = usually.max(self.last_arrival);
        // A closure, so that the frame is built in its place. A frame is shorter than 4 GB.
        let frame = || InFlight {
            arrives,
            len: len as u32,
            overtaken: false,
            item,
        };
        if !lost && self.hazards.is_none() {
            self.last_arrival = arrives;
            self.pipe.push_back(frame());
        } else {
            self.meet(frame(), lost, [start, departs], usually);
        }
        departs
    }

    /// Sends a frame that is `lost` to errors or may meet a hazard.
    #[cold]
    fn meet(&mut self, mut frame: InFlight<T>, lost: bool, leaves: [Instant; 2], usually: Instant) {
        let met = match &mut self.hazards {
            None => Met::nothing(frame.arrives),
            Some(hazards) => hazards.meet(leaves, [usually, self.last_arrival], frame.len()),
        };
        frame.arrives = met.arrives;
        if lost || met.is_loss() {
            return self.lose(frame, met);
        }
        self.last_arrival = met.bounds;
        // Insert the frame before those that arrive later.
        let later = self.pipe.iter_mut().rev();
        let mut passed = 0;
        for other in later.take_while(|other| other.arrives > frame.arrives) {
            other.overtaken = true;
            passed += 1;
        }
        self.pipe.insert(self.pipe.len() - passed, frame);
    }

    /// Counts a frame that is lost, and keeps it if only errors destroyed it and the caller wants
    /// such frames.
    fn lose(&mut self, mut frame: InFlight<T>, met: Met) {
        self.stats.lost_air.add(frame.len());
        if met.down {
            self.stats.lost_outage.add(frame.len());
        }
        if met.gone {
            self.stats.lost_handoff.add(frame.len());
        }
        if met.exceeds {
            self.stats.lost_policed.add(frame.len());
        }
        if let Some(destroyed) = &mut self.destroyed
            && !met.is_loss()
        {
            if let Some(last) = destroyed.back() {
                frame.arrives = frame.arrives.max(last.arrives);
            }
            destroyed.push_back(frame);
        }
    }

    /// Removes the frames that have begun to leave by `now` from the queue.
    fn begin_transmissions(&mut self, now: Instant) {
        while let Some(head) = self.waiting.front()
            && head.starts <= now
        {
            self.waiting_bytes -= head.len;
            self.leaving = head.len;
            self.waiting.pop_front();
        }
    }

    /// The next frame that has arrived by `now`, in order of arrival.
    #[inline]
    pub fn poll_deliver(&mut self, now: Instant) -> Option<T> {
        let front = self.pipe.front().filter(|frame| frame.arrives <= now)?;
        self.stats.delivered.add(front.len());
        if front.overtaken
            && let Some(overtaken) = &mut self.stats.overtaken
        {
            overtaken.add(front.len());
        }
        // Counted in place, so that only the item is copied.
        self.pipe.pop_front().map(|frame| frame.item)
    }

    /// The next destroyed frame that would have arrived by `now`, if the channel was built
    /// [`with_destroyed`](Self::with_destroyed). It is already counted as lost.
    #[inline]
    pub fn poll_destroyed(&mut self, now: Instant) -> Option<T> {
        let destroyed = self.destroyed.as_mut()?;
        let frame = destroyed.pop_front_if(|frame| frame.arrives <= now)?;
        Some(frame.item)
    }

    /// When the next frame arrives.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let whole = self.pipe.front().map(|frame| frame.arrives);
        match &self.destroyed {
            None => whole,
            Some(destroyed) => {
                let destroyed = destroyed.front().map(|frame| frame.arrives);
                whole.into_iter().chain(destroyed).min()
            }
        }
    }

    /// When the transmitter becomes idle; in the past if it already is.
    pub const fn free_at(&self) -> Instant {
        self.free
    }

    /// When the last frame handed over begins to leave, or began to.
    pub const fn last_start(&self) -> Instant {
        self.last_start
    }

    /// Bits sent by `now` over bits that could have been sent: 0 to 1. At a rate, a frame leaves
    /// bit by bit, and its overhead counts as unused time; with opportunities, those count that
    /// have passed. `now` must not be before the last frame was handed over.
    pub fn utilisation(&self, now: Instant) -> f64 {
        // In bits times nanoseconds, which are exact.
        const SECOND: u128 = 1_000_000_000;
        let accepted = self.stats.offered.bytes - self.stats.dropped_queue.bytes;
        let bits = |bytes: u64| u128::from(bytes) * 8 * SECOND;
        let (unsent, could) = match &self.pace {
            Pace::Opportunities(cursor) => (bits(cursor.unsent(now)), bits(cursor.passed(now))),
            Pace::Constant(_) | Pace::Steps(_) => (self.unsent(now), self.carried(now)),
        };
        match could {
            0 => 0.0,
            _ => (bits(accepted) - unsent) as f64 / could as f64,
        }
    }

    /// What the rate could have sent by `until`, in bits times nanoseconds.
    fn carried(&self, until: Instant) -> u128 {
        match &self.pace {
            Pace::Steps(steps) => steps.carried(until),
            _ => u128::from(self.config.rate.as_bps()) * u128::from(until.as_nanos()),
        }
    }

    /// What was accepted by `now` but leaves later, including the rest of the frame being sent, in
    /// bits times nanoseconds.
    fn unsent(&self, now: Instant) -> u128 {
        let bits = |bytes: usize| bytes as u128 * 8_000_000_000;
        let begun = self.waiting.iter().take_while(|frame| frame.starts <= now);
        let leaving = begun.clone().last().map_or(self.leaving, |frame| frame.len);
        let mut waiting = self.waiting.iter().skip(begun.count()).peekable();
        let left = waiting.peek().map_or(self.free, |next| next.starts);
        let rest = self.carried(left).saturating_sub(self.carried(now));
        let rest = rest.min(bits(leaving));
        rest + waiting.map(|frame| bits(frame.len)).sum::<u128>()
    }

    /// Rate, delay and queue limit.
    pub const fn config(&self) -> &ChannelConfig {
        &self.config
    }

    /// The error model.
    pub const fn errors(&self) -> &ErrorModel {
        &self.errors
    }

    /// Frames in flight or queued that are not lost.
    pub fn under_way(&self) -> Count {
        let mut count = Count::default();
        self.pipe.iter().for_each(|frame| count.add(frame.len()));
        count
    }

    /// Counters of this direction.
    pub const fn stats(&self) -> &ChannelStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorModelConfig;
    use airlane_base::{Probability, Streams};

    fn channel<T>(bps: u64, delay: Duration, queue: &str, loss: f64) -> Channel<T> {
        let rate = Rate::from_bps(bps).unwrap();
        let errors = ErrorModelConfig::Uniform {
            rate: Probability::new(loss).unwrap(),
        };
        let config = ChannelConfig {
            rate,
            delay,
            queue: queue.parse().unwrap(),
        };
        let errors = ErrorModel::new(&errors, rate, Streams::new(1, 0), "test");
        Channel::new(config, errors)
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn waiting_and_serialising_frames_have_not_left() {
        // 10 B take 10 ms, plus 5 ms of overhead.
        let mut c = channel(8_000, MS * 99, "9 packets", 0.5).with_overhead(MS * 5);
        let at = |ms| Instant::ORIGIN + MS * ms;
        for id in 0..3 {
            c.send(at(0), 10, id).unwrap();
        }
        for (ms, bytes) in [
            (0, 0),
            (4, 0),
            (7, 2),
            (15, 10),
            (19, 10),
            (25, 15),
            (45, 30),
            (90, 30),
        ] {
            let expected = if ms == 0 {
                0.0
            } else {
                f64::from(bytes) / f64::from(ms)
            };
            assert_eq!(c.utilisation(at(u64::from(ms as u32))), expected, "{ms} ms");
        }
        c.send(at(90), 10, 3).unwrap();
        assert_eq!(c.utilisation(at(100)), 35.0 / 100.0);
    }

    #[test]
    fn a_frame_takes_serialisation_and_propagation() {
        // 51 B at 14.4 kbit/s take 28.33333... ms, rounded up to the nanosecond.
        let mut c = channel(14_400, MS * 100, "50 packets", 0.0);
        let departs = c.send(Instant::ORIGIN, 51, "a").unwrap();
        assert_eq!(departs.as_nanos(), 28_333_334);
        assert_eq!(c.poll_timeout(), Some(departs + MS * 100));
        assert_eq!(c.poll_deliver(departs + MS * 99), None);
        assert_eq!(c.poll_deliver(departs + MS * 100), Some("a"));
        assert_eq!(c.poll_timeout(), None);
    }

    #[test]
    fn a_policer_drops_exactly_the_excess() {
        // A frame takes 1 ms on the link; the token bucket holds three and earns one every 10 ms.
        let police = PolicerConfig {
            rate: "8 kbit/s".parse().unwrap(),
            burst: "30 B".parse().unwrap(),
        };
        let mut c = channel(80_000, MS, "999 packets", 0.0).with_police(Some(police));
        for id in 0..100 {
            assert!(c.send(Instant::ORIGIN, 10, id).is_ok());
        }
        let arrived: Vec<_> = std::iter::from_fn(|| c.poll_deliver(Instant::FAR_FUTURE)).collect();
        // 100 ms earn ten frames on top of the burst of three; the last one is not yet paid for.
        assert_eq!(arrived.len(), 12, "{arrived:?}");
        assert_eq!(arrived[..4], [0, 1, 2, 10]);
        let s = c.stats();
        assert_eq!((s.lost_policed.frames, s.lost_air.frames), (88, 88));
        assert_eq!(s.offered.frames, s.lost_air.frames + s.delivered.frames);
    }

    #[test]
    fn a_frame_that_is_late_is_overtaken() {
        let jitter = JitterConfig {
            late: MS * 25,
            share: Probability::new(0.1).unwrap(),
            ..JitterConfig::default()
        };
        let random = || Streams::new(1, 0).stream("jitter");
        // A frame takes 10 ms.
        let mut c = channel(8_000, MS * 5, "9999 packets", 0.0).with_jitter(Some(jitter), random());
        for id in 0..1_000_u64 {
            assert!(c.send(Instant::ORIGIN, 10, id).is_ok());
        }
        let mut arrived = vec![];
        while let Some(at) = c.poll_timeout() {
            let id = c.poll_deliver(at).unwrap();
            let usual = Instant::ORIGIN + MS * (10 * (id + 1) + 5);
            assert!(at == usual || at == usual + MS * 25, "{id}");
            arrived.push(id);
        }
        let mut draws = random();
        let late = (0..1_000).filter(|_| draws.chance(0.1)).count();
        let is_overtaken = |at: usize| arrived[..at].iter().any(|id| *id > arrived[at]);
        let overtaken = (0..arrived.len()).filter(|at| is_overtaken(*at)).count() as u64;
        assert_eq!(arrived.len(), 1_000);
        assert_eq!(c.stats().overtaken.unwrap().frames, overtaken);
        // Two late frames in a row keep their order, and nothing overtakes the last ones.
        assert!(overtaken <= late as u64 && overtaken > 80, "{overtaken}");
    }

    #[test]
    fn frames_leave_back_to_back_and_an_idle_link_starts_at_once() {
        let mut c = channel(8_000, Duration::ZERO, "50 packets", 0.0);
        assert_eq!(c.send(Instant::ORIGIN, 1, 1), Ok(Instant::ORIGIN + MS));
        assert_eq!(c.send(Instant::ORIGIN, 2, 2), Ok(Instant::ORIGIN + MS * 3));
        let later = Instant::ORIGIN + MS * 10;
        assert_eq!(c.send(later, 1, 3), Ok(later + MS));
    }

    #[test]
    fn frames_that_meet_an_outage_are_lost() {
        let at = |ms| Instant::ORIGIN + MS * ms;
        // A frame takes 10 ms.
        let mut c = channel(8_000, Duration::ZERO, "50 packets", 0.0)
            .with_outages([[at(25), at(40)], [at(60), at(61)]]);
        for ms in [0, 10, 20, 30, 40, 50, 60, 70] {
            c.send(at(ms), 10, ms).unwrap();
        }
        let arrived: Vec<u64> = std::iter::from_fn(|| c.poll_deliver(at(100))).collect();
        assert_eq!(arrived, [0, 10, 40, 50, 70]);
        assert_eq!(c.stats().lost_outage, c.stats().lost_air);
        assert_eq!(c.stats().lost_outage.frames, 3);
    }

    #[test]
    fn the_queue_does_not_count_the_frame_being_sent() {
        let mut c = channel(8_000, Duration::ZERO, "2 packets", 0.0);
        let at = |ms| Instant::ORIGIN + MS * ms;
        assert!(c.send(at(0), 10, 0).is_ok());
        assert!(c.send(at(0), 10, 1).is_ok());
        assert!(c.send(at(0), 10, 2).is_ok());
        assert_eq!(c.send(at(9), 10, 3), Err(3));
        assert!(c.send(at(10), 10, 4).is_ok(), "the second began to leave");
        assert_eq!(c.send(at(10), 10, 5), Err(5));
        assert_eq!(c.stats().dropped_queue.frames, 2);
        assert_eq!(c.stats().dropped_queue.bytes, 20);
    }

    #[test]
    fn a_queue_of_zero_still_sends_when_idle() {
        let mut c = channel(8_000, Duration::ZERO, "0 packets", 0.0);
        assert!(c.send(Instant::ORIGIN, 1, 0).is_ok());
        assert_eq!(c.send(Instant::ORIGIN, 1, 1), Err(1));
        assert!(c.send(Instant::ORIGIN + MS, 1, 2).is_ok());
    }

    #[test]
    fn destroyed_frames_are_delivered_on_request() {
        let at = |ms| Instant::ORIGIN + MS * ms;
        let mut c = channel(8_000, MS * 5, "9 packets", 1.0).with_destroyed();
        assert!(c.send(at(0), 100, 'a').is_ok());
        assert_eq!(c.poll_timeout(), Some(at(105)));
        assert_eq!(
            (c.poll_deliver(at(105)), c.poll_destroyed(at(104))),
            (None, None)
        );
        assert_eq!(c.poll_destroyed(at(105)), Some('a'));
        assert_eq!((c.poll_timeout(), c.stats().lost_air.frames), (None, 1));
    }

    #[test]
    fn a_lost_frame_still_takes_its_time_on_the_air() {
        let mut c = channel(8_000, Duration::ZERO, "9 packets", 1.0);
        assert_eq!(c.send(Instant::ORIGIN, 1, 1), Ok(Instant::ORIGIN + MS));
        assert_eq!(c.send(Instant::ORIGIN, 1, 2), Ok(Instant::ORIGIN + MS * 2));
        assert_eq!(c.poll_deliver(Instant::FAR_FUTURE), None);
        assert_eq!(c.stats().lost_air.frames, 2);
    }
}
