#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;

use super::*;

fn account(arm: &str, counts: &[(&str, u64)], facts: &[(&str, &str)]) -> ArmAccount {
    ArmAccount {
        arm: arm.into(),
        counts: counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
        facts: facts.iter().map(|(name, fact)| ((*name).to_owned(), (*fact).to_owned())).collect::<BTreeMap<_, _>>(),
        ..ArmAccount::default()
    }
}

fn case(accounts: Vec<ArmAccount>) -> CaseFindings {
    CaseFindings { accounts, ..CaseFindings::default() }
}

fn row<'a>(table: &'a Table, name: &str) -> &'a [Cell] {
    let named = |row: &&Vec<Cell>| matches!(&row[0].value, Value::Text(text) if text.starts_with(name));
    &table.rows.iter().find(named).unwrap_or_else(|| panic!("no row {name}: {table:?}"))[1..]
}

fn values(cells: &[Cell]) -> Vec<Value> {
    cells.iter().map(|cell| cell.value.clone()).collect()
}

#[test]
fn what_became_of_the_orders_is_reported_with_each_sqlstate() {
    let full = "errors: 53100 could not extend file";
    let ordinary = [(count::OPERATIONS, 1000), (ROLLED_BACK, 20), (DEADLOCKS, 12), (GAVE_UP, 0), (count::ERRORS, 0)];
    let failing = [
        (count::OPERATIONS, 900),
        (ROLLED_BACK, 18),
        (count::ERRORS, 7),
        (full, 7),
        (BLOCKS_FOUND, 99),
        (BLOCKS_READ, 1),
    ];
    let mut found = case(vec![account("a", &ordinary, &[]), account("b", &failing, &[])]);
    let table = outcomes(&found).unwrap();
    assert_eq!(table.columns[1].head, Value::Arm("a".into()));
    assert_eq!(values(row(&table, "orders")), [Value::Count(1000), Value::Count(900)]);
    assert_eq!(row(&table, "of them rolled back")[0].note, "2.0 %");
    assert_eq!(values(row(&table, "deadlocks")), [Value::Count(12), Value::Unknown]);
    assert_eq!(values(row(&table, "failed: 53100 could not extend file")), [Value::Count(0), Value::Count(7)]);
    assert_eq!(values(row(&table, "blocks that the servers found")), [Value::Unknown, Value::Share(0.99)]);
    assert!(!format!("{table:?}").contains("connections that were lost"), "there were none");
    // Where others measured, or nothing completed, no order was counted.
    found.accounts.iter_mut().for_each(|own| own.counts.retain(|name, _| name != ROLLED_BACK));
    assert_eq!(outcomes(&found), None);
    assert_eq!(outcomes(&case(vec![])), None);
}

#[test]
fn storage_and_server_are_listed_arm_by_arm_and_settings_only_where_arms_differ() {
    let facts = |fsync| {
        [
            (fact::DATA_ON, "a disk"),
            (fact::DATA_RESTORED_BY, "copied"),
            ("guest 2: data on", "another"),
            (facts::VERSION, "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc"),
            ("PostgreSQL fsync", fsync),
            ("PostgreSQL shared_buffers", "4GB"),
            ("PostgreSQL hba_file", fsync),
        ]
    };
    let found = case(vec![account("a", &[], &facts("on")), account("b", &[], &facts("off"))]);
    let table = server(&found).unwrap();
    let heads: Vec<&Value> = table.columns.iter().map(|column| &column.head).collect();
    let expected = ["Arm", "Data on", "Restored by", "PostgreSQL", "fsync"].map(|head| Value::Text(head.into()));
    assert_eq!(heads, expected.iter().collect::<Vec<_>>());
    assert_eq!(table.rows[1][1], Cell::text("a disk").noted("guest 2: another"));
    assert_eq!((&table.rows[1][3], &table.rows[1][4]), (&Cell::text("18.6"), &Cell::text("off")));
    assert!(table.caption.contains("are restored to their state"));
    assert_eq!(server(&case(vec![account("a", &[], &[])])), None);
}

#[test]
fn processes_are_shares_of_all_samples_the_most_frequent_state_first() {
    let seen = |waiting: u64, running: u64| {
        let named = [("waiting", waiting), ("running", running), ("IO WalSync", 1)];
        let counts: Vec<(String, u64)> = named.map(|(state, n)| (format!("{PROCESSES}{state}"), n)).to_vec();
        let counts: Vec<(&str, u64)> = counts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        account("a", &counts, &[])
    };
    let table = processes(&case(vec![seen(150, 49), seen(29, 170), account("c", &[], &[])])).unwrap();
    let states: Vec<&Value> = table.rows.iter().map(|row| &row[0].value).collect();
    assert_eq!(states, [&Value::Text("running".into()), &Value::Text("waiting".into())], "0.5 % are left out");
    assert_eq!(values(&table.rows[1][1..]), [Value::Share(0.75), Value::Share(0.145), Value::Unknown]);
    assert_eq!(processes(&case(vec![account("a", &[], &[])])), None);
}
