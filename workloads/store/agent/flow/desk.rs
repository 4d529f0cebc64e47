//! The steps of an order up to the purchase, as a server is asked for them.

use crate::pg::{Columns, Connection, PgError, Statement, Value, cents_of};
use crate::store::data::copy::Decimal;
use crate::store::data::draw::Draw;
use crate::store::data::{PASSWORD, Person};

use super::book::{Book, Level};
use super::plan::Browse;

/// A session whose statements are prepared.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub connection: Connection,
    pub book: &'a Book,
    /// Statements that were answered.
    pub answered: u64,
    /// Where texts of several pieces are put together.
    text: Vec<u8>,
}

/// What a store does that no store of ours would.
#[cold]
fn strange(message: String) -> PgError {
    PgError { sqlstate: None, message, broken: false }
}

impl<'a> Desk<'a> {
    pub fn new(connection: Connection, book: &'a Book) -> Self {
        Self { connection, book, answered: 0, text: Vec::with_capacity(64) }
    }

    /// Runs a statement for the first number of its only row; `None` where it has no row, or NULL.
    #[inline]
    pub fn number(&mut self, statement: &Statement, values: &[Value<'_>]) -> Result<Option<i64>, PgError> {
        let mut number = None;
        self.connection.run(statement, values, |row| number = Columns::of(row).integer())?;
        self.answered += 1;
        Ok(number)
    }

    /// Runs a statement for the count of its rows.
    #[inline]
    pub fn count(&mut self, statement: &Statement, values: &[Value<'_>]) -> Result<u64, PgError> {
        let did = self.connection.run(statement, values, |_| ())?;
        self.answered += 1;
        Ok(did.rows)
    }

    /// Logs customer `number` in and has previous purchases and linked titles shown. Returns the customer's number.
    pub fn log_in(&mut self, number: u64) -> Result<i32, PgError> {
        self.text.clear();
        self.text.extend_from_slice(b"user");
        self.text.extend_from_slice(Decimal::new(number).bytes());
        let mut customer = None;
        let who = [Value::Text(&self.text), Value::Text(PASSWORD.as_bytes())];
        self.connection.run(&self.book.log_in, &who, |row| customer = Columns::of(row).integer())?;
        self.answered += 1;
        let customer = customer.and_then(|c| i32::try_from(c).ok());
        let customer = customer.ok_or_else(|| strange("a customer of the store cannot log in".to_owned()))?;
        if let Level::Statements(single) = &self.book.level {
            self.count(&single.previous, &[Value::Int4(customer)])?;
        }
        Ok(customer)
    }

    /// Has a new customer registered, whose user name is `newuser<name>`; `None`: the name is taken.
    pub fn register(&mut self, name: u64, draw: &mut Draw) -> Result<Option<i32>, PgError> {
        let in_us = draw.below(2) == 0;
        let person = Person::draw(draw, in_us);
        let (year, month) = (Decimal::new(person.card_year), Decimal::new(100 + person.card_month));
        self.text.clear();
        let mut piece = |parts: &[&[u8]]| {
            let from = self.text.len();
            parts.iter().for_each(|part| self.text.extend_from_slice(part));
            from..self.text.len()
        };
        let street = piece(&[Decimal::new(person.house).bytes(), b" ", &person.street, b" Street"]);
        let email = piece(&[&person.last_name, b"@mail.example"]);
        let expires = piece(&[year.bytes(), b"/", &month.bytes()[1..]]);
        let user = piece(&[b"newuser", Decimal::new(name).bytes()]);
        let text = |range: std::ops::Range<usize>| Value::Text(&self.text[range]);
        let values = [
            Value::Text(&person.first_name),
            Value::Text(&person.last_name),
            text(street),
            Value::Text(b""),
            Value::Text(&person.city),
            Value::Text(person.state.as_bytes()),
            Value::Int4(person.zip as i32),
            Value::Text(person.country.as_bytes()),
            Value::Int4(person.region as i32),
            text(email),
            Value::Text(&person.phone),
            Value::Int4(person.card_type as i32),
            Value::Text(&person.card_number),
            text(expires),
            text(user),
            Value::Text(PASSWORD.as_bytes()),
            Value::Int4(person.age as i32),
            Value::Int4(person.income as i32),
            Value::Text(std::slice::from_ref(&person.gender)),
        ];
        let mut customer = None;
        self.connection.run(&self.book.new_customer, &values, |row| customer = Columns::of(row).integer())?;
        self.answered += 1;
        // A function says 0 where a statement has no row.
        Ok(customer.and_then(|c| i32::try_from(c).ok()).filter(|&c| c > 0))
    }

    /// Looks for products; returns how many were found.
    pub fn browse(&mut self, browse: Browse, rows: i32) -> Result<u64, PgError> {
        let rows = Value::Int4(rows);
        let book = self.book;
        match browse {
            Browse::Category(category) => self.count(&book.by_category, &[Value::Int4(category), rows]),
            Browse::Title(word) => self.count(&book.by_title, &[Value::Text(word.as_bytes()), rows]),
            Browse::Actor(first, last) => {
                self.text.clear();
                [first, " ", last].iter().for_each(|part| self.text.extend_from_slice(part.as_bytes()));
                let did = self.connection.run(&book.by_actor, &[Value::Text(&self.text), rows], |_| ())?;
                self.answered += 1;
                Ok(did.rows)
            }
        }
    }

    /// The price of a product, cents.
    pub fn price(&mut self, product: i32) -> Result<u64, PgError> {
        let mut cents = None;
        self.connection.run(&self.book.read_price, &[Value::Int4(product)], |row| {
            cents = Columns::of(row).next().flatten().and_then(cents_of);
        })?;
        self.answered += 1;
        cents.ok_or_else(|| strange("a product of the store has no price".to_owned()))
    }
}
