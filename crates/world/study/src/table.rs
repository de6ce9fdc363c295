//! Parquet tables: one file for each study, one row for each run, units in the column names.
//!
//! Rows are sorted by scenario (the last axis fastest), then repetition; the same results give the
//! same bytes. Values that could not be measured are null.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::error::StudyError;
use crate::plan::Plan;
use crate::store::{RunRecord, Store};

/// A column before it is written.
enum Column {
    Text(Vec<String>),
    Count(Vec<i64>),
    Number(Vec<f64>),
}

impl Plan {
    /// Writes `STUDY.parquet` for each requested study, with alternatives in folders of their own.
    ///
    /// # Errors
    /// If results are missing or a file cannot be written.
    pub fn write_tables(&self, store: &Store, folder: &Path) -> Result<(), StudyError> {
        for variant in &self.variants {
            let mut folder = folder.join(&self.work.id);
            if let Some(name) = &variant.alternative {
                folder = folder.join(name);
            }
            std::fs::create_dir_all(&folder).map_err(StudyError::io(&folder))?;
            for planned in variant
                .studies
                .iter()
                .filter(|s| s.asked && !s.worlds.is_empty() && self.work.reads(&s.id))
            {
                let study = self.work.study(&planned.id);
                let study = study.ok_or_else(|| StudyError::Results(planned.id.clone()))?;
                let mut columns = vec![("study".to_owned(), Column::Text(vec![]))];
                columns.extend(
                    study
                        .axes
                        .iter()
                        .map(|a| (plain(&a.name), Column::Text(vec![]))),
                );
                columns.push(("scenario_hash".to_owned(), Column::Text(vec![])));
                columns.push(("seed".to_owned(), Column::Count(vec![])));
                columns.push(("run".to_owned(), Column::Count(vec![])));
                let mut rows: Vec<&RunRecord> = vec![];
                for (point, world) in planned.worlds.iter().enumerate() {
                    let at = study.values(point);
                    let hash = self.worlds[*world].hash();
                    let texts: Vec<&str> = std::iter::once(study.id.as_str())
                        .chain(at.iter().map(String::as_str))
                        .chain([hash])
                        .collect();
                    for (run, record) in self
                        .records(store, *world, variant.runs)?
                        .into_iter()
                        .enumerate()
                    {
                        let mut texts = texts.iter();
                        let mut counts = [self.seed as i64, run as i64].into_iter();
                        for (_, column) in &mut columns {
                            match column {
                                Column::Text(all) => {
                                    all.extend(texts.next().map(|t| (*t).to_owned()));
                                }
                                Column::Count(all) => all.extend(counts.next()),
                                Column::Number(_) => {}
                            }
                        }
                        rows.push(record);
                    }
                }
                let mut names: Vec<&String> = rows.iter().flat_map(|r| r.names.iter()).collect();
                names.sort();
                names.dedup();
                for name in names {
                    let values = rows.iter().map(|row| row.get(name)).collect();
                    columns.push((plain(name), Column::Number(values)));
                }
                let path = folder.join(format!("{}.parquet", study.id));
                let file = File::create(&path).map_err(StudyError::io(&path))?;
                write(file, &columns).map_err(|e| StudyError::file(&path, e))?;
            }
        }
        Ok(())
    }
}

/// A name that needs no quotes in SQL or Python.
fn plain(name: &str) -> String {
    name.replace(['.', '-', '"'], "_")
}

fn write(file: File, columns: &[(String, Column)]) -> Result<(), ParquetError> {
    let fields = columns.iter().map(|(name, column)| {
        let (kind, converted, repetition) = match column {
            Column::Text(_) => (
                PhysicalType::BYTE_ARRAY,
                ConvertedType::UTF8,
                Repetition::REQUIRED,
            ),
            Column::Count(_) => (
                PhysicalType::INT64,
                ConvertedType::NONE,
                Repetition::REQUIRED,
            ),
            Column::Number(_) => (
                PhysicalType::DOUBLE,
                ConvertedType::NONE,
                Repetition::OPTIONAL,
            ),
        };
        let field = Type::primitive_type_builder(name, kind);
        field
            .with_converted_type(converted)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("run")
        .with_fields(fields)
        .build()?;
    // The library's version is left out, so that the bytes do not depend on it.
    let properties = WriterProperties::builder()
        .set_created_by("airlane".to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let Some(mut open) = group.next_column()? else {
            break;
        };
        match (column, open.untyped()) {
            (Column::Text(values), ColumnWriter::ByteArrayColumnWriter(out)) => {
                let values: Vec<ByteArray> =
                    values.iter().map(|v| ByteArray::from(v.as_str())).collect();
                out.write_batch(&values, None, None)?;
            }
            (Column::Count(values), ColumnWriter::Int64ColumnWriter(out)) => {
                out.write_batch(values, None, None)?;
            }
            (Column::Number(values), ColumnWriter::DoubleColumnWriter(out)) => {
                let defined: Vec<i16> = values.iter().map(|v| i16::from(v.is_finite())).collect();
                let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
                out.write_batch(&finite, Some(&defined), None)?;
            }
            _ => unreachable!("the schema was made from these columns"),
        }
        open.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}
