//! What several drivers did with the same instances, or one driver again, as of one.

use crate::social::spec::{InstanceDone, SocialDone};

use crate::requests::add_types;
use crate::yields::add_named;

/// What two drivers did with the same instances at the same time.
pub(super) fn both_done(mut all: SocialDone, one: SocialDone) -> SocialDone {
    for (number, instance) in one.instances.into_iter().enumerate() {
        match all.instances.get_mut(number) {
            Some(known) => add_instance(known, instance),
            None => all.instances.push(instance),
        }
    }
    add_named(&mut all.faults, one.faults);
    all.connections += one.connections;
    all.memory_per_user_bytes = all.memory_per_user_bytes.max(one.memory_per_user_bytes);
    all
}

/// Adds what was done with an instance.
pub(super) fn add_instance(all: &mut InstanceDone, one: InstanceDone) {
    all.add_counts(&one);
    add_types(&mut all.operations, one.operations);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::social::spec::{Added, PageLook};
    use tare_model::trial::RequestType;

    #[test]
    fn two_drivers_are_added_instance_by_instance() {
        let home = |requests| RequestType { name: "home".into(), requests, good: requests, ..RequestType::default() };
        let instance = |users, requests| InstanceDone {
            users,
            operations: vec![home(requests)],
            cycles: (requests, 5.0, 5.5),
            home: PageLook { pages: 2, references: 20, loaded: 6, bytes: 30_000 },
            added: Added { people: 1, events: 2, attendances: 3 },
            ..InstanceDone::default()
        };
        let one = SocialDone {
            instances: vec![instance(3, 10), instance(2, 7)],
            faults: vec![("marker".into(), 1)],
            ..SocialDone::default()
        };
        let all = both_done(one.clone(), SocialDone { instances: vec![instance(3, 5), instance(3, 5)], ..one });
        assert_eq!((all.instances[0].users, all.instances[1].users), (6, 5));
        assert_eq!((all.instances[0].operations[0].requests, all.instances[1].operations[0].requests), (15, 12));
        assert_eq!(all.instances[1].cycles, (12, 10.0, 11.0));
        assert_eq!((all.instances[0].home.references, all.instances[0].added.attendances), (40, 6));
        assert_eq!(all.faults, [("marker".to_owned(), 2)]);
    }
}
