//! A middleman that cuts connections: after some bytes of an answer, after some of a question, or when a commit has been asked for.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// When a connection is cut.
#[derive(Clone)]
enum Cut {
    /// After so many bytes to the client; the server loses the connection at once.
    Answer(usize),
    /// After so many bytes to the server.
    Question(usize),
    /// When the client has sent these bytes for the first time. The server gets them, and can answer nobody.
    Asked(Vec<u8>),
}

/// Stands between clients and a server until it is dropped.
pub struct Cutter {
    pub address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Cutter {
    /// In front of `server`. No connection is cut before `safe` bytes have gone each way, and all are soon after. What is seen
    /// in a question that asks for a commit is `commit`.
    pub fn before(server: SocketAddr, safe: usize, commit: &[u8]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, over) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (ended, commit) = (Arc::clone(&over), commit.to_vec());
        thread::spawn(move || {
            for (index, client) in listener.incoming().enumerate() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                // Any place, and the same ones in every run.
                let beyond = index.wrapping_mul(7_919) % 6_007;
                let cut = match index % 3 {
                    0 => Cut::Answer(safe + beyond),
                    1 => Cut::Question(safe + beyond),
                    _ => Cut::Asked(commit.clone()),
                };
                stand_between(client.unwrap(), server, &cut);
            }
        });
        Self { address, over }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn stand_between(client: TcpStream, server: TcpStream, cut: &Cut) {
    let both = |from: &TcpStream, to: &TcpStream| (from.try_clone().unwrap(), to.try_clone().unwrap());
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let ((from, to), when) = (both(&client, &server), cut.clone());
    thread::spawn(move || questions(from, to, &when));
    let when = cut.clone();
    thread::spawn(move || answers(server, client, &when));
}

fn questions(mut client: TcpStream, mut server: TcpStream, cut: &Cut) {
    let (mut buffer, mut passed) = ([0; 4096], 0);
    while let Ok(n @ 1..) = client.read(&mut buffer) {
        let all = match cut {
            Cut::Question(most) => n.min(most - passed),
            _ => n,
        };
        passed += all;
        if server.write_all(&buffer[..all]).is_err() || all < n {
            break;
        }
        if matches!(cut, Cut::Asked(what) if buffer[..n].windows(what.len()).any(|piece| piece == what)) {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    // What the server was sent, it shall read.
    let _ = server.shutdown(Shutdown::Write);
}

fn answers(mut server: TcpStream, mut client: TcpStream, cut: &Cut) {
    let (mut buffer, mut passed) = ([0; 4096], 0);
    while let Ok(n @ 1..) = server.read(&mut buffer) {
        let all = match cut {
            Cut::Answer(most) => n.min(most - passed),
            _ => n,
        };
        passed += all;
        // That nobody listens any more is no reason to leave a server with what it has to say.
        let _ = client.write_all(&buffer[..all]);
        if all < n {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
