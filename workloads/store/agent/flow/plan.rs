//! What a client does next, drawn before it does anything: the same seed gives the same orders, whatever the server answers.

use crate::store::spec::StoreDrive;
use rand::SeedableRng;
use rand::rand_core::Rng;
use rand::rngs::Xoshiro256PlusPlus;

use crate::fill::words::words;
use crate::store::schema::{CATEGORIES, HOT_EVERY, HOT_FACTOR};

/// Most lines of an order.
pub(crate) const LINES_MAX: usize = 10;
/// Highest quantity of a line.
const QUANTITY_MAX: u64 = 3;

/// Random numbers of one client (xoshiro256++, the same on every machine and in every version).
#[derive(Debug, Clone)]
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// Those of client `index` of a driver with this seed.
    pub fn of(seed: u64, index: u32) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(start_of(seed, index)))
    }

    /// Uniform below `n`; 0 where `n` is. Off by less than `n`/2^64, which no run can see.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform from `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Uniform on 1 to twice the mean less one.
    #[inline]
    fn around(&mut self, mean: u32) -> u64 {
        self.between(1, (2 * u64::from(mean.max(1))) - 1)
    }

    /// True with this probability.
    #[inline]
    pub fn happens(&mut self, probability: f64) -> bool {
        /// Multiples of 2^-53 are the numbers that a float between 0 and 1 can hold.
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.0.next_u64() >> 11) as f64 * UNIT) < probability
    }

    fn one_of(&mut self, list: &[&'static str]) -> &'static str {
        list.get(self.below(list.len() as u64) as usize).copied().unwrap_or_default()
    }
}

/// Where the random numbers of a client start.
///
/// A generator takes the four words of its state from its start in steps of the golden ratio. Clients whose starts lay such steps
/// apart would have words in common, and so are kept apart by another odd number.
const fn start_of(seed: u64, index: u32) -> u64 {
    const APART: u64 = 0xD1B5_4A32_D192_ED03;
    seed.wrapping_add((index as u64 + 1).wrapping_mul(APART))
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Browse {
    /// Offers of a category.
    Category(i32),
    /// An actor, by first and last name.
    Actor(&'static str, &'static str),
    /// A word of titles.
    Title(&'static str),
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Item {
    pub product: i32,
    pub quantity: i32,
}

/// One order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Whose it is; `None`: a new customer's.
    pub customer: Option<u64>,
    /// What is looked for, and how many rows are wanted.
    pub browses: Vec<(Browse, i32)>,
    /// What is bought: `cart[..lines]`.
    cart: [Item; LINES_MAX],
    lines: usize,
}

impl Plan {
    /// Draws the next order over the last one.
    pub fn draw(&mut self, drive: &StoreDrive, dice: &mut Dice) {
        let new = dice.happens(drive.new_customers);
        self.customer = (!new).then(|| dice.between(1, drive.size.customers.max(1)));
        self.browses.clear();
        for _ in 0..dice.around(drive.searches) {
            let rows = dice.around(drive.search_batch).min(i32::MAX as u64) as i32;
            let browse = match dice.below(3) {
                0 => Browse::Category(dice.between(1, u64::from(CATEGORIES)) as i32),
                1 => Browse::Actor(dice.one_of(&words().first), dice.one_of(&words().last)),
                _ => Browse::Title(dice.one_of(&words().title)),
            };
            self.browses.push((browse, rows));
        }
        self.lines = (dice.around(drive.line_items) as usize).min(LINES_MAX);
        for item in &mut self.cart[..self.lines] {
            *item = Item {
                product: product(drive.size.products, dice) as i32,
                quantity: dice.between(1, QUANTITY_MAX) as i32,
            };
        }
    }

    /// What is bought.
    pub fn items(&self) -> &[Item] {
        &self.cart[..self.lines]
    }
}

/// A product, hot ones [`HOT_FACTOR`] times as often as others.
fn product(products: u64, dice: &mut Dice) -> u64 {
    let hot = products / HOT_EVERY;
    let more = u64::from(HOT_FACTOR - 1);
    match dice.below(products.max(1) + hot * more) {
        any if any < products.max(1) => any + 1,
        beyond => ((beyond - products) / more + 1) * HOT_EVERY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::spec::StoreSize;
    use std::collections::BTreeMap;
    use tare_model::sql::SqlServer;

    fn drive(products: u64) -> StoreDrive {
        let size = StoreSize { customers: 1_000, orders_per_month: 10, products };
        StoreDrive { new_user_from: 0, ..StoreDrive::of(SqlServer::of("127.0.0.1:1".parse().unwrap(), "", ""), size) }
    }

    fn orders(drive: &StoreDrive, seed: u64, count: usize) -> Vec<Plan> {
        let (mut dice, mut plan) = (Dice::of(seed, 3), Plan::default());
        let draw = |_| {
            plan.draw(drive, &mut dice);
            plan.clone()
        };
        (0..count).map(draw).collect()
    }

    /// Whether every value from `low` to `high` comes about equally often, and no other.
    fn uniform(values: impl Iterator<Item = u64>, low: u64, high: u64) {
        let mut counts = BTreeMap::new();
        values.for_each(|value| *counts.entry(value).or_insert(0u64) += 1);
        assert_eq!((counts.keys().next(), counts.keys().next_back()), (Some(&low), Some(&high)));
        let expected = counts.values().sum::<u64>() as f64 / (high - low + 1) as f64;
        for (value, count) in counts {
            // Six standard deviations, of a count that is about Poisson.
            assert!((count as f64 - expected).abs() < 6.0 * expected.sqrt(), "{value}: {count} of {expected}");
        }
    }

    #[test]
    fn orders_have_the_distributions_of_the_published_flow() {
        let orders = orders(&drive(10_000), 1, 30_000);
        uniform(orders.iter().map(|o| o.browses.len() as u64), 1, 5);
        uniform(orders.iter().flat_map(|o| &o.browses).map(|(_, rows)| *rows as u64), 1, 9);
        uniform(orders.iter().map(|o| o.items().len() as u64), 1, 9);
        uniform(orders.iter().flat_map(Plan::items).map(|item| item.quantity as u64), 1, 3);
        uniform(orders.iter().filter_map(|o| o.customer), 1, 1_000);
        let kinds = orders.iter().flat_map(|o| &o.browses).map(|(browse, _)| match browse {
            Browse::Category(category) => {
                assert!((1..=16).contains(category));
                0
            }
            Browse::Actor(..) => 1,
            Browse::Title(_) => 2,
        });
        uniform(kinds, 0, 2);
        let new = orders.iter().filter(|o| o.customer.is_none()).count() as f64 / orders.len() as f64;
        assert!((new - 0.2).abs() < 0.015, "{new}");
    }

    #[test]
    fn hot_products_sell_ten_times_as_often() {
        let drive = drive(40_000);
        let bought: Vec<i32> =
            orders(&drive, 2, 200_000).iter().flat_map(|o| o.items().to_vec()).map(|i| i.product).collect();
        assert!(bought.iter().all(|&p| (1..=40_000).contains(&p)));
        let hot = bought.iter().filter(|&&p| p % 10_000 == 0).count() as f64;
        let expected = bought.len() as f64 * 40.0 / (40_000.0 + 36.0);
        assert!((hot - expected).abs() < 6.0 * expected.sqrt(), "{hot} of {expected}");
        let each: Vec<usize> = (1..=4).map(|n| bought.iter().filter(|&&p| p == n * 10_000).count()).collect();
        assert!(each.iter().all(|&n| (n as f64 - expected / 4.0).abs() < 6.0 * (expected / 4.0).sqrt()), "{each:?}");
    }

    #[test]
    fn carts_are_cut_at_ten_lines_and_products_without_hot_ones_are_equal() {
        let mut drive = drive(50);
        drive.line_items = 20;
        let orders = orders(&drive, 5, 20_000);
        assert!(orders.iter().all(|o| (1..=LINES_MAX).contains(&o.items().len())));
        uniform(orders.iter().flat_map(Plan::items).map(|item| item.product as u64), 1, 50);
    }

    #[test]
    fn the_same_seed_gives_the_same_orders_and_each_client_its_own() {
        let drive = drive(10_000);
        assert_eq!(orders(&drive, 9, 50), orders(&drive, 9, 50));
        assert_ne!(orders(&drive, 9, 50), orders(&drive, 10, 50));
        let first = |index| Dice::of(9, index).below(u64::MAX);
        assert_ne!(first(0), first(1));
    }

    #[test]
    fn no_two_clients_have_a_word_of_their_generators_states_in_common() {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let words = |index| (1..=4u64).map(move |n| start_of(9, index).wrapping_add(n.wrapping_mul(GOLDEN)));
        let all: std::collections::BTreeSet<u64> = (0..10_000).flat_map(words).collect();
        assert_eq!(all.len(), 4 * 10_000);
    }
}
