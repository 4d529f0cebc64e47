//! A middleman that notes when clients send.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tare_model::turns::Turns;

/// Stands between clients and a server for as long as the test runs.
pub struct Noting {
    pub address: SocketAddr,
    noted: Arc<Mutex<Vec<u64>>>,
}

impl Noting {
    /// In front of `server`. `clock` is the drivers'. Pieces that are `except` are not noted.
    pub fn before(server: SocketAddr, clock: fn() -> u64, except: &'static [u8]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, noted) = (listener.local_addr().unwrap(), Arc::default());
        let notes: Arc<Mutex<Vec<u64>>> = Arc::clone(&noted);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let (back, forth) = ((server.try_clone().unwrap(), client.try_clone().unwrap()), (client, server));
                let notes = Arc::clone(&notes);
                thread::spawn(move || {
                    pass(forth.0, forth.1, |piece| {
                        if piece != except {
                            notes.lock().unwrap().push(clock());
                        }
                    });
                });
                thread::spawn(move || pass(back.0, back.1, |_| ()));
            }
        });
        Self { address, noted }
    }

    /// In how many turns something came so late that it was the turn of others. Fails where something came before a turn of its own. What
    /// comes when all have had their turns disturbs nobody.
    pub fn late(&self, turns: &Turns, start_ns: u64) -> u32 {
        let windows: Vec<(u64, u64)> = turns.windows(start_ns).collect();
        let noted = self.noted.lock().unwrap();
        // Greetings and logins come before the load.
        let load = noted.iter().filter(|at| (start_ns..start_ns + turns.total().ns).contains(at));
        let late: BTreeSet<usize> = load
            .filter_map(|at| {
                let turn = windows.iter().rposition(|(from, _)| from <= at).expect("a request came before its turn");
                (*at > windows[turn].1 + turns.spec.gap.ns).then_some(turn)
            })
            .collect();
        assert!(!noted.is_empty());
        late.len() as u32
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, seen: impl Fn(&[u8])) {
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        seen(&buffer[..n]);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
