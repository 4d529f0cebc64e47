//! What differs from the published original, report 001.

use tare_model::ByteSize;
use tare_model::deviation::Deviation;
use tare_model::drive::Exchange;

use super::{Parameters, Wait};

/// Bytes of a request, a response and a socket's buffers as published: `-r 128 -s 128` (report 001, line 23).
const PUBLISHED: ByteSize = ByteSize(128);

/// What differs with these parameters.
pub(super) fn deviations(parameters: &Parameters) -> Vec<Deviation> {
    let pair = ("netperf 2.4.5", "tare's own, with the same calls");
    let why = "netperf gives one mean, and does not check answers";
    let mut all =
        vec![Deviation::new("program", pair, why, "little: what recording costs is measured by `tare calibrate`")];
    let mut differs = |what: &str, published: &str, here: String, effect: &str| {
        all.push(Deviation::new(what, (published, here), "the study asks for it", effect));
    };
    match parameters.exchange {
        Exchange::TcpRr => {}
        Exchange::UdpRr => differs("exchange", "TCP_RR", "UDP_RR".to_owned(), "another path through the kernel"),
        Exchange::TcpCrr => {
            differs("exchange", "TCP_RR", "TCP_CRR".to_owned(), "a connection is made for each exchange")
        }
    }
    if (parameters.request, parameters.response) != (PUBLISHED, PUBLISHED) {
        let here = format!("{} and {}", parameters.request, parameters.response);
        differs("request and response", "128B and 128B", here, "below 1 KiB little; above, bytes cost time");
    }
    if parameters.buffer != Some(PUBLISHED) {
        let here = parameters.buffer.map_or("the kernel's own".to_owned(), |size| size.to_string());
        differs("buffers of sockets", "128B, which the kernel raises", here, "little, as long as an exchange fits");
    }
    if parameters.wait == Wait::Spin {
        differs("waiting", "asleep", "both ends poll".to_owned(), "no wake-up: shorter response times");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed() {
        let names = |parameters: &Parameters| -> Vec<String> {
            deviations(parameters).into_iter().map(|own| own.what).collect()
        };
        let size = PUBLISHED;
        let published = Parameters { request: size, response: size, buffer: Some(size), ..Parameters::default() };
        assert_eq!(names(&published), ["program"]);
        let other = Parameters { exchange: Exchange::TcpCrr, wait: Wait::Spin, ..Parameters::default() };
        assert_eq!(names(&other), ["program", "exchange", "request and response", "buffers of sockets", "waiting"]);
    }
}
