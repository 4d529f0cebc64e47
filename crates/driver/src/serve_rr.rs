//! Serves TCP request and response: a blocking thread for each connection.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::SendFlags;
use tare_model::drive::{Hold, ServiceTime, Wait};
use tare_model::random::SplitMix64;

use crate::clock::{now_ns, sleep_until, tighten_timers};
use crate::error::reason_of;
use crate::net;
use crate::payload::stamp_len;
use crate::protocol::{HELLO_LEN, Hello, Purpose, Reply, heard};
use crate::server::{HELLO_TIMEOUT, Shared};

/// What is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub request: u32,
    pub response: u32,
    pub wait: Wait,
    pub hold: Option<Hold>,
}

impl Sizes {
    pub const fn reply(&self, serves: Purpose, port: u16) -> Reply {
        Reply { serves, request_bytes: self.request, response_bytes: self.response, port }
    }
}

/// Hears a driver's first words. `None`: whoever connected is none of the trial's drivers, which is counted.
pub(crate) fn hear(shared: &Shared, fd: BorrowedFd<'_>) -> Result<Option<Hello>, String> {
    net::receive_timeout(fd, Some(HELLO_TIMEOUT)).map_err(reason_of)?;
    let mut words = [0; HELLO_LEN];
    // Who breaks off, or says nothing for long, shows no token either.
    let got = net::receive_full(fd, &mut words, Wait::Block).unwrap_or(0);
    let Some((hello, shown)) = heard(&words[..got]) else {
        if !shared.stopping() {
            shared.tally.stranger();
        }
        return Ok(None);
    };
    net::receive_timeout(fd, None).map_err(reason_of)?;
    Ok(shared.admits(&shown).then_some(hello))
}

/// Answers them. A driver that wants something else tells its user.
pub(crate) fn answer(fd: BorrowedFd<'_>, reply: &Reply) -> Result<(), String> {
    net::send_full(fd, &reply.encode(), SendFlags::empty()).map_err(reason_of)
}

/// Serves one connection until the driver closes it.
pub(crate) fn serve(shared: &Shared, fd: &OwnedFd, sizes: Sizes) -> Result<(), String> {
    let fd = fd.as_fd();
    let Some(hello) = hear(shared, fd)? else { return Ok(()) };
    let reply = sizes.reply(Purpose::TcpRr, 0);
    answer(fd, &reply)?;
    if !reply.fits(&hello) {
        return Ok(());
    }
    let mut request = vec![0; sizes.request as usize];
    let mut response = vec![0; sizes.response as usize];
    let stamp = stamp_len(request.len(), response.len());
    let mut exchanges = 0;
    let mut held = sizes.hold.map(|hold| Held::new(hold, hello.connection));
    let ended = loop {
        match net::receive_full(fd, &mut request, sizes.wait) {
            Ok(0) => break Ok(()),
            Ok(n) if n < request.len() => break Err("a request was cut short".to_owned()),
            Ok(_) => {}
            Err(errno) => break Err(reason_of(errno)),
        }
        response[..stamp].copy_from_slice(&request[..stamp]);
        match &mut held {
            None => {}
            Some(Held::Share(delay)) => delay.hold(),
            Some(Held::Service(service)) => service.hold(shared),
        }
        if let Err(errno) = net::send_full(fd, &response, SendFlags::empty()) {
            break Err(reason_of(errno));
        }
        exchanges += 1;
    };
    shared.tally.served(1, exchanges * u64::from(sizes.request), exchanges * u64::from(sizes.response));
    ended
}

/// What holds answers back.
enum Held {
    Share(Delay),
    Service(Service),
}

impl Held {
    fn new(hold: Hold, connection: u32) -> Self {
        match hold {
            Hold::Share(permille) => Self::Share(Delay::new(permille)),
            Hold::Service(time) => {
                tighten_timers();
                Self::Service(Service { time, random: SplitMix64(connection.into()) })
            }
        }
    }
}

/// Answers by a service time.
struct Service {
    time: ServiceTime,
    random: SplitMix64,
}

impl Service {
    /// Waits for the moment of the answer, and records how long the request has been here. Ended early when the server stops.
    fn hold(&mut self, shared: &Shared) {
        let received = now_ns();
        // 53 bits, as many as a number of this type holds.
        let random = (self.random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let at = self.time.answers_at(received, *shared.first_request.get_or_init(|| received), random);
        sleep_until(at, &shared.stop);
        shared.tally.service().record(now_ns() - received);
        shared.tally.answered(1);
    }
}

/// Holds answers back for a fixed time, and for a part of the whole exchange on top of it: the known difference of a positive control.
///
/// The fixed time is there because a wait that only the slower server had would not be the difference asked for: what follows a wait
/// begins with an idle pipeline, which is worth some 10 ns, a tenth of 2 % of an exchange on loopback.
struct Delay {
    permille: u64,
    last: u64,
    /// What was held too long so far, nanoseconds: it is taken off the next.
    over: u64,
}

impl Delay {
    /// Held in every exchange, nanoseconds.
    const BASE_NS: u64 = 20_000;
    /// A longer time is a rest between turns, of which no part is the operation's.
    const REST_NS: u64 = 5_000_000;

    fn new(permille: u32) -> Self {
        Self { permille: permille.into(), last: now_ns(), over: 0 }
    }

    fn hold(&mut self) {
        let begun = now_ns();
        let passed = Some(begun.saturating_sub(self.last)).filter(|passed| *passed < Self::REST_NS).unwrap_or(0);
        let asked = Self::BASE_NS + (passed + Self::BASE_NS) * self.permille / 1000;
        let until = begun + asked.saturating_sub(self.over);
        let mut now = begun;
        while now < until {
            std::hint::spin_loop();
            now = now_ns();
        }
        self.over = (self.over + (now - begun)).saturating_sub(asked).min(asked);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_the_share_that_is_asked_on_average() {
        let mut delay = Delay::new(500);
        let (mut held, mut passed, exchanges) = (0, 0, 200);
        for _ in 0..exchanges {
            let (last, begun) = (delay.last, now_ns() + 20_000);
            while now_ns() < begun {
                std::hint::spin_loop();
            }
            let before = now_ns();
            delay.hold();
            // A rest counts for neither: its share is not held.
            let own = Some(before - last).filter(|own| *own < Delay::REST_NS).unwrap_or(0);
            (held, passed) = (held + delay.last - before, passed + own);
        }
        let base = exchanges * Delay::BASE_NS;
        // A thread that loses its CPU is held for longer.
        assert!((held - base) * 10 > (passed + base) * 4, "{held} of {passed} ns");
    }
}
