//! The statements that clients prepare, for each level.

use crate::store::spec::StoreStatements;

use crate::pg::{Kind, Statement};
use crate::store::schema::{functions, statements};

/// All that a client asks.
#[derive(Debug)]
pub(crate) struct Book {
    pub log_in: Statement,
    pub new_customer: Statement,
    pub by_category: Statement,
    pub by_actor: Statement,
    pub by_title: Statement,
    pub read_price: Statement,
    pub level: Level,
}

/// What differs between the levels.
#[derive(Debug)]
pub(crate) enum Level {
    /// Statements by themselves.
    Statements(Box<Single>),
    /// The purchase is one call; a login shows previous purchases by itself.
    Functions { purchase: Statement },
}

/// Statements that functions do without.
#[derive(Debug)]
pub(crate) struct Single {
    pub previous: Statement,
    pub begin: Statement,
    pub insert_order: Statement,
    pub take_stock: Statement,
    pub insert_line: Statement,
    pub insert_history: Statement,
    pub commit: Statement,
    pub roll_back: Statement,
}

const CUSTOMER: [Kind; 19] = {
    use Kind::{Int4, Text};
    [Text, Text, Text, Text, Text, Text, Int4, Text, Int4, Text, Text, Int4, Text, Text, Text, Text, Int4, Int4, Text]
};

impl Book {
    /// The statements of a level.
    pub fn new(level: StoreStatements) -> Self {
        use Kind::{Cents, Int4, Int4s, Text};
        let (log_in, new_customer, browse, level) = match level {
            StoreStatements::Prepared => (
                statements::LOGIN,
                statements::NEW_CUSTOMER,
                [statements::BROWSE_BY_CATEGORY, statements::BROWSE_BY_ACTOR, statements::BROWSE_BY_TITLE],
                Level::Statements(Box::new(Single {
                    previous: Statement::new("7", statements::PREVIOUS, &[Int4]),
                    begin: Statement::new("8", "BEGIN", &[]),
                    insert_order: Statement::new("9", statements::INSERT_ORDER, &[Int4, Cents, Cents, Cents]),
                    take_stock: Statement::new("10", statements::TAKE_STOCK, &[Int4, Int4]),
                    insert_line: Statement::new("11", statements::INSERT_LINE, &[Int4; 4]),
                    insert_history: Statement::new("12", statements::INSERT_HISTORY, &[Int4; 3]),
                    commit: Statement::new("13", "COMMIT", &[]),
                    roll_back: Statement::new("14", "ROLLBACK", &[]),
                })),
            ),
            StoreStatements::Functions => (
                functions::CALL_LOGIN,
                functions::CALL_NEW_CUSTOMER,
                [functions::CALL_BROWSE_BY_CATEGORY, functions::CALL_BROWSE_BY_ACTOR, functions::CALL_BROWSE_BY_TITLE],
                Level::Functions {
                    purchase: Statement::new("7", functions::CALL_PURCHASE, &[Int4, Int4s, Int4s, Cents, Cents, Cents]),
                },
            ),
        };
        Self {
            log_in: Statement::new("1", log_in, &[Text, Text]),
            new_customer: Statement::new("2", new_customer, &CUSTOMER),
            by_category: Statement::new("3", browse[0], &[Int4, Int4]),
            by_actor: Statement::new("4", browse[1], &[Text, Int4]),
            by_title: Statement::new("5", browse[2], &[Text, Int4]),
            read_price: Statement::new("6", statements::READ_PRICE, &[Int4]),
            level,
        }
    }

    /// All of them, to be prepared.
    pub fn all(&self) -> Vec<&Statement> {
        let mut all =
            vec![&self.log_in, &self.new_customer, &self.by_category, &self.by_actor, &self.by_title, &self.read_price];
        match &self.level {
            Level::Functions { purchase } => all.push(purchase),
            Level::Statements(s) => all.extend([
                &s.previous,
                &s.begin,
                &s.insert_order,
                &s.take_stock,
                &s.insert_line,
                &s.insert_history,
                &s.commit,
                &s.roll_back,
            ]),
        }
        all
    }
}
