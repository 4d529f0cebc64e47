#![allow(clippy::unwrap_used)]
use super::*;

/// Adds one process's kinds, all known but for `unknown` bytes.
fn kinds(parts: &[(&str, f64)]) -> Kinds {
    Kinds::of(parts)
}

const HOST: Host = Host { pages_shared: 100, pages_sharing: 900, zero_pages: 50, page: 4096 };

#[test]
fn kinds_add_up_to_what_the_kernel_counts_as_saved() {
    let sampled = kinds(&[("zero", 3.0), ("code", 1.0), ("data", 3.0)]);
    let all = saved(&HOST, 1000, 50, &sampled);
    assert_eq!(all.zero_bytes + all.code_bytes + all.data_bytes + all.unknown_bytes, 950 * 4096);
    assert_eq!(all.unknown_bytes, 0, "rounding is not unknown");
    assert!(all.code_bytes > 0 && all.zero_bytes > all.data_bytes, "{all:?}");
    // Others merge as well: half of all users are theirs.
    let half = saved(&HOST, 500, 20, &sampled);
    assert_eq!(half.zero_bytes + half.code_bytes + half.data_bytes, 470 * 4096);
}

#[test]
fn what_was_not_seen_is_unknown_and_the_kernels_zero_page_never_is() {
    let none = saved(&HOST, 1000, 50, &Kinds::default());
    assert_eq!(none, SavedFrom { zero_bytes: 50 * 4096, unknown_bytes: 900 * 4096, ..SavedFrom::default() });
    let part = saved(&HOST, 1000, 0, &kinds(&[("zero", 1.0), ("unknown", 3.0)]));
    assert_eq!((part.zero_bytes, part.unknown_bytes), (225 * 4096, 675 * 4096));
    assert_eq!(saved(&Host::default(), 0, 0, &Kinds::default()), SavedFrom::default());
}

#[test]
fn this_process_is_measured_and_one_that_is_gone_is_left_out() {
    let me = std::process::id();
    let one = of_processes(&[me]).unwrap();
    assert!(one.resident_bytes > 0 && one.virtual_bytes >= one.resident_bytes, "{one:?}");
    assert!(one.unique_bytes + one.shared_bytes <= one.resident_bytes, "{one:?}");
    assert_eq!(of_processes(&[u32::MAX >> 1]).unwrap(), Cost::default());
}
