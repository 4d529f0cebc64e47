//! Fields of replies: what they look like, and how they are made up.

use crate::session::draw::Dice;
use crate::web::digits;

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Account,
    Amount,
    Date,
    Name,
    Payee,
    Street,
    City,
    Phone,
    Email,
    Confirmation,
    State,
    Text,
    Number,
    Product,
    File,
    Front,
    Back,
}

use Kind::{
    Account, Amount, Back, City, Confirmation, Date, Email, File, Front, Name, Number, Payee, Phone, Product, State,
    Street, Text,
};

const FIRST: &[&str] = &["Ada", "Bruno", "Carla", "David", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas"];
const LAST: &[&str] = &["Abel", "Baker", "Castro", "Dietz", "Engel", "Ferrer", "Grant", "Huber", "Ivanov", "Jansen"];
const TRADES: &[&str] = &["Water", "Power", "Gas", "Telephone", "Insurance", "Books", "Garden", "Motors"];
const COMPANIES: &[&str] = &["Works", "Company", "Brothers", "Union", "Services", "Supply"];
const CITIES: &[&str] = &["Alder", "Birchwood", "Cedarville", "Dunmore", "Eastfield", "Fairhaven", "Granby", "Hilton"];
const STREETS: &[&str] = &["Main Street", "Mill Road", "Station Road", "High Street", "Park Avenue", "Church Lane"];
const STATES: &[&str] = &["paid", "pending", "sent", "scheduled"];
const WORDS: &[&str] = &[
    "adapter",
    "battery",
    "cable",
    "card",
    "controller",
    "cover",
    "disk",
    "display",
    "drive",
    "driver",
    "edition",
    "fan",
    "guide",
    "kit",
    "keyboard",
    "memory",
    "module",
    "monitor",
    "mouse",
    "network",
    "notebook",
    "panel",
    "port",
    "power",
    "printer",
    "processor",
    "rack",
    "server",
    "storage",
    "system",
    "update",
    "wireless",
];

/// Every kind with its name and what it looks like, as the reference has them.
#[cfg(test)]
pub(super) const ALL: [(Kind, &str, &str); 17] = [
    (Account, "account", "10 digits"),
    (Amount, "amount", "`0.00` to `9999.99`"),
    (Date, "date", "`2004-01-01` to `2005-12-28`"),
    (Name, "name", "two words"),
    (Payee, "payee", "two words"),
    (Street, "street", "words and a house number"),
    (City, "city", "a word and 5 digits"),
    (Phone, "phone", "`555-` and 7 digits"),
    (Email, "email", "`WORD.WORD@example.com`"),
    (Confirmation, "confirmation", "12 digits"),
    (State, "state", "`paid`, `pending`, `sent` or `scheduled`"),
    (Text, "text", "4 words"),
    (Number, "number", "0 to 999999"),
    (Product, "product", "`DIRECTORY-ITEM`, 5 digits and 1"),
    (File, "file", "`WORD-NUMBER.bin`"),
    (Front, "front", "`/files/SITE/checks/USER/CHECK-front.gif` of the first two values"),
    (Back, "back", "`/files/SITE/checks/USER/CHECK-back.gif` of the first two values"),
];

/// A user and one of their checks, as they stand in the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check<'a> {
    pub site: &'a str,
    pub user: &'a [u8],
    pub check: &'a [u8],
}

impl Kind {
    /// Whether it is made of a user and a check.
    pub const fn needs_check(self) -> bool {
        matches!(self, Front | Back)
    }

    /// Appends one, made up from the dice. Without a check, the path of its image is empty.
    pub fn write(self, dice: &mut Dice, check: Option<Check<'_>>, out: &mut Vec<u8>) {
        match self {
            Account => digits(out, u64::from(dice.below(u32::MAX)), 10),
            Amount => {
                digits(out, u64::from(dice.below(10_000)), 1);
                out.push(b'.');
                digits(out, u64::from(dice.below(100)), 2);
            }
            Date => date(dice, out),
            Name => words(out, &[pick(dice, FIRST), pick(dice, LAST)]),
            Payee => words(out, &[pick(dice, TRADES), pick(dice, COMPANIES)]),
            Street => numbered(out, pick(dice, STREETS), b' ', dice.below(200), 1),
            City => numbered(out, pick(dice, CITIES), b' ', dice.below(100_000), 5),
            Phone => numbered(out, "555", b'-', dice.below(10_000_000), 7),
            Email => {
                out.extend_from_slice(pick(dice, FIRST).as_bytes());
                out.push(b'.');
                out.extend_from_slice(pick(dice, LAST).as_bytes());
                out.extend_from_slice(b"@example.com");
            }
            Confirmation => digits(out, dice.draw() % 1_000_000_000_000, 12),
            State => words(out, &[pick(dice, STATES)]),
            Text => words(out, &[pick(dice, WORDS), pick(dice, WORDS), pick(dice, WORDS), pick(dice, WORDS)]),
            Number => digits(out, u64::from(dice.below(1_000_000)), 1),
            Product => {
                digits(out, u64::from(dice.below(100_000)), 5);
                out.push(b'-');
                digits(out, u64::from(dice.below(10)), 1);
            }
            File => {
                numbered(out, pick(dice, WORDS), b'-', dice.below(1_000_000), 1);
                out.extend_from_slice(b".bin");
            }
            Front => image(check, b"-front.gif", out),
            Back => image(check, b"-back.gif", out),
        }
    }
}

fn pick(dice: &mut Dice, words: &'static [&'static str]) -> &'static str {
    words[dice.below(words.len() as u32) as usize]
}

fn words(out: &mut Vec<u8>, words: &[&str]) {
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
    }
}

fn numbered(out: &mut Vec<u8>, word: &str, between: u8, number: u32, width: usize) {
    out.extend_from_slice(word.as_bytes());
    out.push(between);
    digits(out, u64::from(number), width);
}

fn date(dice: &mut Dice, out: &mut Vec<u8>) {
    let (year, month, day) = (2004 + dice.below(2), 1 + dice.below(12), 1 + dice.below(28));
    digits(out, u64::from(year), 4);
    for part in [month, day] {
        out.push(b'-');
        digits(out, u64::from(part), 2);
    }
}

fn image(check: Option<Check<'_>>, end: &[u8], out: &mut Vec<u8>) {
    let Some(Check { site, user, check }) = check else { return };
    for part in [b"/files/", site.as_bytes(), b"/checks/", user, b"/", check, end] {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_separable_and_never_empty() {
        let check = Some(Check { site: "banking", user: b"0000000001", check: b"000013" });
        let mut dice = Dice::new(1, 1);
        for (kind, ..) in ALL {
            for _ in 0..200 {
                let mut out = Vec::new();
                kind.write(&mut dice, check, &mut out);
                let text = String::from_utf8(out).unwrap();
                assert!(!text.is_empty() && !text.contains(['&', '<', '\n']), "{kind:?}: {text}");
            }
        }
    }

    #[test]
    fn an_image_is_that_of_the_check_that_was_asked_for() {
        let check = Some(Check { site: "banking", user: b"0000000001", check: b"000013" });
        let mut out = Vec::new();
        Kind::Back.write(&mut Dice::new(1, 1), check, &mut out);
        assert_eq!(out, b"/files/banking/checks/0000000001/000013-back.gif");
    }
}
