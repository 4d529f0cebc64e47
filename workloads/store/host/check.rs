//! Whether the database holds what the drivers saw acknowledged: no more and no less.

use crate::store::spec::{StoreCounts, StoreDone};

/// How the database and the drivers disagree, if they do: every equation that does not hold, with both figures.
///
/// `before` was counted when the store was loaded, `after` when all drivers had ended; `done` is what all drivers of this
/// store saw acknowledged, with the numbers of all orders in doubt that are there. An order whose commit was sent and never
/// answered may be there, whole, or not at all.
pub(super) fn disagreement(before: &StoreCounts, done: &StoreDone, after: &StoreCounts) -> Option<String> {
    let mut wrong = Vec::new();
    orders(done, after, &mut wrong);
    let doubtful = doubtful(done, after, &mut wrong);
    let made = done.orders + doubtful.orders;
    same("orders in all", after.orders, before.orders + made, "loaded and acknowledged or in doubt", &mut wrong);
    stock(before, after, signed(done.quantity + doubtful.quantity), &mut wrong);
    customers(before, done, after, &mut wrong);
    same("orders, lines and history rows without each other", after.orphans, 0, "allowed", &mut wrong);
    (!wrong.is_empty()).then(|| format!("the database and what was acknowledged disagree: {}", wrong.join("; ")))
}

/// One equation between a count of the database and a count of somebody else's.
fn same<T: PartialEq + std::fmt::Display>(what: &str, there: T, expected: T, whose: &str, wrong: &mut Vec<String>) {
    if there != expected {
        wrong.push(format!("{what}: the database has {there}, {whose} are {expected}"));
    }
}

const fn signed(count: u64) -> i64 {
    count.cast_signed()
}

/// The new orders that are in no doubt.
fn orders(done: &StoreDone, after: &StoreCounts, wrong: &mut Vec<String>) {
    let acknowledged = "acknowledged";
    same("new orders", after.new_orders, done.orders, acknowledged, wrong);
    same("sum of the new orders' numbers", after.new_order_ids, done.order_ids, acknowledged, wrong);
    same("sum of the new orders' amounts in cents", after.new_total_cents, done.total_cents, acknowledged, wrong);
    same("lines of new orders", after.new_lines, done.lines, acknowledged, wrong);
    same("quantity of new orders", after.new_quantity, done.quantity, acknowledged, wrong);
    same("history rows of new orders", after.new_history, done.lines, "lines acknowledged", wrong);
}

/// Orders in doubt that are there.
struct Doubtful {
    orders: u64,
    quantity: u64,
}

fn doubtful(done: &StoreDone, after: &StoreCounts, wrong: &mut Vec<String>) -> Doubtful {
    let mut there = Doubtful { orders: 0, quantity: 0 };
    for &(number, lines, quantity, history) in &after.doubtful {
        there.orders += 1;
        there.quantity += quantity;
        if !done.in_doubt.contains(&number) {
            wrong.push(format!("order {number} was counted as in doubt, which it was not"));
        }
        if lines == 0 || lines != history {
            wrong.push(format!(
                "order {number}, whose commit was not answered, is there in part: {lines} lines, {history} history rows"
            ));
        }
    }
    there
}

/// What was sold left the stock, and what was reordered came into it.
fn stock(before: &StoreCounts, after: &StoreCounts, quantity: i64, wrong: &mut Vec<String>) {
    let sold = "quantity of the new orders";
    same("sales since the load", after.sales - before.sales, quantity, sold, wrong);
    let restocked = after.restocked - before.restocked;
    same("stock", after.stock, before.stock - quantity + restocked, "loaded less sold and with restocked", wrong);
    if after.reorders < before.reorders {
        same("reorders", after.reorders, before.reorders, "loaded", wrong);
    }
}

fn customers(before: &StoreCounts, done: &StoreDone, after: &StoreCounts, wrong: &mut Vec<String>) {
    let least = before.customers + done.new_customers;
    let most = least + done.customers_in_doubt;
    if !(least..=most).contains(&after.customers) {
        let doubt = match done.customers_in_doubt {
            0 => String::new(),
            doubt => format!(" (and {doubt} in doubt)"),
        };
        wrong.push(format!(
            "customers: the database has {}, loaded and acknowledged are {least}{doubt}",
            after.customers
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before() -> StoreCounts {
        StoreCounts {
            customers: 20_000,
            orders: 12_000,
            last_order: 12_000,
            sales: 7,
            stock: 2_500_000,
            reorders: 1,
            restocked: 200,
            ..StoreCounts::default()
        }
    }

    fn done() -> StoreDone {
        StoreDone {
            orders: 2,
            order_ids: 24_003,
            total_cents: 4_321,
            lines: 5,
            quantity: 9,
            new_customers: 1,
            in_doubt: vec![12_003, 12_004],
            customers_in_doubt: 1,
            ..StoreDone::default()
        }
    }

    /// What must be there: one of the two orders in doubt came through.
    fn after() -> StoreCounts {
        StoreCounts {
            customers: 20_001,
            orders: 12_003,
            last_order: 12_004,
            new_orders: 2,
            new_order_ids: 24_003,
            new_total_cents: 4_321,
            new_lines: 5,
            new_quantity: 9,
            new_history: 5,
            doubtful: vec![(12_004, 2, 3, 2)],
            sales: 7 + 12,
            stock: 2_500_000 - 12 + 248,
            reorders: 2,
            restocked: 448,
            orphans: 0,
        }
    }

    #[test]
    fn a_database_with_all_that_was_acknowledged_agrees() {
        assert_eq!(disagreement(&before(), &done(), &after()), None);
        let all_gone = StoreCounts { doubtful: Vec::new(), orders: 12_002, sales: 16, stock: 2_500_239, ..after() };
        assert_eq!(disagreement(&before(), &done(), &all_gone), None, "what was in doubt may be absent");
        let both = StoreCounts { customers: 20_002, ..after() };
        assert_eq!(disagreement(&before(), &done(), &both), None, "the customer in doubt may be there");
    }

    #[test]
    fn each_equation_that_does_not_hold_is_reported_with_both_figures() {
        type Break = fn(&mut StoreCounts);
        let breaks: [(Break, &[&str]); 15] = [
            (|a| a.new_orders = 1, &["new orders", "has 1", "are 2"]),
            (|a| a.new_order_ids += 1, &["numbers", "24004", "24003"]),
            (|a| a.new_total_cents = 4_320, &["cents", "4320", "4321"]),
            (|a| a.new_lines = 6, &["lines of new orders", "has 6", "are 5"]),
            (|a| a.new_quantity = 8, &["quantity of new orders", "has 8", "are 9"]),
            (|a| a.new_history = 4, &["history rows of new orders", "has 4", "are 5"]),
            (|a| a.orders = 12_002, &["orders in all", "12002", "12003"]),
            (|a| a.sales = 18, &["sales", "has 11", "are 12"]),
            (|a| a.stock -= 1, &["stock", "2500235", "2500236"]),
            (|a| a.restocked += 1, &["stock", "2500236", "2500237"]),
            (|a| a.reorders = 0, &["reorders", "has 0", "are 1"]),
            (|a| a.customers = 20_000, &["customers", "20000", "20001 (and 1 in doubt)"]),
            (|a| a.customers = 20_003, &["customers", "20003", "20001 (and 1 in doubt)"]),
            (|a| a.orphans = 3, &["without each other", "has 3", "are 0"]),
            (|a| a.doubtful[0].3 = 1, &["12004", "in part", "2 lines, 1 history rows"]),
        ];
        for (spoil, words) in breaks {
            let mut after = after();
            spoil(&mut after);
            let why = disagreement(&before(), &done(), &after).expect(words[0]);
            assert!(words.iter().all(|word| why.contains(word)), "{words:?}: {why}");
        }
    }

    #[test]
    fn an_order_in_doubt_that_nobody_doubts_or_without_lines_is_wrong() {
        let mut after = after();
        after.doubtful = vec![(12_009, 2, 3, 2)];
        assert!(disagreement(&before(), &done(), &after).unwrap().contains("12009"));
        after.doubtful = vec![(12_004, 0, 3, 0)];
        assert!(disagreement(&before(), &done(), &after).unwrap().contains("in part: 0 lines"));
    }

    #[test]
    fn a_lost_order_is_seen_in_all_that_it_touches() {
        let mut after = after();
        after.new_orders -= 1;
        after.orders -= 1;
        after.sales -= 4;
        after.stock += 4;
        let why = disagreement(&before(), &done(), &after).unwrap();
        assert!(["new orders", "orders in all", "sales", "stock"].iter().all(|word| why.contains(word)), "{why}");
    }
}
