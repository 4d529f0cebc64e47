//! Records real conversations between a controller and an agent as seeds for the fuzz targets.
//!
//! `cargo run -p tare-agent --example record_seeds -- AGENT FOLDER [ADDRESS USER DATABASE]` writes `FOLDER/agent_frames/NAME` and
//! `FOLDER/controller_frames/NAME`: all that each end said, from its greeting on. In the database, of a PostgreSQL that asks for no
//! password, a schema `seeds` is made and dropped again; without one, the seeds `databases` are left as they are.

#[path = "record_seeds/databases.rs"]
mod databases;
#[path = "record_seeds/social.rs"]
mod social;

use std::error::Error;
use std::fs::{File, create_dir_all};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tare_driver::java::spec::JavaDrive;
use tare_model::Span;
use tare_model::drive::{
    BusyStretch, BusyWork, Direction, DriveSpec, Exchange, ReceiveMethod, SendMethod, SocketDrive, SocketOptions,
    SocketServer, Wait,
};
use tare_model::hold::{GuestMemory, HoldSpec};
use tare_model::load::{LoadModel, Phases};
use tare_model::packed::{Packed, Task};
use tare_model::sql::SqlServer;
use tare_wire::{ExecSpec, Link, Reply, Request, WireError};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a played application.
const PLAYED_RESULT: &str = "bin response 1000 1001 5\nstat response 1000 1001 5003\ntransaction payment 3\n\
transaction new-order 2\nvalue dropped 1\nvalue heap_used_bytes 60\nvalue heap_committed_bytes 80\n\
value allocated_bytes 1000\nvalue collections 4\nvalue collection_ms 5\nvalue cpu_ns 6\n.";

/// What is asked of an agent.
type Conversation<'a> = &'a dyn Fn(&Link) -> Result<()>;

/// A stream of which a copy goes to a file.
struct Tee<S>(S, File);

impl<S: Read> Read for Tee<S> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.write_all(&buffer[..read])?;
        Ok(read)
    }
}

impl<S: Write> Write for Tee<S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.write_all(&bytes[..written])?;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(agent), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: record_seeds AGENT FOLDER [ADDRESS USER DATABASE]".into());
    };
    let conversations: [(&str, Conversation<'_>); 9] = [
        ("aggressors", &aggressors),
        ("facts", &facts),
        ("commands", &commands),
        ("started", &started),
        ("files", &files),
        ("load", &load),
        ("java", &java),
        ("social", &social::social),
        ("sampling", &sampling),
    ];
    for (name, conversation) in conversations {
        record(&agent, &folder, name, conversation)?;
    }
    let place: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    if let [address, user, database] = place.as_slice() {
        let (user, database) = (user.clone(), database.clone());
        let server = SqlServer::of(address.parse()?, &user, &database);
        record(&agent, &folder, "databases", &|link| databases::databases(link, &server))?;
    }
    Ok(())
}

fn record(agent: &Path, folder: &Path, name: &str, conversation: Conversation<'_>) -> Result<()> {
    let open = |target: &str| -> std::io::Result<File> {
        create_dir_all(folder.join(target))?;
        File::create(folder.join(target).join(name))
    };
    let mut child = Command::new(agent).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(reader), Some(writer)) = (child.stdout.take(), child.stdin.take()) else {
        return Err("the agent has no streams".into());
    };
    let (reader, writer) = (Tee(reader, open("agent_frames")?), Tee(writer, open("controller_frames")?));
    let link = Link::open(Box::new(reader), Box::new(writer), TIMEOUT, TIMEOUT)?;
    conversation(&link)?;
    link.call(Request::Bye, TIMEOUT)?;
    child.wait()?;
    Ok(())
}

fn ask(link: &Link, request: Request) -> std::result::Result<Reply, WireError> {
    link.call(request, TIMEOUT)
}

/// Has the agent's part of a workload do something; it may refuse.
fn perform<T: Task>(link: &Link, task: &T) -> Result<()> {
    link.perform(task, TIMEOUT)?;
    Ok(())
}

fn facts(link: &Link) -> Result<()> {
    ask(link, Request::Facts)?;
    ask(link, Request::Clock)?;
    if let Reply::BusyStarted { busy, .. } = ask(link, Request::Busy { threads: 1, work: BusyWork::Mixed })? {
        ask(link, Request::BusyIterations { busy })?;
        ask(link, Request::RunBusy { busy, stretch: BusyStretch { note_every_ns: 1, ..BusyStretch::default() } })?;
        ask(link, Request::StopBusy { busy })?;
        // An answer that is a refusal.
        ask(link, Request::StopBusy { busy }).map_or_else(|_| Ok(()), |_| Err("stopped twice".into()))
    } else {
        Err("no busy loops".into())
    }
}

/// A receiver, a sender, one that needs a directory, and one that cannot have it.
fn aggressors(link: &Link) -> Result<()> {
    let directory = std::env::temp_dir().to_string_lossy().into_owned();
    let receive = BusyWork::NetReceive { listen: IpAddr::V4(Ipv4Addr::LOCALHOST) };
    let started = ask(link, Request::Busy { threads: 1, work: receive })?;
    let Reply::BusyStarted { busy, address: Some(to) } = started else { return Err("it does not listen".into()) };
    let mut all = vec![busy];
    for work in [BusyWork::NetSend { to }, BusyWork::PageCache { directory, memory_bytes: 32 << 20 }] {
        let Reply::BusyStarted { busy, .. } = ask(link, Request::Busy { threads: 1, work })? else {
            return Err("not started".into());
        };
        all.push(busy);
    }
    for busy in all {
        ask(link, Request::RunBusy { busy, stretch: BusyStretch { for_ns: 5_000_000, ..BusyStretch::default() } })?;
    }
    let nowhere = BusyWork::DiskWrite { directory: "/no/such".to_owned() };
    ask(link, Request::Busy { threads: 1, work: nowhere }).map_or_else(|_| Ok(()), |_| Err("it has a directory".into()))
}

fn commands(link: &Link) -> Result<()> {
    let spec = ExecSpec {
        env: vec![("GREETING".into(), "hello".into())],
        directory: Some("/".into()),
        ..ExecSpec::new(&["sh", "-c", "echo $GREETING; echo oops >&2; exit 3"], Duration::from_secs(10), 100)
    };
    ask(link, Request::Exec(spec))?;
    ask(link, Request::Cancel)?;
    Ok(())
}

/// A command that is left running, and memory beside it.
fn started(link: &Link) -> Result<()> {
    let spec = ExecSpec::new(&["sh", "-c", "echo listening; exec sleep 100"], Duration::from_secs(10), 100);
    let Reply::Started { command, .. } = ask(link, Request::Start(spec))? else { return Err("not started".into()) };
    let (promised_bytes, room_bytes) = (32 << 20, 8 << 20);
    ask(link, Request::Hold(HoldSpec { promised_bytes, room_bytes, fill: GuestMemory::FilledSame, seed: 1 }))?;
    ask(link, Request::Held)?;
    ask(link, Request::Look { command })?;
    ask(link, Request::End { command })?;
    Ok(())
}

/// An application that answers at once, whatever it is asked.
fn java(link: &Link) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let target = listener.local_addr()?;
    let application = std::thread::spawn(move || -> std::io::Result<()> {
        let mut connection = listener.accept()?.0;
        for line in BufReader::new(connection.try_clone()?).lines() {
            let answer = match line?.split(' ').next() {
                Some("hello") => "ready 1 groups=2 live_heap_bytes=50 java=17.0.9 collector=Serial pid=1",
                Some("begin" | "count" | "end") => "count 5",
                Some("stop") => "stopped 5",
                Some("result") => PLAYED_RESULT,
                Some("verify") => "right",
                _ => "ok",
            };
            connection.write_all(format!("{answer}\n").as_bytes())?;
        }
        Ok(())
    });
    let kind = JavaDrive { timeout_ns: 10_000_000_000, ask_every_ns: 5_000_000 };
    let Reply::Prepared { drive } = ask(link, Request::PrepareDrive(Box::new(drive_spec(&kind, target)?)))? else {
        return Err("no driver".into());
    };
    ask(link, Request::StartDrive { drive, start_at_ns: 0 })?;
    application.join().map_err(|_| "the application failed")??;
    Ok(())
}

fn files(link: &Link) -> Result<()> {
    let path = std::env::temp_dir().join(format!("tare-seed-{}", std::process::id())).to_string_lossy().into_owned();
    let put = |offset, bytes: &[u8], last| Request::PutFile {
        path: path.clone(),
        mode: 0o600,
        offset,
        bytes: bytes.to_vec(),
        last,
    };
    ask(link, put(0, b"hello ", false))?;
    ask(link, put(6, b"world", true))?;
    for offset in [0, 11] {
        ask(link, Request::GetFile { path: path.clone(), offset, limit_bytes: 100 })?;
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

fn sampling(link: &Link) -> Result<()> {
    ask(link, Request::StartSampling { guest: "target".into(), interval_ns: 50_000_000 })?;
    std::thread::sleep(Duration::from_millis(120));
    ask(link, Request::StopSampling)?;
    Ok(())
}

fn load(link: &Link) -> Result<()> {
    let (exchange, wait) = (Exchange::TcpRr, Wait::Block);
    let (request_bytes, response_bytes) = (64, 64);
    let socket = SocketOptions::default();
    let serve = SocketServer::Rr { exchange, request_bytes, response_bytes, wait, hold: None, socket: socket.clone() };
    drive(link, &serve, &SocketDrive::Rr { exchange, request_bytes, response_bytes, wait })?;
    let (method, receive) = (SendMethod::Write, ReceiveMethod::Read);
    let (chunk_bytes, window_bytes, direction) = (4096, 65_536, Direction::Both);
    let serve = SocketServer::Stream { method, receive, chunk_bytes, window_bytes, socket };
    drive(link, &serve, &SocketDrive::Stream { direction, method, receive, chunk_bytes, window_bytes })
}

fn drive(link: &Link, server: &SocketServer, kind: &SocketDrive) -> Result<()> {
    let task = Packed::of(server)?;
    let Reply::Serving { server, address } =
        ask(link, Request::Serve { task, bind: IpAddr::V4(Ipv4Addr::LOCALHOST), from: None })?
    else {
        return Err("no server".into());
    };
    let Reply::Prepared { drive } = ask(link, Request::PrepareDrive(Box::new(drive_spec(kind, address)?)))? else {
        return Err("no driver".into());
    };
    ask(link, Request::StartDrive { drive, start_at_ns: 0 })?;
    ask(link, Request::StopServe { server })?;
    Ok(())
}

fn drive_spec<T: Task>(task: &T, target: SocketAddr) -> Result<DriveSpec> {
    let load = LoadModel::Closed { clients: 2, think_time: Span::ZERO };
    let spec = DriveSpec::new(Packed::of(task)?, vec![target], load, Phases::measuring(Span::from_millis(20)));
    Ok(DriveSpec { interval_ns: 10_000_000, ..spec })
}
