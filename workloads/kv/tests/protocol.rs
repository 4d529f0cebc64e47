//! Requests and answers of both protocols, byte by byte.
use super::*;

const BOTH: [Protocol; 2] = [Protocol::Redis, Protocol::Memcached];

fn answer(protocol: Protocol, verb: Verb, bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, Fault> {
    protocol.answer(verb, b"tare:07", 100, bytes)
}

#[test]
fn requests_are_as_the_protocols_have_them_and_their_keys_are_found() {
    let mut out = Vec::new();
    Protocol::Redis.get(&mut out, b"tare:07");
    Protocol::Redis.set(&mut out, b"k", (b"ab", b"cdefghijklm"));
    assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$7\r\ntare:07\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$13\r\nabcdefghijklm\r\n");
    out.clear();
    Protocol::Memcached.get(&mut out, b"tare:07");
    Protocol::Memcached.set(&mut out, b"k", (b"ab", b"cd"));
    assert_eq!(out, b"get tare:07\r\nset k 0 0 4\r\nabcd\r\n");
    for protocol in BOTH {
        for length in [1, 9, 10, 99, 100, 250] {
            let key = vec![b'x'; length];
            for verb in [Verb::Get, Verb::Set] {
                out.clear();
                match verb {
                    Verb::Get => protocol.get(&mut out, &key),
                    Verb::Set => protocol.set(&mut out, &key, (b"", b"")),
                }
                let at = protocol.key_at(verb, length);
                assert_eq!(&out[at..at + length], &key[..], "{protocol:?} {verb:?} {length}");
            }
        }
    }
}

#[test]
fn an_answer_is_taken_when_it_is_whole_however_it_is_cut() {
    let value: Vec<u8> = (0..100).map(|n| if n % 7 == 0 { b'\r' } else { b'\n' }).collect();
    let redis = [b"$100\r\n", &value[..], b"\r\n"].concat();
    let memcached = [b"VALUE tare:07 0 100\r\n", &value[..], b"\r\nEND\r\n"].concat();
    for (protocol, verb, bytes, expected) in [
        (Protocol::Redis, Verb::Get, &redis[..], Answer::Value(&value)),
        (Protocol::Redis, Verb::Get, b"$-1\r\n", Answer::Missing),
        (Protocol::Redis, Verb::Get, b"$0\r\n\r\n", Answer::Value(b"")),
        (Protocol::Redis, Verb::Set, b"+OK\r\n", Answer::Stored),
        (Protocol::Redis, Verb::Set, b"-OOM no room\r\n", Answer::Refused("OOM no room".into())),
        (Protocol::Memcached, Verb::Get, &memcached, Answer::Value(&value)),
        (Protocol::Memcached, Verb::Get, b"END\r\n", Answer::Missing),
        (Protocol::Memcached, Verb::Set, b"STORED\r\n", Answer::Stored),
        (
            Protocol::Memcached,
            Verb::Set,
            b"SERVER_ERROR out of memory\r\n",
            Answer::Refused("SERVER_ERROR out of memory".into()),
        ),
    ] {
        for cut in 0..bytes.len() {
            assert_eq!(answer(protocol, verb, &bytes[..cut]), Ok(None), "{protocol:?} {verb:?} {cut}");
        }
        let more = [bytes, b"$5\r\n"].concat();
        assert_eq!(answer(protocol, verb, &more), Ok(Some((expected, bytes.len()))), "{protocol:?} {verb:?}");
    }
}

#[test]
fn what_is_no_answer_is_a_fault_and_never_waited_for() {
    let long = vec![b'x'; LINE_BYTES];
    let long = std::str::from_utf8(&long).unwrap();
    let sizes = ["$101\r\n", "$99999999999999999999\r\n", "$18446744073709551615\r\n", "$-2\r\n"];
    let values = ["$+3\r\nabc\r\n", "$\r\n", "$3\r\nabcXY", "+OK\r\n", long];
    let heads = ["VALUE tare:08 0 3\r\n", "VALUE tare:07 0 101\r\n", "VALUE tare:07 0\r\n", "VALUE tare:07 0 3 4\r\n"];
    for (protocol, verb, answers) in [
        (Protocol::Redis, Verb::Get, &sizes[..]),
        (Protocol::Redis, Verb::Get, &values),
        (Protocol::Redis, Verb::Set, &["$-1\r\n", "\r\n", "\n", "+OK\n"]),
        (Protocol::Memcached, Verb::Get, &heads),
        (Protocol::Memcached, Verb::Get, &["VALUE tare:07 0 3\r\nabc\r\nVALUE", "STORED\r\n"]),
        (Protocol::Memcached, Verb::Set, &["END\r\n", long]),
    ] {
        for bytes in answers {
            let fault = answer(protocol, verb, bytes.as_bytes()).unwrap_err().to_string();
            assert!(fault.len() < 400, "{bytes}: {fault}");
        }
    }
}

#[test]
fn bytes_at_random_end_in_an_answer_a_wait_or_a_fault() {
    let mut dice = crate::session::draw::Dice::new(1, 2);
    let alphabet = b"$*+-:VALUE tare:07 0 1END STORED\r\n\r\n9";
    for _ in 0..20_000 {
        let length = dice.below(40);
        let bytes: Vec<u8> = (0..length).map(|_| alphabet[dice.below(alphabet.len() as u32) as usize]).collect();
        for protocol in BOTH {
            for verb in [Verb::Get, Verb::Set] {
                if let Ok(Some((_, taken))) = answer(protocol, verb, &bytes) {
                    assert!(taken > 0 && taken <= bytes.len());
                }
            }
            if let Ok(Some((_, taken))) = protocol.said(&bytes) {
                assert!(taken > 0 && taken <= bytes.len());
            }
        }
    }
}

#[test]
fn what_a_server_says_of_itself_is_read_by_name() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let info = "# Server\r\nredis_version:7.0.15\r\ncmdstat_get:calls=3,usec=9\r\n";
    let bytes = format!("${}\r\n{info}\r\n", info.len());
    for cut in 0..bytes.len() {
        assert_eq!(Protocol::Redis.said(&bytes.as_bytes()[..cut]), Ok(None));
    }
    let (said, length) = Protocol::Redis.said(bytes.as_bytes()).unwrap().unwrap();
    assert_eq!(
        (said, length),
        (vec![pair("redis_version", "7.0.15"), pair("cmdstat_get", "calls=3,usec=9")], bytes.len())
    );
    let (said, length) = Protocol::Redis.said(b"*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n*0").unwrap().unwrap();
    assert_eq!((said, length), (vec![pair("maxmemory", "0")], 26));
    assert_eq!(Protocol::Redis.said(b"*0\r\n").unwrap().unwrap(), (Vec::new(), 4));
    for hostile in ["*3\r\n", "*1000000\r\n", "$99999999\r\n", "-NOAUTH\r\n"] {
        assert!(Protocol::Redis.said(hostile.as_bytes()).is_err(), "{hostile}");
    }
    let (said, length) = Protocol::Memcached.said(b"STAT cmd_get 7\r\nSTAT a b c\r\nEND\r\nX").unwrap().unwrap();
    assert_eq!((said, length), (vec![pair("cmd_get", "7"), pair("a", "b c")], 33));
    assert_eq!(Protocol::Memcached.said(b"STAT cmd_get 7\r\nEN"), Ok(None));
    assert!(Protocol::Memcached.said(b"ERROR\r\n").is_err());
}
