//! Which addresses of a network somebody has already: ARP probes (RFC 5227, section 2.1.1).

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::sys;

/// How long answers are waited for after the last question. On one network they come within milliseconds.
const ANSWERS_WITHIN: Duration = Duration::from_millis(1000);
/// How often each address is asked for: a single frame may be lost.
const QUESTIONS: u32 = 2;
/// Time between two questions.
const PAUSE: Duration = Duration::from_millis(300);
/// Bytes of an ARP message over Ethernet about IPv4 (RFC 826).
const LENGTH: usize = 28;
const HARDWARE: std::ops::Range<usize> = 8..14;
const SENDER: std::ops::Range<usize> = 14..18;
const TARGET: std::ops::Range<usize> = 24..28;

/// Those of `addresses` that somebody answers for, with the hardware addresses of who does. `index` and `own` are number and
/// hardware address of the link that is asked over, in the namespace that this thread is in.
///
/// # Errors
/// When the kernel refuses the socket or a frame.
pub(crate) fn in_use(index: u32, own: &[u8], addresses: &[Ipv4Addr]) -> io::Result<BTreeMap<Ipv4Addr, String>> {
    let socket = sys::arp_socket(index)?;
    let mut found = BTreeMap::new();
    for question in 1..=QUESTIONS {
        for address in addresses {
            sys::send_arp(&socket, index, &probe(own, *address))?;
        }
        let wait = if question == QUESTIONS { ANSWERS_WITHIN } else { PAUSE };
        let deadline = Instant::now() + wait;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let within = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&within))? == 0 {
                break;
            }
            let mut message = [0; LENGTH];
            match recv(&socket, &mut message, RecvFlags::DONTWAIT) {
                Ok((read, _)) => found.extend(
                    sender(&message[..read])
                        .filter(|(at, who)| addresses.contains(at) && who != own)
                        .map(|(at, who)| (at, words(&who))),
                ),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(found)
}

/// The question who has an address, from one who has none.
fn probe(own: &[u8], address: Ipv4Addr) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    // Ethernet, IPv4, their lengths, a request.
    message[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    for (to, from) in message[HARDWARE].iter_mut().zip(own) {
        *to = *from;
    }
    message[TARGET].copy_from_slice(&address.octets());
    message
}

/// Who says of himself that he has which address.
fn sender(message: &[u8]) -> Option<(Ipv4Addr, Vec<u8>)> {
    let address: [u8; 4] = message.get(SENDER)?.try_into().ok()?;
    Some((address.into(), message.get(HARDWARE)?.to_vec()))
}

fn words(hardware: &[u8]) -> String {
    hardware.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_asks_without_an_address_of_its_own() {
        let own = [2, 1, 2, 3, 4, 5];
        let message = probe(&own, Ipv4Addr::new(192, 0, 2, 9));
        assert_eq!(sender(&message), Some((Ipv4Addr::UNSPECIFIED, own.to_vec())));
        assert_eq!(message[TARGET], [192, 0, 2, 9]);
        assert_eq!(sender(&message[..20]), Some((Ipv4Addr::UNSPECIFIED, own.to_vec())));
        assert_eq!(sender(&message[..10]), None);
        assert_eq!(words(&own), "02:01:02:03:04:05");
    }
}
