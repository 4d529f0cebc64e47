#![allow(clippy::unwrap_used)]
use super::*;

const SMALL: StoreSize = StoreSize { customers: 20_000, orders_per_month: 1_000, products: 10_000 };

const GOLDEN: [(Table, u64); 7] = [
    (Table::Categories, 0x585f_59c5_12ab_8388),
    (Table::Products, 0x10d9_4c9d_ec47_8b82),
    (Table::Inventory, 0x8d49_e26b_d5c9_9f1d),
    (Table::Customers, 0x7957_1d85_38c1_537c),
    (Table::Orders, 0x82d6_53ed_6fd3_9361),
    (Table::Orderlines, 0xd327_ce56_f663_8407),
    (Table::CustHist, 0x8e9e_3d9c_bb7c_0644),
];

/// FNV-1a, 64 bits: enough to tell whether two streams are the same.
fn hash(bytes: &[u8], mut hash: u64) -> u64 {
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// The hash of a table's rows when they are made in chunks of so many numbers.
fn table_hash(seed: u64, size: StoreSize, table: Table, chunk: u64) -> u64 {
    let source = Source::new(seed, size);
    let mut state = 0xcbf2_9ce4_8422_2325;
    let mut from = 1;
    while from <= table.numbers(&size) {
        let to = (from + chunk - 1).min(table.numbers(&size));
        let mut out = Vec::new();
        for number in from..=to {
            source.write(table, number, &mut out);
        }
        state = hash(&out, state);
        from = to + 1;
    }
    state
}

/// Fields of a row, from its binary form.
fn fields(mut row: &[u8]) -> Vec<Vec<u8>> {
    let count = u16::from_be_bytes([row[0], row[1]]);
    row = &row[2..];
    let fields = (0..count)
        .map(|_| {
            let length = u32::from_be_bytes(row[..4].try_into().unwrap()) as usize;
            let field = row[4..4 + length].to_vec();
            row = &row[4 + length..];
            field
        })
        .collect();
    assert!(row.is_empty());
    fields
}

fn number(field: &[u8]) -> u32 {
    u32::from_be_bytes(field.try_into().unwrap())
}

fn one(source: &Source, table: Table, n: u64) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    assert_eq!(source.write(table, n, &mut out), 1);
    fields(&out)
}

#[test]
fn rows_are_the_same_in_any_chunks_and_as_they_always_were() {
    // Whoever changes a row changes what earlier runs measured: these hashes, and `crate::store::spec::GENERATION`, go together.
    for (table, expected) in GOLDEN {
        let whole = table_hash(1, SMALL, table, u64::MAX / 2);
        assert_eq!(whole, table_hash(1, SMALL, table, 977), "{table:?}");
        assert_eq!(format!("{whole:016x}"), format!("{expected:016x}"), "{table:?}");
        assert_eq!(table == Table::Categories, whole == table_hash(2, SMALL, table, 977), "{table:?}: seed 2");
    }
}

#[test]
fn customers_are_half_in_the_us_and_otherwise_as_published() {
    let source = Source::new(7, SMALL);
    let mut incomes = [0_u32; 6];
    for n in 1..=SMALL.customers {
        let row = one(&source, Table::Customers, n);
        let us = n <= 10_000;
        assert_eq!(number(&row[0]), n as u32);
        assert_eq!([row[1].len(), row[2].len(), row[5].len()], [6, 10, 7]);
        assert!(row[1].iter().chain(&row[2]).chain(&row[5]).all(u8::is_ascii_uppercase));
        assert_eq!((row[8] == b"US", number(&row[9]), number(&row[7]) != 0), (us, if us { 1 } else { 2 }, us));
        assert_eq!(row[6].len(), if us { 2 } else { 0 });
        assert!((1..=5).contains(&number(&row[12])) && row[13].len() == 16 && row[14].len() == 7);
        assert_eq!((row[15].as_slice(), row[16].as_slice()), (format!("user{n}").as_bytes(), b"password".as_slice()));
        assert!((18..=90).contains(&number(&row[17])));
        assert_eq!(number(&row[18]) % 20_000, 0);
        incomes[(number(&row[18]) / 20_000) as usize] += 1;
        assert!(row[19] == b"M" || row[19] == b"F");
    }
    assert!(incomes[0] == 0 && incomes[1..].iter().all(|n| n.abs_diff(4_000) < 350), "{incomes:?}");
}

#[test]
fn a_hundredth_of_the_products_is_special_and_a_ten_thousandth_of_many() {
    for (products, low, high) in [(10_000, 60, 140), (100_000, 870, 1_130), (1_000_000, 60, 140)] {
        let size = StoreSize { products, ..SMALL };
        let source = Source::new(3, size);
        let special: u32 = (1..=products).map(|n| number(&one(&source, Table::Products, n)[5])).sum();
        assert!((low..=high).contains(&special), "{special} of {products}");
    }
}

#[test]
fn products_have_two_words_a_name_and_a_price() {
    let source = Source::new(3, SMALL);
    let mut prices = std::collections::BTreeSet::new();
    let mut categories = [0_u32; 17];
    for n in 1..=SMALL.products {
        let row = one(&source, Table::Products, n);
        categories[number(&row[1]) as usize] += 1;
        for (text, lists) in [(&row[2], [&words().title, &words().title]), (&row[3], [&words().first, &words().last])] {
            let text = String::from_utf8(text.clone()).unwrap();
            let parts: Vec<&str> = text.split(' ').collect();
            assert_eq!(parts.len(), 2);
            assert!(parts.iter().zip(lists).all(|(part, list)| list.contains(part)), "{text}");
        }
        prices.insert(row[4].clone());
        assert!((1..=10_000).contains(&number(&row[6])));
    }
    let mut expected = std::collections::BTreeSet::new();
    for units in 9..=29 {
        let mut out = Vec::new();
        copy::amount(&mut out, units * 100 + 99);
        expected.insert(out[4..].to_vec());
    }
    assert_eq!(prices, expected, "9.99 to 29.99");
    assert!(categories[0] == 0 && categories[1..].iter().all(|n| n.abs_diff(625) < 150), "{categories:?}");
}

#[test]
fn hot_products_begin_with_ten_times_the_stock() {
    let size = StoreSize { products: 10_000_000, ..SMALL };
    let source = Source::new(5, size);
    let hot: Vec<u64> = (1..=1_000).map(|n| source.stock(n * HOT_EVERY)).collect();
    assert!(hot.iter().all(|stock| stock % 10 == 0 && *stock <= 5_000));
    assert!(hot.iter().any(|stock| *stock > 4_500));
    let others: Vec<u64> = (1..HOT_EVERY).map(|n| source.stock(n)).collect();
    assert!(others.iter().all(|stock| *stock <= 500) && others.contains(&0) && others.contains(&500));
    let mean = others.iter().sum::<u64>() / others.len() as u64;
    assert!((240..=260).contains(&mean), "{mean}");
}

#[test]
fn orders_have_one_to_nine_lines_and_tax_to_the_cent() {
    let source = Source::new(11, SMALL);
    let mut lines = [0_u32; 10];
    let mut quantities = [0_u32; 4];
    let mut nets = (u64::MAX, 0);
    for n in 1..=12_000 {
        let order = source.order(n);
        nets = (nets.0.min(order.net_cents), nets.1.max(order.net_cents));
        assert_eq!(order.tax_cents, (order.net_cents as f64 * 0.0825 + 1e-9).round() as u64);
        assert!((1..=20_000).contains(&order.customer));
        let month = (n - 1) as usize / 1_000;
        assert!((MONTH_STARTS[month]..MONTH_STARTS[month + 1]).contains(&order.day));
        lines[order.lines as usize] += 1;
        for line in source.lines(order) {
            assert!((1..=10_000).contains(&line.product));
            quantities[line.quantity as usize] += 1;
        }
    }
    assert!(nets.0 >= 1 && nets.0 < 50 && nets.1 <= 40_000 && nets.1 > 39_950, "{nets:?}");
    assert!(lines[0] == 0 && lines[1..].iter().all(|n| n.abs_diff(1_333) < 220), "{lines:?}");
    let all: u32 = quantities.iter().sum();
    assert!(quantities[0] == 0 && quantities[1..].iter().all(|n| n.abs_diff(all / 3) < 900), "{quantities:?}");
}

#[test]
fn lines_and_history_are_those_of_the_order() {
    let source = Source::new(11, SMALL);
    for n in [1, 17, 12_000] {
        let order = source.order(n);
        let (mut lines, mut history) = (Vec::new(), Vec::new());
        assert_eq!(source.write(Table::Orderlines, n, &mut lines), order.lines);
        assert_eq!(source.write(Table::CustHist, n, &mut history), order.lines);
        let (lines, history): (Vec<_>, Vec<_>) =
            (lines.chunks(42).map(fields).collect(), history.chunks(26).map(fields).collect());
        for (index, (line, bought)) in lines.iter().zip(&history).enumerate() {
            assert_eq!((number(&line[0]), number(&line[1])), (n as u32, index as u32 + 1));
            assert_eq!((number(&bought[0]), number(&bought[1])), (order.customer as u32, n as u32));
            assert_eq!((&line[2], number(&line[4])), (&bought[2], order.day));
        }
    }
}
