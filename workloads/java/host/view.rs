//! What a report says of the Java service: what its guests do with their memory, where guests are added.

use tare_model::findings::CaseFindings;
use tare_model::findings::section::{Block, Place, Section};
use tare_model::hold::GuestMemory;
use tare_model::study::Case;

use super::parameters::Parameters;
use crate::View;

/// The view of the Java service.
pub(super) struct Memory;

impl View for Memory {
    fn of_case(&self, case: &Case, _: &CaseFindings) -> Vec<Section> {
        let read = serde_json::from_value::<Parameters>(case.parameters.clone());
        let (true, Ok(parameters)) = (case.load.is_density(), read) else { return Vec::new() };
        let says = match parameters.memory {
            GuestMemory::Lazy => "touches only what it uses",
            GuestMemory::Zeroed => "writes zeros to all of its memory at start",
            GuestMemory::FilledSame => "fills its memory with data that are the same in every guest",
            GuestMemory::FilledDistinct => "fills its memory with data of its own",
        };
        let sentence = Block::Sentence(format!("Each guest {says}."));
        Section::of("Memory of the guests", Place::Answer, [Some(sentence)]).into_iter().collect()
    }
}
