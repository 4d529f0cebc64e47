//! What is in a request, and how an answer is known to be its own.
//!
//! A request carries its sequence number in its first bytes (eight, or as many as the smaller of request
//! and response has), and the server copies them to the front of the response. A late datagram is thus never
//! taken for an answer, and a connection that lost step is seen. The rest is zeros.

use tare_model::drive::Wait;

/// Buffers of one connection.
#[derive(Debug)]
pub(crate) struct Payload {
    pub request: Vec<u8>,
    pub answer: Vec<u8>,
    sequence: u64,
    stamp: usize,
    pub wait: Wait,
}

/// Bytes of the sequence number that fit into both directions.
pub(crate) fn stamp_len(request_bytes: usize, response_bytes: usize) -> usize {
    request_bytes.min(response_bytes).min(8)
}

impl Payload {
    pub fn new(request_bytes: u32, response_bytes: u32, wait: Wait) -> Self {
        let (request, response) = (request_bytes as usize, response_bytes as usize);
        Self {
            request: vec![0; request],
            answer: vec![0; response],
            sequence: 0,
            stamp: stamp_len(request, response),
            wait,
        }
    }

    /// Puts the next sequence number into the request.
    #[inline]
    pub fn next(&mut self) {
        self.sequence += 1;
        let bytes = self.sequence.to_be_bytes();
        self.request[..self.stamp].copy_from_slice(&bytes[8 - self.stamp..]);
        // The high bit of the first byte is what tells a hello from a request.
        self.request[0] &= 0x7f;
    }

    /// Whether the answer is that of the last request.
    #[inline]
    pub fn answered(&self) -> bool {
        self.answer[..self.stamp] == self.request[..self.stamp]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_answer_is_distinguished_from_the_right_one() {
        for (request, response) in [(128, 128), (8, 1), (1, 8), (3, 3)] {
            let mut payload = Payload::new(request, response, Wait::Block);
            payload.next();
            let stamp = stamp_len(request as usize, response as usize);
            let first = payload.request[..stamp].to_vec();
            payload.next();
            payload.answer[..stamp].copy_from_slice(&first);
            assert!(!payload.answered(), "{request}/{response}");
            let second = payload.request[..stamp].to_vec();
            payload.answer[..stamp].copy_from_slice(&second);
            assert!(payload.answered());
        }
    }

    #[test]
    fn no_request_looks_like_a_hello() {
        let mut payload = Payload::new(1, 1, Wait::Block);
        for _ in 0..1000 {
            payload.next();
            assert!(payload.request[0] < 0x80);
        }
    }
}
