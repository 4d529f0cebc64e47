//! The rate of a link: a token bucket (tc-tbf(8)) on what leaves one end of it, set and read back by rtnetlink.
//!
//! It stands in for the network card of a published test bed. It bounds bytes a second, as a card does; it does not make a single
//! short frame slower, which on a link of 1 Gbit/s would take 1 to 2 us.
//!
//! Structures and attributes are those of linux/pkt_sched.h: `TCA_TBF_*`, and the first holds a `tc_tbf_qopt`, whose rates are in bytes a second.

use rtnetlink::packet_core::{DefaultNla, Nla, NlaBuffer, NlasIterator};
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use tare_model::units::BitRate;

/// Its name in the kernel.
pub(crate) const KIND: &str = "tbf";
/// The kernel's module of it.
pub(crate) const MODULE: &str = "sch_tbf";

const PARAMETERS: u16 = 1;
const RATE64: u16 = 4;
const BURST: u16 = 6;
/// Bytes of a `tc_tbf_qopt`: two `tc_ratespec` of 12, then limit, buffer and mtu.
const QOPT: usize = 36;
/// Where the rate is in it, and in the `tc_ratespec` that it begins with.
const RATE_AT: usize = 8;
/// Where the limit of its queue is in it.
const LIMIT_AT: usize = 24;
/// Where the kind of link layer is in a `tc_ratespec`, and its value for Ethernet: no table of rates is needed then.
const LINK_LAYER_AT: usize = 1;
const ETHERNET: u8 = 1;
/// Fewest bytes that may leave at once: one segment that the link's offloads leave uncut, with its headers.
const LEAST_BURST: u64 = 70_000;
/// The longest burst is what the rate gives in this part of a second: 0.1 ms.
const BURSTS_A_SECOND: u64 = 10_000;
/// Fewest bytes that may wait: two uncut segments of each of eight connections, as many as TCP hands over before it waits for the first
/// to leave (TSQ, net/ipv4/tcp_output.c). With less, segments are lost that a card would have taken.
const LEAST_QUEUE: u64 = 16 * LEAST_BURST;
/// Else what may wait is what the rate gives in this part of a second: 1 ms.
const QUEUES_A_SECOND: u64 = 1_000;

/// The message that puts a bucket of that rate at the root of a link.
pub(crate) fn message(index: u32, rate: BitRate) -> TcMessage {
    let bytes = (rate.0 / 8).max(1);
    let whole = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let mut qopt = [0; QOPT];
    qopt[LINK_LAYER_AT] = ETHERNET;
    qopt[RATE_AT..RATE_AT + 4].copy_from_slice(&whole(bytes).to_ne_bytes());
    let limit = whole(LEAST_QUEUE.max(bytes / QUEUES_A_SECOND));
    qopt[LIMIT_AT..LIMIT_AT + 4].copy_from_slice(&limit.to_ne_bytes());
    let burst = whole(LEAST_BURST.max(bytes / BURSTS_A_SECOND));
    let option = |kind, value: &[u8]| TcOption::Other(DefaultNla::new(kind, value.to_vec()));
    let mut message = TcMessage::with_index(index.cast_signed());
    message.header.parent = TcHandle::ROOT;
    message.attributes = vec![
        TcAttribute::Kind(KIND.to_owned()),
        TcAttribute::Options(vec![
            option(PARAMETERS, &qopt),
            option(RATE64, &bytes.to_ne_bytes()),
            option(BURST, &burst.to_ne_bytes()),
        ]),
    ];
    message
}

/// The rate of the bucket that a message is of; `None` where it is of none.
pub(crate) fn read(message: &TcMessage) -> Option<BitRate> {
    if !message.attributes.iter().any(|own| matches!(own, TcAttribute::Kind(kind) if kind == KIND)) {
        return None;
    }
    // What the library does not know is one option that holds all of them.
    let whole = message.attributes.iter().find_map(|own| match own {
        TcAttribute::Options(options) => options.iter().find_map(|option| match option {
            TcOption::Other(all) => Some(value(all)),
            _ => None,
        }),
        _ => None,
    })?;
    let options: Vec<_> = NlasIterator::new(&whole).flatten().collect();
    let of = |kind: u16| options.iter().find(|option| option.kind() == kind).map(NlaBuffer::value);
    let long = of(RATE64).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
    let short = || of(PARAMETERS)?.get(RATE_AT..RATE_AT + 4)?.try_into().ok().map(u32::from_ne_bytes).map(u64::from);
    Some(BitRate(long.or_else(short)?.saturating_mul(8)))
}

fn value(nla: &DefaultNla) -> Vec<u8> {
    let mut bytes = vec![0; nla.value_len()];
    nla.emit_value(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use rtnetlink::packet_core::Emitable;

    use super::*;

    /// A message as the kernel sends it: the options of a kind that the library does not know are one.
    fn answered(mut message: TcMessage) -> TcMessage {
        for attribute in &mut message.attributes {
            if let TcAttribute::Options(options) = attribute {
                let mut whole = vec![0; options.as_slice().buffer_len()];
                options.as_slice().emit(&mut whole);
                *options = vec![TcOption::Other(DefaultNla::new(2, whole))];
            }
        }
        message
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for rate in [BitRate(1_000_000), BitRate(1_000_000_000), BitRate(100_000_000_000)] {
            assert_eq!(read(&answered(message(7, rate))), Some(rate));
        }
        assert_eq!(read(&TcMessage::with_index(7)), None);
    }

    #[test]
    fn what_is_cut_short_has_no_rate() {
        let mut message = message(7, BitRate(1_000_000));
        for bytes in [vec![], vec![40], vec![40, 0, 1, 0, 0]] {
            message.attributes[1] = TcAttribute::Options(vec![TcOption::Other(DefaultNla::new(2, bytes))]);
            assert_eq!(read(&message), None);
        }
    }
}
