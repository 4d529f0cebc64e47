//! The Parquet files, read back.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tare_report::{csv, parquet};

use crate::fixture;

/// A value as the CSV file writes it.
fn written(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Double(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Bool(flag) => flag.to_string(),
        other => panic!("no column has {other:?}"),
    }
}

#[test]
fn parquet_files_hold_what_the_csv_files_hold_with_types() {
    let findings = fixture::findings();
    let (files, texts) = (parquet(&findings).unwrap(), csv(&findings));
    assert_eq!(files.len(), texts.len());
    for ((name, bytes), (csv_name, text)) in files.into_iter().zip(texts) {
        assert_eq!(name.strip_suffix(".parquet"), csv_name.strip_suffix(".csv"));
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let mut lines = text.split("\r\n");
        let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
        let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        assert_eq!(lines.next(), Some(names.join(",").as_str()), "{name}");
        let mut rows = 0;
        for (row, line) in reader.get_row_iter(None).unwrap().zip(lines) {
            let fields: Vec<String> = row.unwrap().get_column_iter().map(|(_, field)| written(field)).collect();
            // Fields that CSV quotes are compared where nothing needs quotes.
            if !line.contains('"') {
                assert_eq!(fields.join(","), line, "{name}");
            }
            rows += 1;
        }
        assert_eq!(rows, text.matches("\r\n").count() - 1, "{name}");
    }
}
