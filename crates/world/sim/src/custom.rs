//! User-supplied parts of a world: error models, applications, weight policies.
//!
//! [`Prepared::run_custom`](crate::Prepared::run_custom) uses them in place of what the scenario says. Their random
//! numbers come from streams of their own, so a seed repeats them and they disturb no other component.

use std::collections::BTreeMap;
use std::fmt;

use airlane_base::{Duration, Instant, Rng};
use airlane_channel::CustomErrors;
use airlane_link::ServiceStatus;

/// Makes the error model of a direction of a link. It gets the random stream from which a built-in model would draw
/// its errors, at its beginning.
pub type ErrorsFactory = Box<dyn FnOnce(Rng) -> Box<dyn CustomErrors> + Send>;

/// Makes the application of a flow. Its random stream is the same in all repetitions, as for built-in applications.
pub type AppFactory = Box<dyn FnOnce(Rng) -> Box<dyn Application> + Send>;

/// What sends and receives at both ends of a flow.
///
/// The flow's ends, transport, packet size and start are those of the scenario. Over TCP there is one connection in
/// each direction for the whole run; over UDP each send leaves in datagrams of at most the packet size.
pub trait Application: fmt::Debug + Send {
    /// The flow begins.
    fn on_start(&mut self, host: &mut Host);
    /// Bytes have arrived: over TCP in order and once, over UDP a datagram.
    fn on_delivered(&mut self, host: &mut Host, delivery: Delivery);
    /// The timer that [`Host::set_timer`] set has expired.
    fn on_timer(&mut self, host: &mut Host);
}

/// Data that has arrived at one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The end that got it: 0 for the flow's first end, 1 for its second.
    pub end: usize,
    /// User bytes.
    pub len_bytes: u64,
    /// Delay of the datagram; none over TCP.
    pub delay: Option<Duration>,
}

/// The actions of an application. They are carried out when its method returns.
#[derive(Clone, Debug, Default)]
pub struct Host {
    pub(crate) now: Instant,
    pub(crate) sends: Vec<(usize, u64)>,
    pub(crate) timer: Option<Instant>,
    pub(crate) finished: bool,
    pub(crate) responses: Vec<Duration>,
}

impl Host {
    /// The time, since the run's origin.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Sends bytes from the flow's first end (0) or its second (1). They begin a new segment or datagram.
    pub fn send(&mut self, end: usize, len_bytes: u64) {
        self.sends.push((end, len_bytes));
    }

    /// Sets when [`Application::on_timer`] is called, replacing an earlier time; never before now.
    pub fn set_timer(&mut self, at: Option<Instant>) {
        self.timer = at.map(|at| at.max(self.now));
    }

    /// The application has nothing more to do: the flow is finished once TCP has delivered everything.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Records that a response has arrived, and how long it took.
    pub fn record_response(&mut self, duration: Duration) {
        self.responses.push(duration);
    }
}

/// Changes the weights of a link's services during a run.
pub trait WeightPolicy: fmt::Debug + Send {
    /// How often it is called, first after one interval. Greater than zero.
    fn interval(&self) -> Duration;
    /// New weights by service number, for the port that sends `down` or up. `services` is what that port has measured
    /// and counted; services without a new weight keep theirs. A weight is greater than zero.
    fn weights(&mut self, now: Instant, down: bool, services: &[ServiceStatus]) -> Vec<(u8, f64)>;
}

/// The user-supplied parts of one run.
#[derive(Default)]
pub struct Pieces {
    /// By name of the link and whether downwards.
    pub errors: BTreeMap<(String, bool), ErrorsFactory>,
    /// By name of the flow.
    pub applications: BTreeMap<String, AppFactory>,
    /// By name of the link, which has services.
    pub weights: BTreeMap<String, Box<dyn WeightPolicy>>,
}

impl Pieces {
    /// Whether nothing is replaced.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.applications.is_empty() && self.weights.is_empty()
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces")
            .field("errors", &self.errors.keys())
            .field("applications", &self.applications.keys())
            .field("weights", &self.weights)
            .finish()
    }
}
