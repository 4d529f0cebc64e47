//! One user on their way through a site.

use crate::web::spec::Think;

use super::compile::{END, Site};
use crate::session::draw::Dice;

/// What a user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Asks for this.
    State(u16),
    /// Ends the session.
    End,
}

/// All that is kept of a user between two requests, but their cookie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(super) dice: Dice,
    /// From 1.
    pub(super) number: u32,
    /// Directory of the product that the user looks at.
    pub(super) directory: u32,
    pub(super) state: u16,
    /// Which of the user's checks.
    pub(super) check: u8,
    /// Which product of the directory.
    pub(super) item: u8,
    way: Way,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Fresh,
    First,
    Later,
    Over,
}

impl User {
    /// A new user. `session` is the number of the session in the run, which no other has: with the seed it decides all that the user
    /// does. The user's own number is drawn, so that a run's users are spread over all that there are.
    pub fn fresh(site: &Site, seed: u64, session: u64) -> Self {
        let mut dice = Dice::new(seed, session);
        let number = 1 + dice.below(site.files.users);
        let state = site.entry.states[site.entry.table.choose(&mut dice)];
        let mut user = Self { dice, number, directory: 0, state, check: 0, item: 0, way: Way::Fresh };
        user.look(site, true, true);
        user
    }

    /// Goes on: at first to the entry, then by the table of the state that the user is in.
    pub fn next(&mut self, site: &Site) -> Next {
        match self.way {
            Way::Over => return Next::End,
            Way::Fresh => self.way = Way::First,
            Way::First | Way::Later => {
                let from = &site.states[usize::from(self.state)];
                let to = from.next.states[from.next.table.choose(&mut self.dice)];
                if to == END {
                    self.way = Way::Over;
                    return Next::End;
                }
                self.way = Way::Later;
                self.state = to;
                let arrived = &site.states[usize::from(to)];
                self.look(site, arrived.has_check && !from.has_check, arrived.has_product && !from.has_product);
            }
        }
        Next::State(self.state)
    }

    /// Chooses a check or a product. A user who comes from a page that has one keeps it: the images of a check are of the check
    /// whose page was shown, and what is put into the cart is what was looked at.
    fn look(&mut self, site: &Site, check: bool, product: bool) {
        let files = &site.files;
        if check && files.checks.checks > 0 {
            self.check = self.dice.below(files.checks.checks) as u8;
        }
        if product && files.products.directories > 0 {
            self.directory = self.dice.below(files.products.directories);
            self.item = self.dice.below(files.products.items) as u8;
        }
    }

    /// What the user asks for at this moment.
    pub const fn state(&self) -> u16 {
        self.state
    }

    /// Whether the user thinks before the request: as the state says, but never before the first of a session.
    pub fn thinks(&self, site: &Site) -> bool {
        self.way == Way::Later && site.states[usize::from(self.state)].thinks
    }

    /// How long the user thinks, nanoseconds.
    pub fn think_ns(&mut self, site: &Site) -> u64 {
        think(site.think, self.dice.unit())
    }
}

/// The think time at one number drawn from above 0 to 1: exponential by inversion. What would be longer than the most is the most, as
/// if the user had been interrupted, and not drawn again, which would make the mean shorter than the site says; at most 15 means, that is one
/// in 3 million. Then it is rounded to the nearest multiple of the step.
fn think(think: Think, unit: f64) -> u64 {
    let drawn = ((-unit.ln() * think.mean_ns as f64) as u64).min(think.most_ns);
    match think.step_ns {
        0 => drawn,
        step => (drawn + step / 2) / step * step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_exponential_cut_off_and_in_steps() {
        let banking = Think { mean_ns: 10_000_000_000, most_ns: 150_000_000_000, step_ns: 2_000_000_000 };
        let mut dice = Dice::new(5, 6);
        let draws: Vec<u64> = (0..200_000).map(|_| think(banking, dice.unit())).collect();
        assert!(draws.iter().all(|ns| ns % banking.step_ns == 0 && *ns <= banking.most_ns));
        let share = |test: &dyn Fn(u64) -> bool| draws.iter().filter(|ns| test(**ns)).count() as f64 / 200_000.0;
        // Rounded to multiples of 2 s: 0 is all below 1 s, and so on.
        for s in [1u64, 3, 9, 21] {
            let expected = 1.0 - (-(s as f64) / 10.0).exp();
            assert!((share(&|ns| ns < s * 1_000_000_000) - expected).abs() < 0.006, "{s} s");
        }
        let mean = draws.iter().sum::<u64>() as f64 / 200_000.0;
        // Rounding to the nearest adds (step / mean)^2 / 24 of the mean.
        assert!((mean / 1e10 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn the_longest_thought_is_the_most_and_no_mean_is_no_thought() {
        let short = Think { mean_ns: 1_000, most_ns: 2_000, step_ns: 0 };
        assert_eq!(think(short, 1e-9), 2_000);
        assert_eq!(think(short, 1.0), 0);
        assert_eq!(think(short, (-1f64).exp()), 1_000);
        assert_eq!(think(Think::default(), 0.3), 0);
    }

    #[test]
    fn a_user_is_small() {
        assert!(size_of::<User>() <= 32, "{}", size_of::<User>());
    }
}
