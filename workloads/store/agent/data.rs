//! The rows that a store begins with: each a function of the seed, its table and its number.
//!
//! So any number of connections loads the same rows, in any chunks, and none of them holds more than a buffer of them. What
//! the rows look like is that of the published store; words, names and places are of our own.
//!
//! Orders, their lines and the customers' history are three views of the same order: lines and history are made from the
//! order's number as well, and agree.

use crate::store::spec::StoreSize;

pub use crate::fill::{copy, draw};

use self::copy::Decimal;
use self::draw::{Draw, Key};
use super::schema::{CATEGORIES, HOT_EVERY, HOT_FACTOR};
use crate::fill::words::{FIRST_NAMES, LAST_NAMES, TITLE_WORDS, Words, words};

/// Months of orders that are loaded: those of [`YEAR`].
pub const MONTHS: u64 = 12;
/// The year of the loaded orders.
pub const YEAR: u32 = 2025;
/// Days from the first of January 2000 to the first of each month of [`YEAR`], and to that of the next.
const MONTH_STARTS: [u32; 13] =
    [9_132, 9_163, 9_191, 9_222, 9_252, 9_283, 9_313, 9_344, 9_375, 9_405, 9_436, 9_466, 9_497];
/// Most lines of a loaded order.
pub const LINES_MAX: u64 = 9;
/// Every loaded customer's password.
pub const PASSWORD: &str = "password";
/// Tax, hundredths of a per cent.
pub const TAX_BASIS_POINTS: u64 = 825;
/// Highest stock that a product begins with; of hot ones [`HOT_FACTOR`] times that.
pub const STOCK_MAX: u64 = 500;

const CATEGORY_NAMES: [&str; CATEGORIES as usize] = [
    "Adventure",
    "Biography",
    "Cartoon",
    "Comedy",
    "Concert",
    "Crime",
    "Drama",
    "Fantasy",
    "History",
    "Mystery",
    "Nature",
    "Romance",
    "Science",
    "Sport",
    "Suspense",
    "Western",
];
const STATES: &str =
    "AKALARAZCACOCTDCDEFLGAHIIAIDILINKSKYLAMAMDMEMIMNMOMSMTNCNDNENHNJNMNVNYOHOKORPARISCSDTNTXUTVAVTWAWIWVWY";
const COUNTRIES: [&str; 12] = [
    "Australia",
    "Brazil",
    "Canada",
    "Chile",
    "Denmark",
    "France",
    "Germany",
    "India",
    "Italy",
    "Japan",
    "South Africa",
    "UK",
];

/// A table that begins with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// The categories.
    Categories,
    /// What is sold.
    Products,
    /// How much of it is there.
    Inventory,
    /// Who buys.
    Customers,
    /// The orders.
    Orders,
    /// Lines of the orders.
    Orderlines,
    /// What customers bought.
    CustHist,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Categories,
        Self::Products,
        Self::Inventory,
        Self::Customers,
        Self::Orders,
        Self::Orderlines,
        Self::CustHist,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Categories => "categories",
            Self::Products => "products",
            Self::Inventory => "inventory",
            Self::Customers => "customers",
            Self::Orders => "orders",
            Self::Orderlines => "orderlines",
            Self::CustHist => "cust_hist",
        }
    }

    /// How many numbers its rows are made from. The lines and the history of an order are one number.
    #[must_use]
    pub fn numbers(self, size: &StoreSize) -> u64 {
        match self {
            Self::Categories => u64::from(CATEGORIES),
            Self::Products | Self::Inventory => size.products,
            Self::Customers => size.customers,
            Self::Orders | Self::Orderlines | Self::CustHist => MONTHS * size.orders_per_month,
        }
    }

    /// What the rows of a number cost the server, in no unit: fields, and half a dozen more for the row itself.
    #[must_use]
    pub fn weight(self) -> u64 {
        match self {
            Self::Categories => 8,
            Self::Products => 14,
            Self::Inventory => 9,
            Self::Customers => 28,
            Self::Orders => 13,
            // Five rows an order, in the mean.
            Self::Orderlines => 55,
            Self::CustHist => 45,
        }
    }
}

/// An order, without its lines.
#[derive(Debug, Clone)]
pub struct Order {
    /// Who ordered.
    pub customer: u64,
    /// When, days since the first of January 2000.
    pub day: u32,
    /// Net amount, cents.
    pub net_cents: u64,
    /// Tax, cents.
    pub tax_cents: u64,
    /// Number of lines.
    pub lines: u64,
    /// What the lines are drawn from.
    draw: Draw,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// What was ordered.
    pub product: u64,
    /// How much of it.
    pub quantity: u64,
}

/// What a person who registers says. The letters are capitals and the digits decimal ones, so that all is text as it is.
#[derive(Debug, Clone)]
pub struct Person {
    /// First name.
    pub first_name: [u8; 6],
    /// Last name.
    pub last_name: [u8; 10],
    /// Number of the house.
    pub house: u64,
    /// Name of the street, without "Street".
    pub street: [u8; 7],
    /// City.
    pub city: [u8; 7],
    /// State; empty elsewhere than in the US.
    pub state: &'static str,
    /// Zip code; 0 elsewhere than in the US.
    pub zip: u32,
    /// Country.
    pub country: &'static str,
    /// 1 in the US, 2 elsewhere.
    pub region: u32,
    /// Telephone.
    pub phone: [u8; 10],
    /// Kind of credit card, 1 to 5.
    pub card_type: u32,
    /// Its number.
    pub card_number: [u8; 16],
    /// The year in which it expires.
    pub card_year: u64,
    /// The month, 1 to 12.
    pub card_month: u64,
    /// Years of age, 18 to 90.
    pub age: u32,
    /// Income a year: 20,000 to 100,000 in steps of 20,000.
    pub income: u32,
    /// `M` or `F`.
    pub gender: u8,
}

impl Person {
    /// Somebody, in the US or elsewhere.
    #[must_use]
    pub fn draw(draw: &mut Draw, in_us: bool) -> Self {
        let (state, zip, country) = if in_us {
            let state = 2 * draw.below(STATES.len() as u64 / 2) as usize;
            (&STATES[state..state + 2], draw.from(10_000, 99_999) as u32, "US")
        } else {
            ("", 0, COUNTRIES[draw.below(COUNTRIES.len() as u64) as usize])
        };
        Self {
            first_name: draw.capitals(),
            last_name: draw.capitals(),
            house: draw.from(1, 9_999),
            street: draw.capitals(),
            city: draw.capitals(),
            state,
            zip,
            country,
            region: if in_us { 1 } else { 2 },
            phone: draw.digits(),
            card_type: draw.from(1, 5) as u32,
            card_number: draw.digits(),
            card_year: draw.from(u64::from(YEAR) + 2, u64::from(YEAR) + 6),
            card_month: draw.from(1, 12),
            age: draw.from(18, 90) as u32,
            income: 20_000 * draw.from(1, 5) as u32,
            gender: if draw.below(2) == 0 { b'F' } else { b'M' },
        }
    }
}

/// The tax on a net amount, cents, rounded to the nearest and halves up, as the server rounds.
#[must_use]
pub fn tax_cents(net_cents: u64) -> u64 {
    (net_cents * TAX_BASIS_POINTS + 5_000) / 10_000
}

/// All rows of a store.
#[derive(Debug)]
pub struct Source {
    size: StoreSize,
    products: Key,
    inventory: Key,
    customers: Key,
    orders: Key,
    /// One in how many products is special.
    special_one_in: u64,
    words: &'static Words,
}

impl Source {
    /// The rows of a seed and a size.
    #[must_use]
    pub fn new(seed: u64, size: StoreSize) -> Self {
        Self {
            size,
            products: Key::new(seed, 1),
            inventory: Key::new(seed, 2),
            customers: Key::new(seed, 3),
            orders: Key::new(seed, 4),
            special_one_in: if size.products > 100_000 { 10_000 } else { 100 },
            words: words(),
        }
    }

    /// Appends the rows of a number, in the format of [`copy`]. Returns how many there were.
    #[inline]
    pub fn write(&self, table: Table, number: u64, out: &mut Vec<u8>) -> u64 {
        match table {
            Table::Categories => category(number, out),
            Table::Products => self.product(number, out),
            Table::Inventory => self.inventory(number, out),
            Table::Customers => self.customer(number, out),
            Table::Orders => self.order_row(number, out),
            Table::Orderlines => return self.line_rows(number, out),
            Table::CustHist => return self.history_rows(number, out),
        }
        1
    }

    /// An order.
    #[inline]
    #[must_use]
    pub fn order(&self, number: u64) -> Order {
        let mut draw = self.orders.row(number);
        let month = (((number - 1) / self.size.orders_per_month) % MONTHS) as usize;
        let (first, next) = (MONTH_STARTS[month], MONTH_STARTS[month + 1]);
        let net_cents = draw.from(1, 40_000);
        Order {
            customer: draw.from(1, self.size.customers),
            day: first + draw.below(u64::from(next - first)) as u32,
            net_cents,
            tax_cents: tax_cents(net_cents),
            lines: draw.from(1, LINES_MAX),
            draw,
        }
    }

    /// The lines of an order, in their order.
    #[inline]
    pub fn lines(&self, order: Order) -> impl Iterator<Item = Line> + use<> {
        let (mut draw, products) = (order.draw, self.size.products);
        (0..order.lines).map(move |_| Line { product: draw.from(1, products), quantity: draw.from(1, 3) })
    }

    /// What is in stock of a product to begin with.
    #[must_use]
    pub fn stock(&self, product: u64) -> u64 {
        let stock = self.inventory.row(product).from(0, STOCK_MAX);
        if product.is_multiple_of(HOT_EVERY) { stock * u64::from(HOT_FACTOR) } else { stock }
    }

    fn product(&self, number: u64, out: &mut Vec<u8>) {
        let mut draw = self.products.row(number);
        copy::row(out, 7);
        copy::integer(out, number as u32);
        copy::integer(out, draw.from(1, u64::from(CATEGORIES)) as u32);
        let mut word = || self.words.title[draw.below(TITLE_WORDS as u64) as usize].as_bytes();
        copy::joined(out, &[word(), b" ", word()]);
        let first = self.words.first[draw.below(FIRST_NAMES as u64) as usize].as_bytes();
        copy::joined(out, &[first, b" ", self.words.last[draw.below(LAST_NAMES as u64) as usize].as_bytes()]);
        copy::amount(out, 100 * draw.from(9, 29) + 99);
        copy::integer(out, u32::from(draw.below(self.special_one_in) == 0));
        copy::integer(out, draw.from(1, self.size.products) as u32);
    }

    fn inventory(&self, number: u64, out: &mut Vec<u8>) {
        copy::row(out, 3);
        copy::integer(out, number as u32);
        copy::integer(out, self.stock(number) as u32);
        copy::integer(out, 0);
    }

    fn customer(&self, number: u64, out: &mut Vec<u8>) {
        let in_us = number <= self.size.customers.div_ceil(2);
        let person = Person::draw(&mut self.customers.row(number), in_us);
        copy::row(out, 20);
        copy::integer(out, number as u32);
        copy::text(out, &person.first_name);
        copy::text(out, &person.last_name);
        copy::joined(out, &[Decimal::new(person.house).bytes(), b" ", &person.street, b" Street"]);
        copy::text(out, b"");
        copy::text(out, &person.city);
        copy::text(out, person.state.as_bytes());
        copy::integer(out, person.zip);
        copy::text(out, person.country.as_bytes());
        copy::integer(out, person.region);
        copy::joined(out, &[&person.last_name, b"@mail.example"]);
        copy::text(out, &person.phone);
        copy::integer(out, person.card_type);
        copy::text(out, &person.card_number);
        let (year, month) = (Decimal::new(person.card_year), Decimal::new(100 + person.card_month));
        copy::joined(out, &[year.bytes(), b"/", &month.bytes()[1..]]);
        copy::joined(out, &[b"user", Decimal::new(number).bytes()]);
        copy::text(out, PASSWORD.as_bytes());
        copy::integer(out, person.age);
        copy::integer(out, person.income);
        copy::text(out, &[person.gender]);
    }

    fn order_row(&self, number: u64, out: &mut Vec<u8>) {
        let order = self.order(number);
        copy::row(out, 6);
        copy::integer(out, number as u32);
        copy::integer(out, order.day);
        copy::integer(out, order.customer as u32);
        copy::amount(out, order.net_cents);
        copy::amount(out, order.tax_cents);
        copy::amount(out, order.net_cents + order.tax_cents);
    }

    fn line_rows(&self, number: u64, out: &mut Vec<u8>) -> u64 {
        let order = self.order(number);
        let (day, lines) = (order.day, order.lines);
        for (line, item) in (1..).zip(self.lines(order)) {
            copy::row(out, 5);
            copy::integer(out, number as u32);
            copy::integer(out, line);
            copy::integer(out, item.product as u32);
            copy::integer(out, item.quantity as u32);
            copy::integer(out, day);
        }
        lines
    }

    fn history_rows(&self, number: u64, out: &mut Vec<u8>) -> u64 {
        let order = self.order(number);
        let (customer, lines) = (order.customer, order.lines);
        for item in self.lines(order) {
            copy::row(out, 3);
            copy::integer(out, customer as u32);
            copy::integer(out, number as u32);
            copy::integer(out, item.product as u32);
        }
        lines
    }
}

fn category(number: u64, out: &mut Vec<u8>) {
    copy::row(out, 2);
    copy::integer(out, number as u32);
    copy::text(out, CATEGORY_NAMES[((number - 1) % u64::from(CATEGORIES)) as usize].as_bytes());
}

#[cfg(test)]
mod tests;
