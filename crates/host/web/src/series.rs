//! Series of flows over time, with few enough points to draw.

use airlane_base::{Duration, Instant};
use airlane_sim::event::{Event, Names, Watcher};
use serde::Serialize;

/// A flow over time, interval by interval from the start of the run.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Series {
    flow: String,
    interval_s: f64,
    /// Mean and maximum delay of the packets that arrived in an interval, since their host sent them; none if none did.
    delay_mean_s: Vec<Option<f64>>,
    delay_max_s: Vec<Option<f64>>,
    /// The congestion window at the end of each interval, of the connection that changed it last, segments. Empty without
    /// TCP.
    cwnd_segments: Vec<Option<f64>>,
    /// Retransmission timeouts of TCP, seconds since the start.
    timeouts_s: Vec<f64>,
}

/// Maximum number of timeouts that are kept.
const MOST_MARKS: usize = 2000;

#[derive(Debug, Default)]
struct Interval {
    packets: u64,
    sum_ns: u128,
    max_ns: u64,
    cwnd: Option<f64>,
}

#[derive(Debug, Default)]
struct Flow {
    intervals: Vec<Interval>,
    timeouts_s: Vec<f64>,
}

/// Collects series.
pub(crate) struct Kept<'a> {
    names: &'a Names,
    interval: Duration,
    flows: Vec<Flow>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(names: &'a Names, interval: Duration) -> Self {
        let flows = names.flows().iter().map(|_| Flow::default());
        Self {
            names,
            interval,
            flows: flows.collect(),
        }
    }

    /// The series until the applications stopped.
    pub(crate) fn series(self, stopped_s: f64) -> Vec<Series> {
        let interval_s = self.interval.as_secs_f64();
        let flows = self.names.flows().iter().zip(self.flows);
        flows
            .map(|(name, mut flow)| {
                let within = |at: usize| at as f64 * interval_s < stopped_s;
                let all = flow.intervals.iter().enumerate();
                let count = all.filter(|(at, _)| within(*at)).count();
                flow.intervals.truncate(count);
                let delay = |of: &dyn Fn(&Interval) -> f64| -> Vec<Option<f64>> {
                    let all = flow.intervals.iter();
                    all.map(|each| (each.packets > 0).then(|| of(each) / 1e9))
                        .collect()
                };
                let mut window = None;
                let cwnd = flow.intervals.iter().map(|each| {
                    window = each.cwnd.or(window);
                    window
                });
                let cwnd: Vec<_> = cwnd.collect();
                Series {
                    flow: name.clone(),
                    interval_s,
                    delay_mean_s: delay(&|each| each.sum_ns as f64 / each.packets as f64),
                    delay_max_s: delay(&|each| each.max_ns as f64),
                    cwnd_segments: match window {
                        Some(_) => cwnd,
                        None => vec![],
                    },
                    timeouts_s: flow.timeouts_s,
                }
            })
            .collect()
    }

    fn interval(&mut self, flow: u32, now: Instant) -> Option<&mut Interval> {
        let at = (now.as_nanos() / self.interval.as_nanos().max(1)) as usize;
        let intervals = &mut self.flows.get_mut(flow as usize)?.intervals;
        if at >= intervals.len() {
            intervals.resize_with(at + 1, Interval::default);
        }
        intervals.get_mut(at)
    }
}

impl Watcher for Kept<'_> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::PacketReceived(packet) if packet.role.carries_data() => {
                let delay = now.saturating_since(packet.created).as_nanos();
                if let Some(interval) = self.interval(packet.flow, now) {
                    interval.packets += 1;
                    interval.sum_ns += u128::from(delay);
                    interval.max_ns = interval.max_ns.max(delay);
                }
            }
            Event::TcpState(sender, state) => {
                if let Some(interval) = self.interval(sender.flow, now) {
                    interval.cwnd = Some(state.cwnd_segments);
                }
            }
            Event::Timeout(sender) => {
                if let Some(flow) = self.flows.get_mut(sender.flow as usize)
                    && flow.timeouts_s.len() < MOST_MARKS
                {
                    flow.timeouts_s.push(now.as_secs_f64());
                }
            }
            _ => {}
        }
    }
}
