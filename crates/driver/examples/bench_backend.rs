//! How much the simulated backend can answer, and what an answer costs it: so many connections, each with one request at a
//! time, for some seconds. Everything on loopback; what it prints is of this machine.
#![allow(clippy::print_stdout)]

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use tare_driver::serve;
use tare_driver::web::spec::BackendSpec;
use tare_model::packed::Packed;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// Connections.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Query, without its token.
    #[arg(long, default_value = "banking&2&0000000001")]
    query: String,
}

fn ask(at: SocketAddr, query: &str, thread: u32, until: Instant) -> io::Result<u64> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    let (mut asked, mut request, mut buffer) = (0u64, Vec::new(), vec![0; 16 * 1024]);
    while Instant::now() < until {
        request.clear();
        write!(request, "GET /?{query}&{thread:08x}{asked:08x} HTTP/1.1\r\nHost: backend\r\n\r\n")?;
        stream.write_all(&request)?;
        let mut filled = 0;
        while !buffer[..filled].ends_with(b"</html>\n") {
            match stream.read(&mut buffer[filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => filled += got,
            }
        }
        asked += 1;
    }
    Ok(asked)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let server = serve::start(&Packed::of(&BackendSpec { salt: 1, delay_ns: 0 })?, IpAddr::V4(Ipv4Addr::LOCALHOST))?;
    let (at, began) = (server.addr, Instant::now());
    let until = began + Duration::from_secs(arguments.seconds);
    let threads: Vec<_> = (0..arguments.connections)
        .map(|thread| {
            let query = arguments.query.clone();
            thread::spawn(move || ask(at, &query, thread, until))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread that asks ended abnormally")??;
    }
    let seconds = began.elapsed().as_secs_f64();
    let report = server.stop();
    let requests = report.requests as f64;
    let quantile = |q| report.service.quantile(q).unwrap_or(0.0) / 1e3;
    println!("connections          {}", report.connections);
    println!("requests a second    {:.0}", requests / seconds);
    println!("CPU a request        {:.2} us", report.cpu_ns as f64 / requests / 1e3);
    println!("service p50, p99     {:.1} us, {:.1} us", quantile(0.5), quantile(0.99));
    println!("bytes a reply        {:.0}", report.bytes_out as f64 / requests);
    println!("errors               {:?}", report.errors);
    Ok(())
}
