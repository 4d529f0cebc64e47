//! The open loop on one connection with any number of requests under way: each is sent when it is due, and answers come in their order.
//!
//! A connection on which a request waits for the answer before it is a queue of its own where answers take longer than the gap between arrivals.
//! One thread both sends and receives. It never blocks on either, so that a server that waits to be read from is read from.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tare_model::drive::Wait;

use crate::clock::{now_ns, sleep_until};
use crate::control::Armed;
use crate::error::{Failure, reason_of};
use crate::open::{Arrival, Counting, Hand, Shared, give_up, goes_on, unfinished};
use crate::operation::{CUT_OFF, Worker};
use crate::payload::Payload;
use crate::tally::Tally;

/// Longest wait for an answer until the thread looks whether it shall stop.
const LOOK_NS: u64 = 50_000_000;

/// One connection.
#[derive(Debug)]
pub(crate) struct Pipeline<'a> {
    fd: &'a OwnedFd,
    /// The requests in their order.
    requests: Payload,
    /// The answers in theirs.
    answers: Payload,
    _armed: Option<Armed<'a>>,
}

impl<'a> Pipeline<'a> {
    /// An open connection, which the supervisor may cut.
    pub fn new(fd: &'a OwnedFd, armed: Option<Armed<'a>>, request_bytes: u32, response_bytes: u32) -> Self {
        let payload = || Payload::new(request_bytes, response_bytes, Wait::Block);
        Self { fd, requests: payload(), answers: payload(), _armed: armed }
    }
}

/// A connection in its course.
struct Running<'a> {
    pipeline: Pipeline<'a>,
    worker: &'a Worker<'a>,
    counting: Counting<'a>,
    /// What was sent and is not answered, with the moment at which it was.
    under_way: VecDeque<(Arrival, u64)>,
    /// Bytes of the last request that the kernel has not taken yet.
    unsent: usize,
    /// Bytes of the next answer that have come.
    filled: usize,
}

/// Runs one connection through all its arrivals, as [`open::run`](crate::open::run) does. What is under way when the supervisor stops the run is
/// unfinished.
pub(crate) fn run(pipeline: Pipeline<'_>, worker: &Worker<'_>, shared: &Shared) -> Tally {
    let mut hand = Hand::of(&shared.dealer, worker.index as usize);
    let (counting, under_way) = (Counting::of(worker), VecDeque::new());
    let mut running = Running { pipeline, worker, counting, under_way, unsent: 0, filled: 0 };
    let mut next = hand.next();
    let ended = running.go(&mut next, &mut hand, shared);
    running.give_up(ended);
    give_up(next, &mut hand, worker, shared, &mut running.counting.tally);
    running.counting.finish()
}

impl Running<'_> {
    /// Until nothing is to be sent or answered any more, or the run is stopped.
    fn go(&mut self, next: &mut Option<u64>, hand: &mut Hand<'_>, shared: &Shared) -> Result<(), Failure> {
        let (timeline, control) = (&self.worker.timeline, self.worker.control);
        while !control.stop.load(Ordering::Relaxed) && (next.is_some() || !self.under_way.is_empty()) {
            let now = now_ns();
            self.counting.tracker.at(now);
            // A request of which the kernel has not taken all comes before the next one.
            let Some(intended) = next.filter(|_| self.unsent == 0) else {
                self.wait(u64::MAX)?;
                continue;
            };
            let arrival = Arrival { intended, due: timeline.measures(intended) };
            let dropped = !arrival.due && now >= timeline.load_end;
            // What could not be sent in its turn is sent in the next, or when all have had theirs.
            let begins = timeline.after(intended.max(now), 0);
            if !dropped && begins > now {
                self.wait(begins)?;
                continue;
            }
            *next = hand.next();
            if dropped {
                shared.backlog.given_up(intended);
            } else {
                shared.backlog.waited(intended, now);
                self.send(arrival, now)?;
            }
        }
        Ok(())
    }

    /// Sends the next request.
    fn send(&mut self, arrival: Arrival, now: u64) -> Result<(), Failure> {
        self.pipeline.requests.next();
        self.unsent = self.pipeline.requests.request.len();
        self.under_way.push_back((arrival, now));
        self.push()
    }

    /// Hands the kernel what it takes of the last request.
    fn push(&mut self) -> Result<(), Failure> {
        let request = &self.pipeline.requests.request;
        while self.unsent > 0 {
            match send(
                self.pipeline.fd,
                &request[request.len() - self.unsent..],
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(n) => self.unsent -= n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(Failure::fatal(reason_of(errno))),
            }
        }
        Ok(())
    }

    /// Waits until a moment, or until there is something to receive, and takes it.
    fn wait(&mut self, until: u64) -> Result<(), Failure> {
        if self.under_way.is_empty() {
            // More precise than a wait for the socket, whose timer the kernel allows a thousandth.
            sleep_until(until, &self.worker.control.stop);
            return Ok(());
        }
        let left = until.saturating_sub(now_ns()).min(LOOK_NS);
        let wanted = if self.unsent > 0 { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let wait = Timespec { tv_sec: 0, tv_nsec: left as _ };
        match poll(&mut [PollFd::from_borrowed_fd(self.pipeline.fd.as_fd(), wanted)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(Failure::fatal(reason_of(errno))),
        }
        self.push()?;
        self.receive()
    }

    /// Takes what has come.
    fn receive(&mut self) -> Result<(), Failure> {
        loop {
            let answer = &mut self.pipeline.answers.answer;
            match recv(self.pipeline.fd, &mut answer[self.filled..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Failure::closed()),
                Ok((n, _)) => self.filled += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(Failure::fatal(reason_of(errno))),
            }
            if self.filled == self.pipeline.answers.answer.len() {
                self.filled = 0;
                self.answered()?;
            }
        }
    }

    /// Counts an answer, which must be that of the oldest request under way.
    fn answered(&mut self) -> Result<(), Failure> {
        let now = now_ns();
        self.pipeline.answers.next();
        let right = self.pipeline.answers.answered();
        let oldest = self.under_way.front().copied().filter(|_| right);
        let (arrival, sent) = oldest.ok_or_else(|| Failure::fatal("wrong answer"))?;
        self.under_way.pop_front();
        let rested = self.worker.timeline.frozen(sent, now);
        self.counting.answered(&arrival, (sent, now), (now - sent).saturating_sub(rested), rested);
        Ok(())
    }

    /// Counts what is not answered and will not be: the connection broke, or the run was stopped.
    fn give_up(&mut self, ended: Result<(), Failure>) {
        let tally = &mut self.counting.tally;
        if let Err(failure) = ended {
            match self.under_way.pop_front() {
                Some((arrival, _)) => drop(goes_on(failure, &arrival, self.worker, tally)),
                None => tally.error(failure.reason),
            }
        }
        for (arrival, _) in self.under_way.drain(..) {
            if arrival.due {
                unfinished(arrival.intended, self.worker, tally);
            } else {
                tally.error(CUT_OFF.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::backlog::Backlog;
    use crate::control::{Control, Meter};
    use crate::course::GRACE_NS;
    use crate::schedule::{Dealer, Schedule};
    use crate::timeline::Timeline;
    use tare_model::Span;
    use tare_model::load::{Arrivals, Phases};

    /// Bytes of a request and of an answer.
    const SIZE: usize = 16;

    /// 200 ms of an arrival every 2 ms, against what serves the other end.
    fn driven(serve: impl FnOnce(UnixStream) + Send) -> Tally {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = OwnedFd::from(ours);
        let phases = Phases::measuring(Span::from_millis(200));
        let timeline = Timeline::new(now_ns() + 20_000_000, &phases);
        let schedule = Schedule::new(500.0, Arrivals::Uniform, &phases, timeline.start, 1);
        let backlog = Backlog::new(&timeline, timeline.load_end + GRACE_NS);
        let shared = Shared { dealer: Dealer::new(schedule, 1), backlog };
        let (control, meter) = (Control::default(), Meter::default());
        let (index, of, record, delay_ns) = (0, 1, true, 0);
        let worker = Worker { index, of, timeline, control: &control, meter: &meter, record, shared: None, delay_ns };
        std::thread::scope(|scope| {
            scope.spawn(|| serve(theirs));
            let tally = run(Pipeline::new(&ours, None, SIZE as u32, SIZE as u32), &worker, &shared);
            rustix::net::shutdown(&ours, rustix::net::Shutdown::Both).unwrap();
            tally
        })
    }

    /// Requests as they come, until the other end is gone.
    fn requests(mut from: &UnixStream) -> impl Iterator<Item = [u8; SIZE]> {
        std::iter::from_fn(move || {
            let mut request = [0; SIZE];
            from.read_exact(&mut request).ok().map(|()| request)
        })
    }

    #[test]
    fn a_latency_longer_than_the_gap_makes_no_queue() {
        let latency = Duration::from_millis(30);
        let tally = driven(|stream| {
            let (to, from) = std::sync::mpsc::channel::<(std::time::Instant, [u8; SIZE])>();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for (came, request) in from {
                        std::thread::sleep(latency.saturating_sub(std::time::Instant::elapsed(&came)));
                        let _ = (&stream).write_all(&request);
                    }
                });
                requests(&stream).for_each(|request| to.send((std::time::Instant::now(), request)).unwrap());
                drop(to);
            });
        });
        let response = tally.response.into_histogram();
        assert_eq!((response.operations(), response.not_completed(), tally.answered), (100, 0, 100));
        let at = |q: f64| response.quantile(q).unwrap() / 1e6;
        assert!(
            at(0.0) >= 29.9 && at(0.5) < 60.0,
            "one after another the last would wait for 3 s: {} {}",
            at(0.0),
            at(0.5)
        );
        assert!(tally.errors.is_empty() && tally.lateness.into_histogram().quantile(0.5).unwrap() < 20e6);
    }

    #[test]
    fn every_request_that_was_due_in_a_stall_counts_from_when_it_was_due() {
        let tally = driven(|stream| {
            for (number, request) in requests(&stream).enumerate() {
                if number == 20 {
                    std::thread::sleep(Duration::from_millis(100));
                }
                let _ = (&stream).write_all(&request);
            }
        });
        let response = tally.response.into_histogram();
        let slower =
            |ms: u64| response.bins.iter().filter(|bin| bin.low >= ms * 1_000_000).map(|bin| bin.count).sum::<u64>();
        assert_eq!((response.operations(), response.not_completed()), (100, 0));
        assert!(slower(99) >= 1 && slower(50) >= 24, "{} and {}", slower(99), slower(50));
    }

    #[test]
    fn what_a_broken_connection_leaves_unanswered_is_longer_than_all_that_was_answered() {
        let tally = driven(|stream| {
            for request in requests(&stream).take(40) {
                let _ = (&stream).write_all(&request);
            }
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        let response = tally.response.into_histogram();
        // The end of a connection may overtake its last answers.
        assert!((1..=40).contains(&tally.answered), "{}", tally.answered);
        assert_eq!((response.count(), response.operations()), (tally.answered, 100));
        assert_eq!(response.not_completed(), tally.unfinished + response.failed);
        assert_eq!(tally.errors.values().sum::<u64>(), 1, "{:?}", tally.errors);
    }

    #[test]
    fn an_answer_out_of_order_is_wrong() {
        let tally = driven(|stream| {
            let mut all = requests(&stream);
            let (first, second) = (all.next().unwrap(), all.next().unwrap());
            let _ = (&stream).write_all(&[second, first].concat());
            all.for_each(drop);
        });
        assert_eq!((tally.answered, tally.errors.get("wrong answer")), (0, Some(&1)), "{:?}", tally.errors);
    }
}
