//! The purchase: one transaction, and what is known of it when its answer fails to come.

use crate::pg::{Columns, PgError, Statement, Value};
use crate::store::data::tax_cents;

use super::book::{Level, Single};
use super::desk::Desk;
use super::plan::{Item, LINES_MAX};
use super::steps::{Laps, Step};

/// What is bought, by whom and for how much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cart<'a> {
    pub customer: i32,
    pub items: &'a [Item],
    /// Sum of the prices, cents.
    pub net_cents: u64,
}

impl Cart<'_> {
    /// What the customer pays, cents.
    pub fn total_cents(&self) -> u64 {
        self.net_cents + tax_cents(self.net_cents)
    }

    /// Quantity over all lines.
    pub fn quantity(&self) -> u64 {
        self.items.iter().map(|item| item.quantity as u64).sum()
    }

    /// Net amount, tax, total amount.
    fn amounts(&self) -> [Value<'static>; 3] {
        let tax = tax_cents(self.net_cents);
        [Value::Cents(self.net_cents), Value::Cents(tax), Value::Cents(self.net_cents + tax)]
    }
}

/// How a purchase ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bought {
    /// The server acknowledged the commit of this order.
    Committed(u64),
    /// It was rolled back, because stock was short.
    Short,
}

/// How a purchase failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub error: PgError,
    /// The commit was sent and never answered: the order that may or may not be there, 0 where its number is not known.
    pub doubt: Option<u64>,
}

impl From<PgError> for Failed {
    fn from(error: PgError) -> Self {
        Self { error, doubt: None }
    }
}

/// SQLSTATE of a transaction that the server ended because others waited for it, and it for them.
pub(crate) const DEADLOCK: &str = "40P01";

/// Buys once.
pub(crate) fn purchase(desk: &mut Desk<'_>, cart: &Cart<'_>, laps: &mut Laps) -> Result<Bought, Failed> {
    let book = desk.book;
    match &book.level {
        Level::Functions { purchase } => call(desk, purchase, cart, laps),
        Level::Statements(single) => transaction(desk, single, cart, laps).map_err(|failed| {
            if failed.error.broken {
                return failed;
            }
            // The transaction is over, but the server waits for its end to be said.
            match desk.count(&single.roll_back, &[]) {
                Ok(_) => failed,
                Err(error) => Failed { error, doubt: failed.doubt },
            }
        }),
    }
}

/// Statement by statement.
fn transaction(desk: &mut Desk<'_>, single: &Single, cart: &Cart<'_>, laps: &mut Laps) -> Result<Bought, Failed> {
    let customer = Value::Int4(cart.customer);
    desk.count(&single.begin, &[])?;
    let [net, tax, total] = cart.amounts();
    let number = desk.number(&single.insert_order, &[customer, net, tax, total])?;
    let number =
        number.and_then(|n| i32::try_from(n).ok()).ok_or_else(|| PgError::protocol("an order without a number"))?;
    let order = Value::Int4(number);
    laps.lap(Step::InsertOrder);
    for (line, item) in (1..).zip(cart.items) {
        let (product, quantity) = (Value::Int4(item.product), Value::Int4(item.quantity));
        if desk.count(&single.take_stock, &[product, quantity])? == 0 {
            laps.lap(Step::InsertLines);
            desk.count(&single.roll_back, &[])?;
            laps.lap(Step::Commit);
            return Ok(Bought::Short);
        }
        desk.count(&single.insert_line, &[order, Value::Int4(line), product, quantity])?;
        desk.count(&single.insert_history, &[customer, order, product])?;
    }
    laps.lap(Step::InsertLines);
    let number = number as u64;
    match desk.connection.run(&single.commit, &[], |_| ()) {
        Ok(did) if did.rolled_back => Err(PgError::protocol("a commit that is a rollback"))?,
        Ok(_) => {
            desk.answered += 1;
            laps.lap(Step::Commit);
            Ok(Bought::Committed(number))
        }
        Err(error) => {
            // A server that is being stopped may say so after it has committed.
            let doubt = error.broken.then_some(number);
            Err(Failed { error, doubt })
        }
    }
}

/// As one call, which commits by itself.
fn call(desk: &mut Desk<'_>, purchase: &Statement, cart: &Cart<'_>, laps: &mut Laps) -> Result<Bought, Failed> {
    let (mut products, mut quantities) = ([0; LINES_MAX], [0; LINES_MAX]);
    for ((product, quantity), item) in products.iter_mut().zip(&mut quantities).zip(cart.items) {
        (*product, *quantity) = (item.product, item.quantity);
    }
    let lines = cart.items.len();
    let [net, tax, total] = cart.amounts();
    let values = [
        Value::Int4(cart.customer),
        Value::Int4s(&products[..lines]),
        Value::Int4s(&quantities[..lines]),
        net,
        tax,
        total,
    ];
    let mut number = None;
    let did = desk.connection.run(purchase, &values, |row| number = Columns::of(row).integer());
    let number = number.and_then(|n| u64::try_from(n).ok());
    match did {
        Err(error) => {
            // What has a number of 0 was rolled back, whatever became of the connection afterwards.
            let doubt = (error.broken && number != Some(0)).then(|| number.unwrap_or(0));
            Err(Failed { error, doubt })
        }
        Ok(_) => {
            desk.answered += 1;
            laps.lap(Step::Purchase);
            match number {
                Some(0) => Ok(Bought::Short),
                Some(number) => Ok(Bought::Committed(number)),
                // It may have been committed nevertheless.
                None => Err(Failed { error: PgError::protocol("a purchase without a number"), doubt: Some(0) }),
            }
        }
    }
}
