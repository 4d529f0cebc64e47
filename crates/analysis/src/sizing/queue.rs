//! The queue of c servers.

/// Utilisation from which a queue is taken as saturated: its time is decided by the number of clients and not by the utilisation, and
/// a point of error of the CPU would be several service times.
pub(super) const SATURATED: f64 = 0.97;

/// Probability that an arrival has to wait in an M/M/c queue, each server busy to the share `utilisation` (A. K. Erlang 1917; by the
/// recursion of Erlang B, which neither overflows nor cancels). 1 from 1 on, 0 up to 0.
pub(super) fn erlang_c(servers: u32, utilisation: f64) -> f64 {
    if utilisation.is_nan() || utilisation >= 1.0 {
        return 1.0;
    }
    if utilisation <= 0.0 || servers == 0 {
        return 0.0;
    }
    let offered = utilisation * f64::from(servers);
    let blocked = (1..=servers).fold(1.0, |blocked, k| offered * blocked / (f64::from(k) + offered * blocked));
    blocked / (1.0 - utilisation * (1.0 - blocked))
}

/// Mean time in an M/M/c queue over its mean service time: `1 + C(c, c U) / (c (1 - U))`, which is `1 / (1 - U)` for one server
/// (L. Kleinrock, Queueing Systems, volume 1, 1975). Infinite from utilisation 1 on.
pub(super) fn stretch(servers: u32, utilisation: f64) -> f64 {
    if utilisation.is_nan() || utilisation >= 1.0 {
        return f64::INFINITY;
    }
    let free = f64::from(servers.max(1)) * (1.0 - utilisation.max(0.0));
    1.0 + erlang_c(servers.max(1), utilisation) / free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_is_the_textbook_queue_and_tables_agree() {
        for utilisation in [0.0, 0.1, 0.5, 0.9, 0.969] {
            assert!((stretch(1, utilisation) * (1.0 - utilisation) - 1.0).abs() < 1e-12);
            assert!((erlang_c(1, utilisation) - utilisation).abs() < 1e-12);
        }
        // C(2, a) = a^2 / (2 + a), of which a = 2 U: 1.6^2 / 3.6; C(5, 4) and C(10, 8) from tables of Erlang C.
        assert!((erlang_c(2, 0.8) - 2.56 / 3.6).abs() < 1e-12);
        assert!((erlang_c(5, 0.8) - 0.554_11).abs() < 1e-5);
        assert!((erlang_c(10, 0.8) - 0.409_18).abs() < 1e-5);
        assert!((stretch(2, 0.5) - 4.0 / 3.0).abs() < 1e-12);
        // By the sum of a^k / k!, reckoned elsewhere; the time of 400,000 arrivals at four servers, simulated there, was 1.7447.
        assert!((erlang_c(4, 0.6) - 0.287_043_189).abs() < 1e-9 && (erlang_c(8, 0.9) - 0.701_532_990).abs() < 1e-9);
        assert!((erlang_c(16, 0.95) - 0.780_192_462).abs() < 1e-9 && (stretch(16, 0.95) - 1.975_240_578).abs() < 1e-9);
        assert!((stretch(4, 0.8) / 1.744_7 - 1.0).abs() < 0.005);
    }

    #[test]
    fn it_grows_with_utilisation_shrinks_with_servers_and_never_breaks() {
        for servers in [1, 2, 3, 8, 64, 1000] {
            let all: Vec<f64> = (0..=99).map(|share| stretch(servers, f64::from(share) / 100.0)).collect();
            assert!(all.windows(2).all(|pair| pair[0] <= pair[1] && pair[1].is_finite()), "{servers}");
            assert!(stretch(servers, 0.9) >= stretch(servers + 1, 0.9));
        }
        assert_eq!((stretch(2, 1.0), stretch(2, f64::NAN)), (f64::INFINITY, f64::INFINITY));
        assert_eq!((stretch(0, 0.0), erlang_c(4, -1.0)), (1.0, 0.0));
    }
}
