//! What a server says of itself: version, settings, counters.

use std::sync::atomic::AtomicBool;

use tare_model::drive::SocketOptions;

use super::pipe::{Limit, Pipe};
use super::protocol::TEXT_BYTES;
use super::spec::{KvAsk, KvFailure, Said};
use crate::clock::now_ns;
use crate::task::Calls;

/// Entries that come back at most; INFO has some 300.
const ENTRIES: usize = 900;

impl Calls for KvAsk {
    fn call(self, cancel: &AtomicBool) -> Result<Said, KvFailure> {
        let limit = Limit { until_ns: now_ns().saturating_add(self.timeout_ns), cancel };
        let options = SocketOptions::default();
        let mut pipe = Pipe::open(self.server, self.protocol, &options, TEXT_BYTES, limit).map_err(KvFailure::of)?;
        let mut said = Said::new();
        for (at, question) in self.protocol.questions().iter().enumerate() {
            pipe.out = question.to_vec();
            let failed = |why: String| KvFailure { why: format!("ask it: {why}"), unreachable: false };
            pipe.bounded(true).and_then(|()| pipe.send(Some(limit))).map_err(|broken| failed(broken.to_string()))?;
            loop {
                if let Some((pairs, bytes)) =
                    self.protocol.said(pipe.came()).map_err(|fault| failed(fault.to_string()))?
                {
                    // What is set and what is counted may have the same name.
                    let name = |name: String| if at == 0 { name } else { format!("setting {name}") };
                    said.extend(pairs.into_iter().map(|(key, value)| (name(key), value)));
                    pipe.take(bytes);
                    break;
                }
                pipe.receive(Some(limit)).map_err(|broken| failed(broken.to_string()))?;
            }
        }
        said.truncate(ENTRIES);
        Ok(said)
    }
}
