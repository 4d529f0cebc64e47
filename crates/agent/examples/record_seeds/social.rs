//! What the social application needs: a file store, a database that cannot be reached, and users of an application that knows one page.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use tare_driver::social::spec::{Cycle, Scale, SocialDrive, SocialLoad, StoreSpec};
use tare_model::packed::Packed;
use tare_model::sql::SqlServer;
use tare_wire::{Link, Reply, Request};

use super::{Result, ask, drive_spec, perform};

const PAGE: &str = "<!DOCTYPE html><html><head><title>Upcoming events</title></head><body><p id=\"user\">-</p>\
<h1>Upcoming events</h1><a href=\"/event?id=1\">Event 1</a><a href=\"/tag?name=tag1\">tag1</a></body></html>\n";

pub fn social(link: &Link) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("tare-seed-store-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let bind = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (scale, path) = (Scale::of(25), folder.to_string_lossy().into_owned());
    let task = Packed::of(&StoreSpec { scale, instances: 2, folder: path, delay_ns: 0 })?;
    let Reply::Serving { server, address } = ask(link, Request::Serve { task, bind, from: None })? else {
        return Err("no file store".into());
    };
    for request in ["PUT /1/person/2501t.jpg", "GET /3/person/1.jpg"] {
        ask_store(address, request)?;
    }
    ask(link, Request::StopServe { server })?;
    fs::remove_dir_all(&folder)?;

    // Nobody listens there.
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (user, database) = ("nobody".to_owned(), "social1".to_owned());
    let server = SqlServer { address, user, password: Some("secret".into()), database, schema: Some("one".into()) };
    perform(link, &SocialLoad { server, scale, seed: 1, connections: 2 })?;
    users(link, scale)
}

/// Sends a request with a body of three bytes where it brings something, and waits for the answer's first line.
fn ask_store(address: SocketAddr, request: &str) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let body = if request.starts_with("PUT") { "abc" } else { "" };
    write!(stream, "{request} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    BufReader::new(stream).read_line(&mut String::new())?;
    Ok(())
}

fn users(link: &Link, scale: Scale) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let target = listener.local_addr()?;
    // It ends with this program.
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(std::result::Result::ok) {
            std::thread::spawn(move || answer(connection));
        }
    });
    let cycle = Cycle { mean_ns: 5_000_000, most_ns: 25_000_000, add_person_ns: 2_000_000, add_event_ns: 3_000_000 };
    let kind = SocialDrive {
        scale,
        data_seed: 1,
        cycle,
        revalidating: 0.6,
        attend: 0.1,
        check: true,
        timeout_ns: 1_000_000_000,
        names: 1,
        threads: 1,
    };
    let Reply::Prepared { drive } = ask(link, Request::PrepareDrive(Box::new(drive_spec(&kind, target)?)))? else {
        return Err("no driver".into());
    };
    ask(link, Request::StartDrive { drive, start_at_ns: 0 })?;
    Ok(())
}

/// Answers every request with the page, whatever it asks for.
fn answer(mut connection: TcpStream) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=utf-8\r\nContent-Length: {}\r\n\r\n", PAGE.len());
    for line in BufReader::new(connection.try_clone()?).lines() {
        // The end of a head.
        if line?.is_empty() {
            connection.write_all(format!("{head}{PAGE}").as_bytes())?;
        }
    }
    Ok(())
}
