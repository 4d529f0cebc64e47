//! A file of hosts, put behind a study: which machines take part, and what each does.

use crate::error::{Invalid, StudyError};
use crate::file;
use crate::language::shape::{Host, Named, Shape};
use crate::language::table::table;
use crate::language::tree::{Cursor, Sink};
use crate::node::Node;

table! {
    /// A file of hosts.
    Hosts<'a> {
        /// The machines that take part beside the host that tare is started on, as in a study.
        optional hosts: Named<Host> = r#"{ client-1 = { PLATFORM = { host = "loadgen" } } }"#,
        /// Who does what, as in a study.
        optional roles: file::Roles<'a> = r#"{ drivers = ["client-1"] }"#,
        /// Of the lab its wire alone.
        optional lab: OnlyWire<'a> = r#"{ wire = { interface = "eth1", addresses = "192.0.2.100-192.0.2.150/24" } }"#,
    }
}

table! {
    /// `[lab]` of a file of hosts.
    OnlyWire<'a> {
        /// The network card of this host that the lab's bridge is put on, as in a study. It is written as `[lab.wire]`: the study may have a `[lab]` of its own.
        required wire: file::Wire<'a> = r#"{ interface = "eth1", addresses = "192.0.2.100-192.0.2.150/24" }"#,
    }
}

/// Sees that a file of hosts says nothing else.
///
/// # Errors
/// What in it is wrong, or belongs into a study.
pub(crate) fn check(name: &str, text: &str) -> Result<(), StudyError> {
    let invalid = |problems| StudyError::Invalid(Box::new(Invalid::new((name, text), None, problems)));
    let tree = Node::parse(text).map_err(invalid)?;
    let sink = Sink::of::<Hosts<'_>>();
    let root = Cursor::root(&sink, &tree);
    if let Some(file) = Hosts::read(&root) {
        let wire = file.lab.value.as_ref().is_some_and(|lab| lab.wire.is_there());
        if !(file.hosts.is_there() || file.roles.is_there() || wire) {
            root.wrong("names no host, no role and no wire", "write `[hosts.NAME]`, `[roles]` or `[lab.wire]`");
        }
    }
    if sink.is_empty() { Ok(()) } else { Err(invalid(sink.into_problems(&tree, text))) }
}

/// What stands between the two texts.
const BETWEEN: &str = "\n# From here on the file of hosts that was named beside the study.\n";

/// A study with the hosts behind it.
pub(crate) fn joined(study: &str, hosts: &str) -> String {
    format!("{study}{BETWEEN}{hosts}")
}

/// Where the second text begins in the joined one, bytes.
pub(crate) const fn begins(study: &str) -> usize {
    study.len() + BETWEEN.len()
}
