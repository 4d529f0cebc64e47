//! One page of a web server, asked for without TLS and never measured: whether it is ready, and what it counted.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tare_wire::Reply;

/// Longest head of an answer, bytes.
const HEAD_BYTES: u64 = 64 << 10;
/// Longest time limit: a wrong one must not outlive every trial.
const LONGEST: Duration = Duration::from_secs(600);
/// What is read at once, bytes.
const PART: usize = 16 << 10;

/// Asks for a page and reads the answer to its end. HTTP/1.0, so that the server closes the connection after it and sends
/// no chunks.
pub fn get(address: SocketAddr, path: &str, timeout: Duration, limit_bytes: u64) -> Result<Reply, String> {
    if !path.starts_with('/') || path.chars().any(|c| c.is_control() || c == ' ') {
        return Err(format!("`{path}` is no path of a page"));
    }
    let failed = |doing: &str, error: &std::io::Error| format!("cannot {doing} http://{address}{path}: {error}");
    let deadline = Instant::now() + timeout.min(LONGEST);
    let mut stream = TcpStream::connect_timeout(&address, left(deadline)).map_err(|e| failed("connect to", &e))?;
    stream.set_write_timeout(Some(left(deadline))).map_err(|e| failed("ask", &e))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|e| failed("ask", &e))?;
    let answer = read(&mut stream, deadline, limit_bytes.saturating_add(HEAD_BYTES)).map_err(|e| failed("read", &e))?;
    let (status, body) = parse(&answer).ok_or_else(|| format!("what answers at http://{address}{path} is no HTTP"))?;
    if body.len() as u64 > limit_bytes {
        return Err(format!("http://{address}{path} is longer than {limit_bytes} bytes"));
    }
    Ok(Reply::Fetched { status, body: body.to_vec() })
}

/// Time that is left; never none, which would be no limit at all.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn read(stream: &mut TcpStream, deadline: Instant, limit_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut part = [0; PART];
    loop {
        if Instant::now() >= deadline {
            return Err(std::io::Error::new(ErrorKind::TimedOut, "it took too long"));
        }
        stream.set_read_timeout(Some(left(deadline)))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(answer),
            Ok(got) => answer.extend_from_slice(&part[..got]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(std::io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
            Err(error) => return Err(error),
        }
        if answer.len() as u64 > limit_bytes {
            return Ok(answer);
        }
    }
}

/// Status and body of an answer.
fn parse(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    Some((status, &answer[end + 4..]))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// A server of one answer; its address, and the thread that gives the request's first line.
    fn server(answer: &'static str) -> (SocketAddr, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                lines.push(line);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            lines.swap_remove(0)
        });
        (address, thread)
    }

    #[test]
    fn status_and_body_are_returned_and_what_is_too_long_or_no_http_is_refused() {
        let second = Duration::from_secs(10);
        let (address, thread) = server("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nlate");
        let got = get(address, "/tare/ready", second, 100).unwrap();
        assert_eq!(got, Reply::Fetched { status: 503, body: b"late".to_vec() });
        assert_eq!(thread.join().unwrap(), "GET /tare/ready HTTP/1.0\r\n");
        let (address, _thread) = server("HTTP/1.1 200 OK\r\n\r\n0123456789");
        assert!(get(address, "/", second, 9).unwrap_err().contains("longer than 9 bytes"));
        let (address, _thread) = server("SSH-2.0-x\r\n\r\n");
        assert!(get(address, "/", second, 9).unwrap_err().contains("no HTTP"));
        assert!(get(address, "/a b", second, 9).unwrap_err().contains("no path"));
    }

    #[test]
    fn who_does_not_answer_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let error = get(address, "/", Duration::from_millis(50), 9).unwrap_err();
        assert!(error.contains("in time") || error.contains("too long"), "{error}");
        drop(listener);
        assert!(get(address, "/", Duration::from_secs(5), 9).unwrap_err().contains("cannot connect"));
    }
}
