//! Parts of a world as Python objects: error models, applications, weight policies, probes.
//!
//! Each call goes through the interpreter, so this is for experiments: a run takes ten to a hundred
//! times as long. An exception ends the run after the event in which it was raised, and reaches the
//! caller unchanged.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlane_base::{Duration, Instant, Rng};
use airlane_channel::CustomErrors;
use airlane_link::ServiceStatus;
use airlane_sim::custom::{Application, Delivery, Host as SimHost, Pieces, WeightPolicy};
use airlane_sim::event::{Event, EventKind, EventRecord, Names, Watcher};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::run::{caught, told};
use crate::scenario::Scenario;

/// The first exception that a Python object raised.
#[derive(Clone, Debug, Default)]
struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    fn lock(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_set(&self) -> bool {
        self.lock().is_some()
    }

    /// The result of a call; the default if it raised, or if another call has raised before.
    fn guard<T: Default>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        if self.is_set() {
            return T::default();
        }
        Python::attach(call).unwrap_or_else(|error| {
            self.lock().get_or_insert(error);
            T::default()
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds(time: Instant) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// A time span from Python.
fn duration(name: &str, value_s: f64) -> PyResult<Duration> {
    if value_s.is_finite() && value_s >= 0.0 {
        return Ok(Duration::from_secs_f64(value_s));
    }
    Err(PyValueError::new_err(format!(
        "{name} = {value_s}: write a time of 0 s or more"
    )))
}

/// The random stream of one Python object: it depends only on the seed, and nothing else draws from
/// it.
#[pyclass(frozen, module = "airlane._native")]
pub(crate) struct Random(Mutex<Rng>);

#[pymethods]
impl Random {
    /// Uniform in [0, 1).
    fn random(&self) -> f64 {
        locked(&self.0).uniform()
    }

    /// Uniform in [low, high).
    fn uniform(&self, low: f64, high: f64) -> f64 {
        low + (high - low) * locked(&self.0).uniform()
    }

    /// Exponential with this mean.
    fn exponential(&self, mean: f64) -> f64 {
        locked(&self.0).exponential(mean)
    }

    /// 64 uniform bits, for seeding another generator.
    fn bits(&self) -> u64 {
        locked(&self.0).next_u64()
    }
}

/// What an application requested during a call.
#[derive(Default)]
struct Wishes {
    now: Instant,
    sends: Vec<(usize, u64)>,
    /// None leaves the timer as it is.
    timer: Option<Option<Instant>>,
    finished: bool,
    responses: Vec<Duration>,
}

/// The hosts at both ends of a flow, as an application sees them.
#[pyclass(frozen, module = "airlane._native")]
pub(crate) struct Host {
    wishes: Mutex<Wishes>,
    #[pyo3(get)]
    rng: Py<Random>,
}

#[pymethods]
impl Host {
    /// The simulated time, seconds.
    #[getter]
    fn now_s(&self) -> f64 {
        seconds(locked(&self.wishes).now)
    }

    /// Sends `len_bytes` from the flow's first end (0) or its second (1).
    fn send(&self, end: usize, len_bytes: u64) -> PyResult<()> {
        if end > 1 {
            let wrong = format!("end = {end}: a flow has the ends 0 and 1");
            return Err(PyValueError::new_err(wrong));
        }
        locked(&self.wishes).sends.push((end, len_bytes));
        Ok(())
    }

    /// Calls `on_timer` after `delay_s`; replaces an earlier timer.
    fn set_timer(&self, delay_s: f64) -> PyResult<()> {
        let delay = duration("delay_s", delay_s)?;
        let mut wishes = locked(&self.wishes);
        wishes.timer = Some(Some(wishes.now + delay));
        Ok(())
    }

    /// Cancels the call of `on_timer`.
    fn cancel_timer(&self) {
        locked(&self.wishes).timer = Some(None);
    }

    /// Declares the application finished.
    fn finish(&self) {
        locked(&self.wishes).finished = true;
    }

    /// Records a response that took `duration_s`.
    fn record_response(&self, duration_s: f64) -> PyResult<()> {
        let duration = duration("duration_s", duration_s)?;
        locked(&self.wishes).responses.push(duration);
        Ok(())
    }
}

/// An error model: an object with `loses(start_s, end_s, len_bytes) -> bool`.
#[derive(Debug)]
struct PyErrors {
    model: Option<Py<PyAny>>,
    failure: Failure,
}

impl CustomErrors for PyErrors {
    fn loses(&mut self, start: Instant, end: Instant, len_bytes: usize, _: &mut Rng) -> bool {
        let Some(model) = &self.model else {
            return false;
        };
        self.failure.guard(|py| {
            let times = (seconds(start), seconds(end), len_bytes);
            model.bind(py).call_method1("loses", times)?.is_truthy()
        })
    }
}

/// An application: an object with `on_start`, `on_delivered` and `on_timer`.
#[derive(Debug)]
struct PyApplication {
    app: Option<Py<PyAny>>,
    host: Option<Py<Host>>,
    failure: Failure,
}

impl PyApplication {
    fn call(&self, sim: &mut SimHost, act: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let (Some(app), Some(host)) = (&self.app, &self.host) else {
            return;
        };
        locked(&host.get().wishes).now = sim.now();
        self.failure.guard(|py| act(app.bind(py)));
        let mut wishes = locked(&host.get().wishes);
        for (end, len_bytes) in wishes.sends.drain(..) {
            sim.send(end, len_bytes);
        }
        for duration in wishes.responses.drain(..) {
            sim.record_response(duration);
        }
        if let Some(timer) = wishes.timer.take() {
            sim.set_timer(timer);
        }
        if wishes.finished {
            sim.finish();
        }
    }
}

impl Application for PyApplication {
    fn on_start(&mut self, host: &mut SimHost) {
        self.call(host, |app| app.call_method0("on_start").map(drop));
    }

    fn on_delivered(&mut self, host: &mut SimHost, delivery: Delivery) {
        let delay_s = delivery.delay.map(|delay| delay.as_secs_f64());
        let arguments = (delivery.end, delivery.len_bytes, delay_s);
        self.call(host, |app| {
            app.call_method1("on_delivered", arguments).map(drop)
        });
    }

    fn on_timer(&mut self, host: &mut SimHost) {
        self.call(host, |app| app.call_method0("on_timer").map(drop));
    }
}

/// A weight policy: an object with `weights(now_s, direction, services) -> dict[str, float]`.
#[derive(Debug)]
struct PyWeights {
    policy: Py<PyAny>,
    interval: Duration,
    failure: Failure,
}

impl WeightPolicy for PyWeights {
    fn interval(&self) -> Duration {
        self.interval
    }

    fn weights(&mut self, now: Instant, down: bool, services: &[ServiceStatus]) -> Vec<(u8, f64)> {
        self.failure.guard(|py| {
            let text = serde_json::to_string(services)
                .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            let told = py.import("json")?.call_method1("loads", (text,))?;
            let direction = if down { "down" } else { "up" };
            let arguments = (seconds(now), direction, told);
            let weights = self.policy.bind(py).call_method1("weights", arguments)?;
            let weights: HashMap<String, f64> = weights.extract()?;
            // In the order of the services, so that the order of the dictionary does not matter.
            let known =
                |service: &ServiceStatus| Some((service.number, *weights.get(&service.name)?));
            let all: Vec<(u8, f64)> = services.iter().filter_map(known).collect();
            if all.len() < weights.len() {
                let names: Vec<&str> = services.iter().map(|s| s.name.as_str()).collect();
                return Err(PyValueError::new_err(format!(
                    "weights for a service that the link does not have; its services are: {}",
                    names.join(", ")
                )));
            }
            Ok(all)
        })
    }
}

/// Calls a probe's methods, and ends the run when a Python object has raised an exception.
struct Probe {
    names: Names,
    methods: BTreeMap<EventKind, Py<PyAny>>,
    failure: Failure,
}

/// Sets the fields that a record has.
macro_rules! fields {
    ($dict:ident, $record:ident, $($field:ident)*) => {
        $(if let Some(value) = $record.$field {
            $dict.set_item(PyString::intern($dict.py(), stringify!($field)), value)?;
        })*
    };
}

fn dict_of<'py>(py: Python<'py>, record: &EventRecord<'_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_ns", record.time_ns)?;
    dict.set_item("event", record.event)?;
    fields!(
        dict, record,
        link direction from_node to_node service frame frame_seq frame_ack frame_len_bytes departs_ns reason
        flow connection packet seq len_bytes retransmission created_ns
        cwnd_segments ssthresh_segments window_segments srtt_ns rto_ns number duration_ns
    );
    Ok(dict)
}

impl Watcher for Probe {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if let Some(method) = self.methods.get(&event.kind()) {
            self.failure.guard(|py| {
                let dict = dict_of(py, &EventRecord::new(&self.names, now, event))?;
                method.bind(py).call1((dict,)).map(drop)
            });
        }
    }

    fn is_over(&self) -> bool {
        self.failure.is_set()
    }
}

/// Simulates one repetition with custom objects and returns its result as JSON.
///
/// `errors`: link, whether for the downlink, and a callable that makes a model from a `Random`;
/// `applications`: flow, and a callable that makes an application from a `Host`; `weights`: link,
/// policy, interval in seconds; `probe`: kind of event, and the callable for it.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one wrapper, by name")]
pub(crate) fn run_custom(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    seed: Option<u64>,
    run: u64,
    errors: Vec<(String, bool, Py<PyAny>)>,
    applications: Vec<(String, Py<PyAny>)>,
    weights: Vec<(String, Py<PyAny>, f64)>,
    probe: Vec<(String, Py<PyAny>)>,
) -> PyResult<(String, Vec<String>, Vec<f64>)> {
    let prepared = &scenario.get().prepared;
    let failure = Failure::default();
    let mut pieces = Pieces::default();
    for (link, down, factory) in errors {
        let failure = failure.clone();
        let make = move |rng: Rng| -> Box<dyn CustomErrors> {
            let model = failure.guard(|py| {
                let rng = Py::new(py, Random(Mutex::new(rng)))?;
                factory.call1(py, (rng,)).map(Some)
            });
            Box::new(PyErrors { model, failure })
        };
        pieces.errors.insert((link, down), Box::new(make));
    }
    for (flow, factory) in applications {
        let failure = failure.clone();
        let make = move |rng: Rng| -> Box<dyn Application> {
            let made = failure.guard(|py| {
                let rng = Py::new(py, Random(Mutex::new(rng)))?;
                let wishes = Mutex::default();
                let host = Py::new(py, Host { wishes, rng })?;
                let app = factory.call1(py, (host.clone_ref(py),))?;
                Ok(Some((app, host)))
            });
            let (app, host) = made.unzip();
            Box::new(PyApplication { app, host, failure })
        };
        pieces.applications.insert(flow, Box::new(make));
    }
    for (link, policy, interval_s) in weights {
        let policy = PyWeights {
            policy,
            interval: duration("interval_s", interval_s)?,
            failure: failure.clone(),
        };
        pieces.weights.insert(link, Box::new(policy));
    }
    let kind_of = |name: &str| EventKind::ALL.into_iter().find(|kind| kind.name() == name);
    let mut watcher = Probe {
        names: prepared.names(),
        methods: probe
            .into_iter()
            .filter_map(|(name, method)| Some((kind_of(&name)?, method)))
            .collect(),
        failure: failure.clone(),
    };
    let seed = seed.unwrap_or(prepared.scenario().seed);
    let simulate = || prepared.run_custom(seed, run, pieces, &mut watcher);
    let result = py.detach(|| caught(seed, run, simulate));
    if let Some(error) = failure.lock().take() {
        return Err(error);
    }
    let result = result?.map_err(|error| PyValueError::new_err(error.to_string()))?;
    told(&result)
}
