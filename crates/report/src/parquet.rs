//! The raw numbers as Parquet files, which keep their types and which DuckDB, pandas, R and Spark read as they are.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use tare_model::findings::Findings;
use tare_model::text::readable;

use crate::error::ReportError;
use crate::tables::{Kind, RawTable, Value, tables};

/// Four files, as file name and content: the tables of [`crate::csv()`]. A figure that does not exist is NULL.
///
/// # Errors
/// When a file cannot be made, which would be a defect of this crate.
pub fn parquet(findings: &Findings) -> Result<Vec<(String, Vec<u8>)>, ReportError> {
    files(&tables(findings))
}

/// A file a table, as file name and content.
pub(crate) fn files(tables: &[RawTable]) -> Result<Vec<(String, Vec<u8>)>, ReportError> {
    let file = |table: &RawTable| Ok((format!("{}.parquet", table.name), written(table)?));
    tables.iter().map(file).collect::<Result<_, ParquetError>>().map_err(ReportError::Parquet)
}

fn written(table: &RawTable) -> Result<Vec<u8>, ParquetError> {
    // The writer's own name and version are left out: equal figures give equal files.
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by("tare".to_owned());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema(table)?, Arc::new(properties.build()))?;
    let mut rows = writer.next_row_group()?;
    for (at, (_, kind)) in table.columns.iter().enumerate() {
        let values = table.rows.iter().map(|row| row.get(at).unwrap_or(&Value::Absent));
        match kind {
            Kind::Text => column::<ByteArrayType>(&mut rows, values, |value| match value {
                Value::Text(text) => Some(ByteArray::from(readable(text).into_bytes())),
                _ => None,
            })?,
            Kind::Real => column::<DoubleType>(&mut rows, values, |value| match value {
                Value::Real(number) => Some(*number),
                _ => None,
            })?,
            Kind::Whole => column::<Int64Type>(&mut rows, values, |value| match value {
                Value::Whole(number) => Some(*number),
                _ => None,
            })?,
            Kind::Flag => column::<BoolType>(&mut rows, values, |value| match value {
                Value::Flag(flag) => Some(*flag),
                _ => None,
            })?,
        }
    }
    rows.close()?;
    writer.into_inner()
}

fn schema(table: &RawTable) -> Result<TypePtr, ParquetError> {
    let field = |(name, kind): &(&'static str, Kind)| {
        let (physical, meaning) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Kind::Real => (Physical::DOUBLE, ConvertedType::NONE),
            Kind::Whole => (Physical::INT64, ConvertedType::NONE),
            Kind::Flag => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let builder = Type::primitive_type_builder(name, physical).with_converted_type(meaning);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder(table.name).with_fields(fields).build().map(Arc::new)
}

/// Writes the next column: the values that are there, and of each whether it is.
fn column<'v, T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = &'v Value>,
    of: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.map(of).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    let Some(mut column) = rows.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}
