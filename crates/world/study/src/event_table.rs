//! Writes the events of a run as a Parquet table: one row each, with the columns of docs/events.md.
//! A field that an event does not have is null.
//!
//! Rows are written in groups, so memory holds one group, however long the run is.

use std::io::Write;
use std::sync::Arc;

use airlane_sim::event::EventRecord;
use parquet::basic::{ConvertedType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Rows in a group.
const GROUP: usize = 100_000;

/// A field of an event.
enum Value<'a> {
    Name(Option<&'a str>),
    Number(Option<u64>),
    Real(Option<f64>),
    Flag(Option<bool>),
}

/// The values of one field in the current group so far, and which rows have one.
struct Column {
    defined: Vec<i16>,
    values: Values,
}

enum Values {
    Names(Vec<ByteArray>),
    Numbers(Vec<i64>),
    Reals(Vec<f64>),
    Flags(Vec<bool>),
}

/// A table to which events are appended one at a time.
pub struct EventTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
}

impl<W: Write + Send> std::fmt::Debug for EventTable<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventTable").finish_non_exhaustive()
    }
}

/// All fields, in the order of the columns.
fn fields<'a>(event: &EventRecord<'a>) -> [(&'static str, Value<'a>); 27] {
    use Value::{Flag, Name, Number, Real};
    let small = |value: Option<u32>| Number(value.map(u64::from));
    [
        ("time_ns", Number(Some(event.time_ns))),
        ("event", Name(Some(event.event))),
        ("link", Name(event.link)),
        ("direction", Name(event.direction)),
        ("from_node", Name(event.from_node)),
        ("to_node", Name(event.to_node)),
        ("service", Name(event.service)),
        ("frame", Name(event.frame)),
        ("frame_seq", small(event.frame_seq)),
        ("frame_ack", small(event.frame_ack)),
        ("frame_len_bytes", small(event.frame_len_bytes)),
        ("departs_ns", Number(event.departs_ns)),
        ("reason", Name(event.reason)),
        ("flow", Name(event.flow)),
        ("connection", small(event.connection)),
        ("packet", Name(event.packet)),
        ("seq", Number(event.seq)),
        ("len_bytes", small(event.len_bytes)),
        ("retransmission", Flag(event.retransmission)),
        ("created_ns", Number(event.created_ns)),
        ("cwnd_segments", Real(event.cwnd_segments)),
        ("ssthresh_segments", Number(event.ssthresh_segments)),
        ("window_segments", Number(event.window_segments)),
        ("srtt_ns", Number(event.srtt_ns)),
        ("rto_ns", Number(event.rto_ns)),
        ("number", Number(event.number)),
        ("duration_ns", Number(event.duration_ns)),
    ]
}

/// An event without values, for the names and types of its fields.
const NOTHING: EventRecord<'static> = EventRecord {
    time_ns: 0,
    event: "",
    link: None,
    direction: None,
    from_node: None,
    to_node: None,
    service: None,
    frame: None,
    frame_seq: None,
    frame_ack: None,
    frame_len_bytes: None,
    departs_ns: None,
    reason: None,
    flow: None,
    connection: None,
    packet: None,
    seq: None,
    len_bytes: None,
    retransmission: None,
    created_ns: None,
    cwnd_segments: None,
    ssthresh_segments: None,
    window_segments: None,
    srtt_ns: None,
    rto_ns: None,
    number: None,
    duration_ns: None,
};

impl Column {
    fn new(like: &Value<'_>) -> Self {
        Self {
            defined: vec![],
            values: match like {
                Value::Name(_) => Values::Names(vec![]),
                Value::Number(_) => Values::Numbers(vec![]),
                Value::Real(_) => Values::Reals(vec![]),
                Value::Flag(_) => Values::Flags(vec![]),
            },
        }
    }

    fn push(&mut self, value: &Value<'_>) {
        let defined = match (&mut self.values, value) {
            (Values::Names(all), Value::Name(Some(name))) => {
                all.push(ByteArray::from(*name));
                1
            }
            // Times are relative to the start of a run, which ends long before 2^63 ns.
            (Values::Numbers(all), Value::Number(Some(number))) => {
                all.push(i64::try_from(*number).unwrap_or(i64::MAX));
                1
            }
            (Values::Reals(all), Value::Real(Some(real))) => {
                all.push(*real);
                1
            }
            (Values::Flags(all), Value::Flag(Some(flag))) => {
                all.push(*flag);
                1
            }
            _ => 0,
        };
        self.defined.push(defined);
    }

    fn write(&mut self, out: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let defined = Some(&*self.defined);
        match (&mut self.values, out) {
            (Values::Names(all), ColumnWriter::ByteArrayColumnWriter(out)) => {
                out.write_batch(all, defined, None)?;
                all.clear();
            }
            (Values::Numbers(all), ColumnWriter::Int64ColumnWriter(out)) => {
                out.write_batch(all, defined, None)?;
                all.clear();
            }
            (Values::Reals(all), ColumnWriter::DoubleColumnWriter(out)) => {
                out.write_batch(all, defined, None)?;
                all.clear();
            }
            (Values::Flags(all), ColumnWriter::BoolColumnWriter(out)) => {
                out.write_batch(all, defined, None)?;
                all.clear();
            }
            _ => unreachable!("the schema was made from these columns"),
        }
        self.defined.clear();
        Ok(())
    }
}

impl<W: Write + Send> EventTable<W> {
    /// Creates an empty table.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W) -> Result<Self, ParquetError> {
        let fields = fields(&NOTHING);
        let types = fields.iter().map(|(name, value)| {
            let (kind, converted) = match value {
                Value::Name(_) => (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8),
                Value::Number(_) => (PhysicalType::INT64, ConvertedType::NONE),
                Value::Real(_) => (PhysicalType::DOUBLE, ConvertedType::NONE),
                Value::Flag(_) => (PhysicalType::BOOLEAN, ConvertedType::NONE),
            };
            let field = Type::primitive_type_builder(name, kind);
            let field = field.with_converted_type(converted);
            field
                .with_repetition(Repetition::OPTIONAL)
                .build()
                .map(Arc::new)
        });
        let types = types.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("event")
            .with_fields(types)
            .build()?;
        // The library's version is left out, so that the bytes do not depend on it.
        let properties = WriterProperties::builder()
            .set_created_by("airlane".to_owned())
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            columns: fields.iter().map(|(_, value)| Column::new(value)).collect(),
        })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If a group is full and cannot be written.
    pub fn push(&mut self, event: &EventRecord<'_>) -> Result<(), ParquetError> {
        for (column, (_, value)) in self.columns.iter_mut().zip(fields(event)) {
            column.push(&value);
        }
        match self.columns[0].defined.len() {
            GROUP => self.flush(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.columns[0].defined.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut open) = group.next_column()? {
                column.write(open.untyped())?;
                open.close()?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        self.flush()?;
        self.writer.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::Instant;
    use airlane_sim::event::{Event, Names, Watcher};
    use airlane_sim::{Prepared, Scenario};
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::Value as Json;

    use super::*;

    struct Both<'a> {
        names: &'a Names,
        lines: Vec<Json>,
        table: EventTable<std::fs::File>,
    }

    impl Watcher for Both<'_> {
        fn on_event(&mut self, now: Instant, event: &Event) {
            let record = EventRecord::new(self.names, now, event);
            self.lines.push(serde_json::to_value(record).unwrap());
            self.table.push(&record).unwrap();
        }
    }

    /// Rows equal the lines of JSON, field by field, with null where a line lacks the field.
    #[test]
    fn table_rows_equal_json_lines() {
        let text = "schema = 1\nname = \"two\"\nduration = \"20 s\"\nuntil = \"file\"\n\
            [nodes.a]\n[nodes.b]\n[links.radio]\nends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
            delay = \"5 ms\"\nframe = \"1000 B\"\nerrors = { kind = \"uniform\", rate = 0.05 }\n\
            [[flows]]\nname = \"file\"\nends = [\"a\", \"b\"]\ntransport = { kind = \"tcp\", profile = \"ns2-1999\" }\n\
            app = { kind = \"bulk\", size = \"100 kB\" }\n";
        let scenario = Scenario::from_toml(text, "two").unwrap();
        let prepared = Prepared::new(&scenario).unwrap();
        let names = prepared.names();
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut both = Both {
            names: &names,
            lines: vec![],
            table: EventTable::new(file.reopen().unwrap()).unwrap(),
        };
        prepared.run_watched(1, 0, &mut both);
        both.table.finish().unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().collect();
        assert_eq!(rows.len(), both.lines.len());
        assert!(rows.len() > 500);
        for (row, line) in rows.into_iter().zip(both.lines) {
            let row = row.unwrap();
            let fields = row.get_column_iter().filter_map(|(name, field)| {
                let value = match field {
                    Field::Null => return None,
                    Field::Str(text) => Json::from(text.as_str()),
                    Field::Long(number) => Json::from(*number as u64),
                    Field::Double(real) => Json::from(*real),
                    Field::Bool(flag) => Json::from(*flag),
                    other => panic!("{name}: {other}"),
                };
                Some((name.clone(), value))
            });
            assert_eq!(Json::Object(fields.collect()), line);
        }
    }
}
