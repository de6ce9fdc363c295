//! How fast a sender sends: at the rate that its interface carried, or faster while the interface had nothing to send
//! (Gopal 2007, section 3.2.1). Two timers are its only state; feedback plays no part.
//!
//! Invariant: packets leave one at a time, `interval / rate` apart. Each departure follows from the previous one, not
//! from the decision, so rates below one packet per interval work too, and a decision causes neither a gap nor a
//! pair.

use airlane_base::{Duration, Instant};

use super::config::{ClapConfig, FlowRule};

/// The status of an interface over its last interval, or that of the node on the path that offers least (Gopal 2007,
/// section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Packets that the MAC took for transmission.
    pub out: u32,
    /// Times that the MAC could send but its queue was empty. An interface that was idle for the whole interval
    /// reports at least 1.
    pub underflows: u32,
    /// Packets for which the interface's queue has room.
    pub room: u32,
    /// Flows of the node that share this status equally; 0 counts as 1.
    pub flows: u32,
}

/// Decides when the next packet may leave.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    rule: FlowRule,
    share: f64,
    interval: Duration,
    route_lasts: Duration,
    local: Option<Status>,
    /// The status that came back along the path, and when it came.
    route: Option<(Status, Instant)>,
    /// The measured rate of the path, packets per interval.
    found: Option<f64>,
    /// Time between two packets; none at rate 0.
    spacing: Option<Duration>,
    next_decision: Option<Instant>,
    next_send: Option<Instant>,
    last_send: Option<Instant>,
}

impl Pacer {
    pub(super) fn new(config: &ClapConfig) -> Self {
        Self {
            rule: config.flow_rule,
            share: config.queue_share,
            interval: config.interval,
            route_lasts: config.route_lasts.unwrap_or(config.interval * 2),
            local: None,
            route: None,
            found: config
                .fixed_rate()
                .map(|rate| f64::from(rate) * config.interval.as_secs_f64()),
            spacing: None,
            next_decision: None,
            next_send: None,
            last_send: None,
        }
    }

    /// Starts the timers. The first decision comes at the next multiple of the interval, offset by `phase` from the
    /// origin.
    pub(super) fn start(&mut self, now: Instant, phase: Duration) {
        let interval = self.interval.as_nanos().max(1);
        let first = Instant::ORIGIN + Duration::from_nanos(phase.as_nanos() % interval);
        let passed = now.saturating_since(first).as_nanos().div_ceil(interval);
        self.next_decision = Some(first + self.interval * passed);
        if self.found.is_some() {
            self.decide(now);
        }
    }

    pub(super) fn stop(&mut self) {
        self.next_decision = None;
        self.next_send = None;
    }

    pub(super) fn set_local(&mut self, status: Status) {
        self.local = Some(status);
    }

    pub(super) fn set_route(&mut self, now: Instant, status: Status) {
        self.route = Some((status, now));
    }

    pub(super) fn set_found(&mut self, now: Instant, packets_per_second: f64) {
        self.found = Some(packets_per_second * self.interval.as_secs_f64());
        if self.next_decision.is_some() {
            // Rates change so often that a late driver would lose its delay each time: an overdue departure keeps its
            // time.
            let owed = self.next_send.filter(|at| *at <= now);
            self.decide(now);
            self.next_send = owed.or(self.next_send);
        }
    }

    pub(super) fn forget_found(&mut self, now: Instant) {
        if self.found.take().is_some() && self.next_decision.is_some() {
            self.decide(now);
        }
    }

    /// Advances time; true if a packet may leave now. An early call does nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.next_decision.is_some_and(|at| at <= now) {
            self.next_decision = Some(now + self.interval);
            self.decide(now);
        }
        let due = self.next_send.is_some_and(|at| at <= now);
        if due {
            self.last_send = Some(now);
            self.next_send = self.spacing.map(|spacing| now + spacing);
        }
        due
    }

    fn decide(&mut self, now: Instant) {
        let route = self
            .route
            .filter(|(_, at)| now.saturating_since(*at) <= self.route_lasts);
        let status = route.map(|(status, _)| status).or(self.local);
        let rate = match (self.found, status) {
            (Some(found), _) => found,
            (None, Some(status)) => self.rate(status),
            (None, None) => 0.0,
        };
        self.spacing = (rate > 0.0).then(|| {
            let nanos = self.interval.as_nanos() as f64 / rate;
            Duration::from_nanos((nanos + 0.5) as u64).max(Duration::from_nanos(1))
        });
        self.next_send = self.spacing.map(|spacing| match self.last_send {
            Some(last) => now.max(last + spacing),
            None => now,
        });
    }

    /// The rate, packets per interval, with its fraction.
    fn rate(&self, status: Status) -> f64 {
        let out = f64::from(status.out);
        let offered = self.share * f64::from(status.room);
        let rate = match (status.underflows, self.rule) {
            (0, _) => out,
            (_, FlowRule::Literal) => offered,
            (_, FlowRule::Additive) => out + offered,
        };
        rate / f64::from(status.flows.max(1))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next_decision.into_iter().chain(self.next_send).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn pacer(rule: FlowRule) -> Pacer {
        let mut pacer = Pacer::new(&ClapConfig {
            flow_rule: rule,
            ..ClapConfig::default()
        });
        pacer.start(at(0), Duration::from_millis(30));
        pacer
    }

    fn status(out: u32, underflows: u32, room: u32) -> Status {
        Status {
            out,
            underflows,
            room,
            flows: 1,
        }
    }

    /// Departure times until `end`, ns.
    fn sends(pacer: &mut Pacer, end: Instant) -> Vec<u64> {
        let mut sends = vec![];
        while let Some(next) = pacer.poll_timeout().filter(|next| *next < end) {
            if pacer.handle_timeout(next) {
                sends.push(next.as_nanos());
            }
            assert!(pacer.poll_timeout().is_none_or(|due| due > next));
        }
        sends
    }

    #[test]
    fn the_two_rules_differ_only_where_the_interface_ran_dry() {
        for (rule, dry) in [(FlowRule::Additive, 70.0), (FlowRule::Literal, 50.0)] {
            let pacer = pacer(rule);
            assert_eq!(pacer.rate(status(20, 1, 100)), dry);
            assert_eq!(pacer.rate(status(20, 0, 100)), 20.0);
        }
    }

    #[test]
    fn flows_of_one_node_share_and_fractions_stay_in_the_spacing() {
        let mut pacer = pacer(FlowRule::Additive);
        pacer.set_local(Status {
            flows: 2,
            ..status(61, 0, 0)
        });
        let sends = sends(&mut pacer, at(1_030));
        assert_eq!(sends[0], 30_000_000);
        // 30.5 packets in each of ten intervals, equally spaced except for rounding at decisions.
        assert!((304..=306).contains(&sends.len()), "{}", sends.len());
        let gaps = sends.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap == 3_278_689));
    }

    #[test]
    fn a_rate_below_one_packet_per_interval_still_sends() {
        let mut pacer = pacer(FlowRule::Literal);
        pacer.set_local(status(0, 1, 1));
        assert_eq!(sends(&mut pacer, at(1_030)).len(), 5);
    }

    #[test]
    fn nothing_leaves_before_an_interface_report() {
        let mut pacer = pacer(FlowRule::Additive);
        assert!(sends(&mut pacer, at(500)).is_empty());
        pacer.set_local(status(0, 1, 100));
        assert!(!sends(&mut pacer, at(700)).is_empty());
        pacer.set_local(status(0, 0, 100));
        sends(&mut pacer, at(800));
        assert!(sends(&mut pacer, at(1_000)).is_empty());
    }

    #[test]
    fn a_found_rate_applies_at_once_and_overrides_reports() {
        let mut pacer = pacer(FlowRule::Additive);
        pacer.set_local(status(40, 0, 0));
        pacer.set_found(at(0), 1_000.0);
        assert_eq!(sends(&mut pacer, at(100)).len(), 100);
        pacer.set_found(at(100), 100.0);
        assert_eq!(sends(&mut pacer, at(200)).len(), 10);
    }

    #[test]
    fn a_late_driver_does_not_lower_the_found_rate() {
        let mut pacer = pacer(FlowRule::Additive);
        pacer.set_found(at(30), 1_000.0);
        let mut sent = 0;
        for ms in (30..1_030).step_by(5) {
            // The driver comes 3 ms late, and sets the rate first.
            let now = at(ms + 3);
            pacer.set_found(now, 1_000.0);
            while let Some(due) = pacer.poll_timeout().filter(|due| *due <= now) {
                sent += u32::from(pacer.handle_timeout(due));
            }
        }
        assert!((998..=1_002).contains(&sent), "{sent}");
    }

    #[test]
    fn a_report_of_the_path_counts_for_two_intervals() {
        let mut pacer = pacer(FlowRule::Additive);
        pacer.set_local(status(40, 0, 0));
        pacer.set_route(at(25), status(10, 0, 0));
        let sends = sends(&mut pacer, at(430));
        let within = |from: u64, to: u64| {
            let inside = |ns: &&u64| (from * 1_000_000..to * 1_000_000).contains(*ns);
            sends.iter().filter(inside).count()
        };
        assert_eq!((within(30, 230), within(330, 430)), (20, 40));
        pacer.route_lasts = Duration::from_secs(1);
        pacer.set_route(at(430), status(10, 0, 0));
        assert_eq!(self::sends(&mut pacer, at(1_030)).len(), 60);
    }
}
