//! What a report says of the social site: the database beside the guests.

use tare_model::findings::CaseFindings;
use tare_model::findings::section::{Block, Place, Section};
use tare_model::study::Case;

use super::services::{DATABASE_ON, DATABASE_RESTORED_IN, DATABASE_STARTED_IN};
use crate::View;
use crate::postgres::facts;

/// The view of the social site.
pub(super) struct Database;

impl View for Database {
    fn of_case(&self, _: &Case, found: &CaseFindings) -> Vec<Section> {
        let columns = [
            (DATABASE_ON, "Database on"),
            (DATABASE_RESTORED_IN, "Restored in, by"),
            (facts::VERSION, "PostgreSQL"),
            (DATABASE_STARTED_IN, "Started in"),
            (facts::CHECKPOINT, "CHECKPOINT in"),
        ];
        let about = "The database of each arm, which works beside the guests.";
        let table = facts::table(found, &columns, about).filter(|_| found.density.is_none());
        Section::of("Database", Place::Detail, [table.map(Block::Table)]).into_iter().collect()
    }
}
