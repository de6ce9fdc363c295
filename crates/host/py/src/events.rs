//! The events of a run as an Arrow table, which data frames import without a copy.

use std::sync::Arc;

use airlane_base::Instant;
use airlane_sim::event::{Event, EventFilter, EventKind, EventRecord, Names, Watcher};
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringDictionaryBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::run::caught;
use crate::scenario::Scenario;
use crate::table::Table;

/// Names repeat, so a column stores each only once.
type NameBuilder = StringDictionaryBuilder<UInt32Type>;

/// Generates builders, one for each field of a record, and the code that fills and finishes them.
macro_rules! columns {
    ($($field:ident: $builder:ty,)*) => {
        #[derive(Default)]
        struct Columns {
            time_ns: UInt64Builder,
            event: NameBuilder,
            $($field: $builder,)*
        }

        impl Columns {
            fn push(&mut self, record: &EventRecord<'_>) {
                self.time_ns.append_value(record.time_ns);
                self.event.append_value(record.event);
                $(self.$field.append_option(record.$field);)*
            }

            fn finish(mut self) -> Vec<(&'static str, ArrayRef, bool)> {
                vec![
                    ("time_ns", Arc::new(self.time_ns.finish()) as ArrayRef, false),
                    ("event", Arc::new(self.event.finish()), false),
                    $((stringify!($field), Arc::new(self.$field.finish()), true),)*
                ]
            }
        }
    };
}

columns! {
    link: NameBuilder,
    direction: NameBuilder,
    from_node: NameBuilder,
    to_node: NameBuilder,
    service: NameBuilder,
    frame: NameBuilder,
    frame_seq: UInt32Builder,
    frame_ack: UInt32Builder,
    frame_len_bytes: UInt32Builder,
    departs_ns: UInt64Builder,
    reason: NameBuilder,
    flow: NameBuilder,
    connection: UInt32Builder,
    packet: NameBuilder,
    seq: UInt64Builder,
    len_bytes: UInt32Builder,
    retransmission: BooleanBuilder,
    created_ns: UInt64Builder,
    cwnd_segments: Float64Builder,
    ssthresh_segments: UInt64Builder,
    window_segments: UInt64Builder,
    srtt_ns: UInt64Builder,
    rto_ns: UInt64Builder,
    number: UInt64Builder,
    duration_ns: UInt64Builder,
}

/// Keeps events until the limit is reached.
struct Recorder<'a> {
    names: &'a Names,
    filter: EventFilter,
    columns: Columns,
    left: u64,
}

impl Watcher for Recorder<'_> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if self.left > 0 && self.filter.admits(event) {
            self.left -= 1;
            self.columns.push(&EventRecord::new(self.names, now, event));
        }
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// Simulates one repetition and keeps its events of these kinds, flows and links (all if none is
/// given), up to `limit` of them.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one wrapper, by name")]
pub(crate) fn events(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    seed: Option<u64>,
    run: u64,
    kinds: Vec<String>,
    flows: Vec<String>,
    links: Vec<String>,
    limit: Option<u64>,
) -> PyResult<Table> {
    let prepared = &scenario.get().prepared;
    let names = prepared.names();
    let filter = EventFilter::new(&names, &kinds, &flows, &links)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let seed = seed.unwrap_or(prepared.scenario().seed);
    py.detach(|| {
        let mut recorder = Recorder {
            names: &names,
            filter,
            columns: Columns::default(),
            left: limit.unwrap_or(u64::MAX),
        };
        caught(seed, run, || prepared.run_watched(seed, run, &mut recorder))?;
        let columns = recorder.columns.finish();
        RecordBatch::try_from_iter_with_nullable(columns)
            .map(Table::new)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    })
}

/// The names of all kinds of events.
#[pyfunction]
pub(crate) fn event_kinds() -> Vec<&'static str> {
    EventKind::ALL.map(EventKind::name).to_vec()
}
