//! The run folder: schema, writer, reader.
