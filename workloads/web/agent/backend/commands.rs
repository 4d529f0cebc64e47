//! What the backend can be asked, as data.

use super::fields::Kind;
use super::fields::Kind::{
    Account, Amount, Back, City, Confirmation, Date, Email, File, Front, Name, Number, Payee, Phone, Product, State,
    Street, Text,
};

/// Fields that come so many times in a row.
#[derive(Debug)]
pub(super) struct Group(pub u8, pub &'static [Kind]);

/// A command, of which page, and the fields of its reply after the proof.
#[derive(Debug)]
pub(super) struct Command {
    pub number: u16,
    pub page: &'static str,
    pub fields: &'static [Group],
}

/// The commands of a site.
#[derive(Debug)]
pub(super) struct Commands {
    pub site: &'static str,
    pub commands: &'static [Command],
}

const fn of(number: u16, page: &'static str, fields: &'static [Group]) -> Command {
    Command { number, page, fields }
}

const fn one(kinds: &'static [Kind]) -> Group {
    Group(1, kinds)
}

const BANKING: &[Command] = &[
    of(1, "login", &[one(&[Name, Account, Account, Date])]),
    of(2, "account_summary", &[Group(2, &[Account, Amount]), Group(10, &[Date, Text, Amount])]),
    of(3, "bill_pay", &[one(&[Account, Amount]), Group(8, &[Payee, Amount, Date])]),
    of(4, "check_detail_html", &[one(&[Account, Front, Back])]),
    of(5, "add_payee", &[one(&[Account]), Group(5, &[Payee, City])]),
    of(6, "payee_info", &[one(&[Payee, Account, Street, City, Phone])]),
    of(7, "quick_pay", &[one(&[Account, Amount]), Group(5, &[Payee, Amount, Date, Confirmation])]),
    of(8, "billpay_status", &[one(&[Account]), Group(10, &[Payee, Amount, Date, State])]),
    of(9, "chg_profile", &[one(&[Name, Street, City, Phone, Email])]),
    of(10, "post_profile", &[one(&[Confirmation, Name, Street, City, Phone, Email])]),
    of(11, "req_checks", &[Group(2, &[Account, Amount]), Group(4, &[Text, Amount])]),
    of(12, "post_chk_order", &[one(&[Confirmation, Account, Date, Amount])]),
    of(13, "req_xfer_form", &[Group(4, &[Account, Amount])]),
    of(14, "post_fund_xfer", &[one(&[Confirmation, Date, Amount]), Group(2, &[Account, Amount])]),
    of(15, "logout", &[one(&[Name, Date])]),
];

const ECOMMERCE: &[Command] = &[
    of(1, "index", &[Group(10, &[Number, Text])]),
    of(2, "search", &[one(&[Number]), Group(10, &[Product, Text, Amount])]),
    of(3, "browse", &[Group(12, &[Number, Text])]),
    of(4, "browse_productline", &[one(&[Text]), Group(10, &[Product, Text, Amount])]),
    of(5, "productdetail", &[one(&[Text, Text, Amount, Number])]),
    of(6, "customize1", &[one(&[Text, Amount]), Group(6, &[Text, Amount])]),
    of(7, "customize2", &[one(&[Text, Amount]), Group(6, &[Text, Amount])]),
    of(8, "customize3", &[one(&[Text, Amount]), Group(6, &[Text, Amount])]),
    of(9, "cart", &[one(&[Amount]), Group(5, &[Product, Text, Number, Amount])]),
    of(10, "login", &[one(&[Name, Date])]),
    of(11, "shipping", &[one(&[Name, Street, City, Phone]), Group(3, &[Text, Amount])]),
    of(12, "billing", &[one(&[Name, Street, City, Account]), Group(3, &[Amount])]),
    of(13, "confirm", &[one(&[Confirmation, Date, Date, Amount, Email])]),
];

const SUPPORT: &[Command] = &[
    of(1, "home", &[Group(10, &[Number, Text])]),
    of(2, "search", &[one(&[Number]), Group(10, &[Product, Text])]),
    of(3, "catalog", &[Group(20, &[Number, Text])]),
    of(4, "product", &[one(&[Text]), Group(10, &[Number, Text])]),
    of(5, "fileCatalog", &[one(&[Text]), Group(15, &[File, Text, Number, Date])]),
    of(6, "file", &[one(&[File, Text, Number, Date, Number])]),
];

/// Everything that the backend can be asked, but the reset.
pub(super) const SITES: &[Commands] = &[
    Commands { site: "banking", commands: BANKING },
    Commands { site: "ecommerce", commands: ECOMMERCE },
    Commands { site: "support", commands: SUPPORT },
];

/// The commands of a site by its name.
pub(super) fn site(name: &[u8]) -> Option<&'static Commands> {
    SITES.iter().find(|commands| commands.site.as_bytes() == name)
}

impl Commands {
    /// A command by its number.
    pub fn get(&self, number: u16) -> Option<&'static Command> {
        self.commands.iter().find(|command| command.number == number)
    }
}

/// The number of the command that a page of a site asks; `None` where the backend has none.
pub fn command_of(site: &str, page: &str) -> Option<u16> {
    let commands = self::site(site.as_bytes())?.commands;
    commands.iter().find(|command| command.page == page).map(|command| command.number)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::super::fields::ALL;
    use super::*;

    const REFERENCE: &str = include_str!("../../../../docs/reference/web.md");

    fn name(kind: Kind) -> &'static str {
        ALL.into_iter().find(|(known, ..)| *known == kind).unwrap().1
    }

    /// The fields of a command as the reference has them: `kind, kind, 5 x (kind, kind)`.
    fn fields(command: &Command) -> String {
        let group = |Group(times, kinds): &Group| {
            let kinds: Vec<&str> = kinds.iter().map(|kind| name(*kind)).collect();
            match times {
                1 => kinds.join(", "),
                times => format!("{times} x ({})", kinds.join(", ")),
            }
        };
        command.fields.iter().map(group).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_reference_has_every_command_and_no_other() {
        let mut table = String::new();
        for commands in SITES {
            for command in commands.commands {
                let (number, page) = (command.number, command.page);
                writeln!(table, "| {} | {number} | {page} | {} |", commands.site, fields(command)).unwrap();
            }
        }
        let header = "| site | command | page | fields after the proof |\n|---|---|---|---|\n";
        let written = REFERENCE.split_once(header).unwrap().1.split_once("\n\n").unwrap().0;
        assert_eq!(written.trim_end(), table.trim_end(), "the rows belong into docs/reference/web.md");
    }

    #[test]
    fn the_reference_has_the_form_of_every_field() {
        for (_, name, form) in ALL {
            let row = format!("| {name} | {form} |\n");
            assert!(REFERENCE.contains(&row), "not in docs/reference/web.md: {row}");
        }
    }

    #[test]
    fn commands_are_found_by_their_numbers() {
        for commands in SITES {
            for command in commands.commands {
                assert_eq!(commands.get(command.number).unwrap().page, command.page);
            }
            assert!(commands.get(0).is_none());
            assert!(commands.get(commands.commands.len() as u16 + 1).is_none());
        }
        assert!(site(b"bank").is_none());
        assert_eq!(command_of("support", "fileCatalog"), Some(5));
        assert_eq!(command_of("support", "logout"), None);
    }
}
