//! The users of a site, on average: how long they stay, and what they keep busy on a server.

use crate::web::spec::SiteModel;

/// Requests after which a user is taken to have left, whatever the tables say.
const REQUESTS_MOST: u32 = 10_000;
/// What is left of a crowd of users when it counts as gone.
const GONE: f64 = 1e-9;
/// Heap that a connection of the server that comes with tare keeps busy, bytes: plain, and with TLS, as bench/README.md has measured it
/// (a user's session is in it).
const PLAIN_BYTES: u64 = 18_000;
const SECURE_BYTES: u64 = 75_000;
/// Heap for what the server keeps of users who left without saying so, for each who is there, bytes.
const LEFT_BYTES: u64 = 12_000;
/// Heap that is busy without any user, bytes: the server, its threads, and images of pages.
const SERVER_BYTES: u64 = 32 << 20;

/// A user's session on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stay {
    /// How long its user thinks, all in all, seconds. It lasts a little longer than that.
    pub thinking_s: f64,
    /// Which part of it comes once something was asked for over TLS, 0 to 1.
    pub secure: f64,
}

impl Stay {
    /// By the tables of a site: follows a crowd of users from page to page until all have left.
    pub fn of(site: &SiteModel) -> Self {
        let states = site.states.len();
        let think_s = site.think.mean_ns as f64 / 1e9;
        // Users in each state, those who have not yet asked for anything over TLS apart.
        let mut crowd = vec![[0.0; 2]; states];
        let enter = |crowd: &mut Vec<[f64; 2]>, next: &[(u16, f64)], many: f64, was_secure: bool| {
            for (to, probability) in next {
                let Some(state) = site.states.get(usize::from(*to)) else { continue };
                crowd[usize::from(*to)][usize::from(was_secure || state.secure)] += many * probability;
            }
        };
        enter(&mut crowd, &site.entry, 1.0, false);
        let (mut requests, mut secure, mut thinks) = (0.0, 0.0, 0.0);
        for first in (0..REQUESTS_MOST).map(|request| request == 0) {
            let mut next = vec![[0.0; 2]; states];
            for (state, users) in site.states.iter().zip(&crowd) {
                let here = users[0] + users[1];
                requests += here;
                secure += users[1];
                thinks += if state.thinks && !first { here } else { 0.0 };
                enter(&mut next, &state.next, users[0], false);
                enter(&mut next, &state.next, users[1], true);
            }
            crowd = next;
            if crowd.iter().flatten().sum::<f64>() < GONE {
                break;
            }
        }
        Self { thinking_s: thinks * think_s, secure: if requests > 0.0 { secure / requests } else { 0.0 } }
    }
}

/// Heap that so many users keep busy who have so many connections each, bytes. `stay` is how they stay; `tls`: the server speaks
/// TLS itself where it is asked for.
pub(super) fn busy_heap(users: u32, connections: u8, stay: Stay, tls: bool) -> u64 {
    let secure = if tls { stay.secure } else { 0.0 };
    // Who goes on over TLS has no plain connection any more.
    let connection = ((1.0 - secure) * PLAIN_BYTES as f64 + secure * SECURE_BYTES as f64).round() as u64;
    let user = LEFT_BYTES + u64::from(connections) * connection;
    SERVER_BYTES.saturating_add(u64::from(users).saturating_mul(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::compile::{compile, file_set};
    use crate::web::tables::Site;

    fn stay(site: Site) -> Stay {
        let tables = site.tables().unwrap();
        Stay::of(&compile(&tables, file_set(&tables.files, None, 1)))
    }

    #[test]
    fn users_stay_as_long_as_the_published_ones() {
        // Published: 4.645 requests a session of which 61.58 % come after a thought of 10 s; 12.4 and 91.94 %; 14.8, 92.08 %, 5 s.
        for (site, requests, share, think_s) in [
            (Site::Banking, 4.645, 0.6158, 10.0),
            (Site::Ecommerce, 12.4, 0.9194, 10.0),
            (Site::Support, 14.8, 0.9208, 5.0),
        ] {
            let (seen, published) = (stay(site).thinking_s, requests * share * think_s);
            assert!((seen / published - 1.0).abs() < 0.02, "{site:?}: {seen} s, published {published} s");
        }
    }

    #[test]
    fn a_bank_is_all_tls_a_shop_in_part_and_support_none() {
        assert!((stay(Site::Banking).secure - 1.0).abs() < 1e-9);
        let shop = stay(Site::Ecommerce).secure;
        assert!((0.1..0.2).contains(&shop), "{shop}");
        assert!(stay(Site::Support).secure.abs() < 1e-9);
    }

    #[test]
    fn users_of_tls_keep_more_heap_busy() {
        let bank = stay(Site::Banking);
        assert_eq!(busy_heap(1000, 2, bank, true), SERVER_BYTES + 1000 * (LEFT_BYTES + 2 * SECURE_BYTES));
        assert_eq!(busy_heap(1000, 2, bank, false), SERVER_BYTES + 1000 * (LEFT_BYTES + 2 * PLAIN_BYTES));
    }

    #[test]
    fn a_site_that_nobody_leaves_is_followed_for_a_while_only() {
        let tables = Site::Support.tables().unwrap();
        let mut model = compile(&tables, file_set(&tables.files, None, 1));
        let states = model.states.len();
        for (state, at) in model.states.iter_mut().zip(0..) {
            state.next = vec![((at + 1) % u16::try_from(states).unwrap(), 1.0)];
        }
        assert!(Stay::of(&model).thinking_s > 10_000.0);
    }
}
