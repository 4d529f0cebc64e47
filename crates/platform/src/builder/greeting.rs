//! The first words with a guest's agent: the end of its start.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tare_wire::{Link, WireError};

use super::GuestBuilder;
use crate::channel::Opening;
use crate::error::Result;
use crate::guest::Parts;
use crate::watch;

impl GuestBuilder<'_> {
    /// Waits for the agent at the other end of the process's standard input and output. The start ends with its answer.
    pub(crate) fn greet(&mut self, timeout: Duration) -> Result<()> {
        self.greet_by(Link::open, timeout)
    }

    /// The same, where the agent may be one that was restored and greeted before.
    pub(crate) fn greet_by(&mut self, opening: Opening, timeout: Duration) -> Result<()> {
        let lifetime = self.site.lifetime;
        let Parts { channel, beside, .. } = &mut self.parts;
        let opened = match channel {
            Some(channel) => {
                // Not waited for before the channel is closed, so the number is still its own.
                let process = Pid::from_raw(channel.pid().cast_signed());
                let end = || {
                    // One that is gone already needs no killing.
                    let _ = process.map(|process| kill_process(process, Signal::KILL));
                };
                watch::open(beside, end, || channel.open(opening, timeout, lifetime))
            }
            None => Err(WireError::Gone { reason: "it has no channel".into() }),
        };
        self.answered(opened)
    }

    /// The same over a stream of the platform's own.
    pub(crate) fn greet_over(
        &mut self,
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        timeout: Duration,
    ) -> Result<()> {
        let lifetime = self.site.lifetime;
        let Parts { beside, killer, .. } = &mut self.parts;
        let end = || {
            // Whether it worked is seen when the guest is taken away.
            let _ = killer.as_mut().map(|killer| killer());
        };
        let opened = watch::open(beside, end, || Link::open(reader, writer, timeout, lifetime));
        self.answered(opened)
    }

    fn answered(&mut self, opened: std::result::Result<Link, WireError>) -> Result<()> {
        let link = opened.map_err(|error| self.no_answer(&error))?;
        self.start_time = self.began.elapsed().saturating_sub(self.aside);
        drop(self.joins.take());
        self.parts.link = Some(Arc::new(link));
        Ok(())
    }
}
