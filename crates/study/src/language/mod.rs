//! What a study file is written in: tables of fields, the shapes of fields, and the places that values are read from.

pub(crate) mod shape;
pub(crate) mod table;
pub(crate) mod tree;
