//! Keys and values.
use super::*;

fn keys(count: u64, key_bytes: u32, value_bytes: (u32, u32)) -> Keys {
    Keys { count, key_bytes, value_bytes, seed: 5 }
}

#[test]
fn a_value_is_known_as_its_keys_and_by_its_version() {
    let book = Book::new(keys(1000, 20, (16, 900))).unwrap();
    let whole = |number, version| {
        let (mark, rest) = book.value(number, version);
        [&mark[..], rest].concat()
    };
    for number in 0..1000 {
        let version = version(3, number);
        let value = whole(number, version);
        assert_eq!((value.len(), book.read(number, &value), writer(version)), (book.size(number), Some(version), 3));
        assert_eq!(book.read((number + 1) % 1000, &value), None, "the value of another key");
        for (at, byte) in [(0, 1), (9, 1), (value.len() - 1, 1)] {
            let mut spoilt = value.clone();
            spoilt[at] ^= byte;
            assert_eq!(book.read(number, &spoilt), None, "byte {at} of key {number}");
        }
        assert_eq!(book.read(number, &value[..value.len() - 1]), None);
        assert_eq!(book.read(number, &[&value[..], b"x"].concat()), None);
    }
    assert_eq!((book.read(0, b""), book.read(0, &[0; 16])), (None, None));
    let sizes: Vec<usize> = (0..1000).map(|number| book.size(number)).collect();
    let mean = sizes.iter().sum::<usize>() as f64 / 1000.0;
    assert!(
        (mean - 458.0).abs() < 40.0 && *sizes.iter().min().unwrap() < 30 && *sizes.iter().max().unwrap() > 885,
        "{mean}"
    );
    let other = Book::new(Keys { seed: 6, ..keys(1000, 20, (16, 900)) }).unwrap();
    assert_eq!(other.read(1, &whole(1, 0)), None, "values of another seed");
}

#[test]
fn keys_have_their_number_and_one_length() {
    let book = Book::new(keys(1_000_000_000, 14, (16, 16))).unwrap();
    let mut room = Book::room();
    assert_eq!(book.key(999_999_999, &mut room), b"tare:999999999");
    assert_eq!(book.key(7, &mut room), b"tare:000000007");
}

#[test]
fn keys_and_values_that_cannot_be_are_refused() {
    for bad in [
        keys(0, 20, (16, 16)),
        keys(KEYS + 1, 20, (16, 16)),
        keys(1_000_000_000, 13, (16, 16)),
        keys(10, 251, (16, 16)),
        keys(10, 20, (15, 16)),
        keys(10, 20, (17, 16)),
        keys(10, 20, (16, VALUE_BYTES + 1)),
    ] {
        assert!(Book::new(bad).is_err(), "{bad:?}");
    }
    assert!(Book::new(keys(1, 6, (16, 16))).is_ok() && Book::new(keys(11, 6, (16, 16))).is_err());
}
