//! Users of the social application against whatever answers as `docs/reference/social.md` has it: `bench/social.sh` runs it, and its `serve` is an
//! application that answers from memory.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../../../workloads/social/tests/application.rs"]
mod fake;
#[path = "social/server.rs"]
mod server;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use clap::{Parser, Subcommand};
use tare_driver::social::spec::{Cycle, InstanceDone, Operation, Scale, SocialDrive, stationary};
use tare_driver::{drive, social};
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::{LoadModel, Phases};
use tare_model::packed::Packed;
use tare_model::{Histogram, Span};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Answers from memory, one thread, until it is killed.
    Serve {
        /// Port of 127.0.0.1.
        #[arg(long)]
        port: u16,
        /// Users that the data are for.
        #[arg(long)]
        users: u32,
    },
    /// Drives users.
    Drive(Box<Drive>),
    /// Has users do their operations without a server, and tells what mix and what loads that makes.
    Simulate {
        /// Users.
        #[arg(long, default_value_t = 100)]
        users: u32,
        /// Operations.
        #[arg(long, default_value_t = 1_000_000)]
        operations: u64,
    },
}

#[derive(Parser)]
struct Drive {
    /// Instances of the application.
    #[arg(long, required = true)]
    target: Vec<SocketAddr>,
    /// Users of all of them.
    #[arg(long)]
    users: u32,
    /// Users that the data of each instance were loaded for.
    #[arg(long)]
    scale: u32,
    /// Seed of the data.
    #[arg(long, default_value_t = 5)]
    data_seed: u64,
    /// Number of the drive in the names of what it brings.
    #[arg(long, default_value_t = 1)]
    names: u64,
    /// Seconds in which the users join.
    #[arg(long, default_value_t = 10.0)]
    warm: f64,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 30.0)]
    duration: f64,
    /// Mean of the cycle times, seconds.
    #[arg(long, default_value_t = 5.0)]
    cycle: f64,
    /// Looks at no contents.
    #[arg(long)]
    unchecked: bool,
    /// Threads of the driver.
    #[arg(long, default_value_t = 1)]
    threads: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Cli::parse().what {
        What::Serve { port, users } => server::serve(port, users),
        What::Drive(cli) => {
            let result = drive::run(&spec(&cli)?, &|_| (), &AtomicBool::new(false))?;
            print(&result)?;
            Ok(())
        }
        What::Simulate { users, operations } => {
            simulate(users, operations);
            Ok(())
        }
    }
}

fn drive_of(scale: Scale) -> SocialDrive {
    SocialDrive {
        scale,
        data_seed: 5,
        cycle: Cycle::default(),
        revalidating: 0.6,
        attend: 0.1,
        check: true,
        timeout_ns: 30_000_000_000,
        names: 1,
        threads: 1,
    }
}

fn spec(cli: &Drive) -> Result<DriveSpec, tare_model::packed::PackError> {
    let seconds = |s: f64| Span { ns: (s * 1e9) as u64 };
    let mean_ns = seconds(cli.cycle).ns;
    let least = |s: u64| (s * mean_ns) / 5;
    let cycle = Cycle { mean_ns, most_ns: 5 * mean_ns, add_person_ns: least(2), add_event_ns: least(3) };
    let drive = SocialDrive {
        data_seed: cli.data_seed,
        cycle,
        check: !cli.unchecked,
        names: cli.names,
        threads: cli.threads,
        ..drive_of(Scale::of(cli.scale))
    };
    let load = LoadModel::Closed { clients: cli.users, think_time: Span::ZERO };
    let phases = Phases { warm_up: seconds(cli.warm), ..Phases::measuring(seconds(cli.duration)) };
    let spec = DriveSpec::new(Packed::of(&drive)?, cli.target.clone(), load, phases);
    Ok(DriveSpec { seed: cli.names, interval_ns: 1_000_000_000, ..spec })
}

fn at(times: &Histogram, q: f64, unit_ns: f64) -> f64 {
    times.quantile(q).map_or(0.0, |ns| ns / unit_ns)
}

fn print(result: &DriveResult) -> Result<(), Box<dyn std::error::Error>> {
    let seconds = (result.steady_end_ns - result.steady_start_ns) as f64 / 1e9;
    let done = result.outcome::<SocialDrive>()?;
    let requests: u64 = done.instances.iter().map(|one| one.requests).sum();
    let us = |ns: u64| ns as f64 / 1e3 / requests.max(1) as f64;
    let (late, response) = (&result.lateness, &result.response);
    println!(
        "{{\"rate\":{:.1},\"operations\":{},\"requests\":{requests},\"requests_each\":{:.2},\"bytes_each\":{:.0},\"user_us\":{:.2},\
         \"system_us\":{:.2},\"cpu\":{:.3},\"response_p50_ms\":{:.2},\"response_p90_ms\":{:.2},\"response_p99_ms\":{:.2},\
         \"late_p50_us\":{:.1},\"late_p99_us\":{:.1},\"late_max_us\":{:.1},\"run_delay_s\":{:.3},\"user_bytes\":{},\"connections\":{},\"faults\":{:?},\
         \"errors\":{:?}}}",
        result.operations as f64 / seconds,
        result.operations,
        requests as f64 / result.operations.max(1) as f64,
        result.bytes_from_guest as f64 / result.operations.max(1) as f64,
        us(result.cpu_user_ns),
        us(result.cpu_system_ns),
        (result.cpu_user_ns + result.cpu_system_ns) as f64 / 1e9 / seconds,
        at(response, 0.5, 1e6),
        at(response, 0.9, 1e6),
        at(response, 0.99, 1e6),
        at(late, 0.5, 1e3),
        at(late, 0.99, 1e3),
        late.max as f64 / 1e3,
        result.run_delay_ns.unwrap_or(0) as f64 / 1e9,
        done.memory_per_user_bytes,
        done.connections,
        done.faults,
        result.errors,
    );
    for (number, one) in (1..).zip(&done.instances) {
        instance(number, one, seconds);
    }
    Ok(())
}

fn instance(number: u32, one: &InstanceDone, seconds: f64) {
    let all: u64 = one.operations.iter().map(|kind| kind.requests).sum();
    let each = |sum: u64, pages: u64| sum as f64 / pages.max(1) as f64;
    println!(
        "# instance {number}: {} users, {:.2} operations/s, users / (operations/s) {:.3}",
        one.users,
        all as f64 / seconds,
        f64::from(one.users) * seconds / all.max(1) as f64
    );
    for (kind, operation) in one.operations.iter().zip(Operation::ALL) {
        println!(
            "#   {:<14} {:>7} {:6.2} % of {:6.2} %  p50 {:9.2} ms  p90 {:9.2} ms (limit {:4.0} s)  failed {}  wrong {}",
            kind.name,
            kind.requests,
            100.0 * kind.requests as f64 / all.max(1) as f64,
            100.0 * kind.target.unwrap_or_default(),
            at(&kind.times, 0.5, 1e6),
            at(&kind.times, 0.9, 1e6),
            operation.limit_s(),
            kind.failed,
            kind.validation_errors,
        );
    }
    let (count, drawn, was) = one.cycles;
    println!("#   cycle {:.4} s drawn, {:.4} s as it was", drawn / count.max(1) as f64, was / count.max(1) as f64);
    println!(
        "#   home: {:.2} references, {:.2} loaded, {:.0} bytes; event: {:.2} loaded; attended in {:.2} % of views; not modified {:.1} % \
         of requests",
        each(one.home.references, one.home.pages),
        each(one.home.loaded, one.home.pages),
        each(one.home.bytes, one.home.pages),
        each(one.event.loaded, one.event.pages),
        100.0 * each(one.attended, one.event.pages),
        100.0 * each(one.not_modified, one.requests),
    );
    println!("#   added {:?}, in doubt {:?}", one.added, one.in_doubt);
}

fn simulate(users: u32, operations: u64) {
    let seen = social::simulate(&drive_of(Scale::of(users)), users, operations, 1);
    for ((operation, count), target) in Operation::ALL.iter().zip(seen.operations).zip(stationary()) {
        let share = 100.0 * count as f64 / seen.total() as f64;
        println!("{:<14} {share:8.3} % of {:8.3} %", operation.name(), 100.0 * target);
    }
    let total = seen.total() as f64;
    let each = |sum: u64, pages: u64| sum as f64 / pages.max(1) as f64;
    println!(
        "cycle {:.4} s, {:.2} requests ({:.2} for a change), {:.0} bytes of files an operation",
        seen.cycles_ns as f64 / total / 1e9,
        seen.requests as f64 / total,
        seen.unchanged as f64 / total,
        seen.file_bytes as f64 / total
    );
    println!(
        "home: {:.3} pictures loaded, {:.0} bytes; event: {:.3} loaded; attended in {:.2} % of views; {:.0} bytes a user",
        each(seen.home.loaded, seen.home.pages),
        each(seen.home.bytes, seen.home.pages),
        each(seen.event.loaded, seen.event.pages),
        100.0 * each(seen.attended.0, seen.event.pages),
        seen.member_bytes
    );
}
