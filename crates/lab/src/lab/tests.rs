//! Labs for real, on this host's kernel. They need root.
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;
use crate::is_rootless;

fn config() -> LabConfig {
    LabConfig::new("test-lab")
}

fn root() -> bool {
    let root = !is_rootless();
    if !root {
        eprintln!("SKIPPED: needs root");
    }
    root
}

fn fact(lab: &Lab, name: &str) -> String {
    let facts = lab.facts();
    facts.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name} in {facts:?}")).1.clone()
}

#[test]
fn programs_beside_the_bridge_reach_servers_on_it() {
    if !root() {
        return;
    }
    let lab = Lab::create(config()).unwrap();
    let port = lab.attach("server").unwrap();
    let listener = port.netns.run(|| TcpListener::bind(SocketAddr::new(port.address, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let connect = || lab.sut().run(|| TcpStream::connect_timeout(&to, Duration::from_secs(5))).unwrap();
    assert!(connect().is_err(), "it has no address before it is asked for");
    let own = lab.sut_address().unwrap();
    assert_eq!(lab.sut_address().unwrap(), own);
    assert_eq!(connect().unwrap().local_addr().unwrap().ip(), own);
}

fn carries_a_message(lab: &Lab, port: &Port) -> bool {
    let listener = port.netns.run(|| TcpListener::bind(SocketAddr::new(port.address, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"carried"));
    let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(5));
    let mut text = String::new();
    lab.client().run(connect).unwrap().unwrap().read_to_string(&mut text).unwrap();
    server.join().unwrap().unwrap();
    text == "carried"
}

#[test]
fn the_first_packet_passes_as_soon_as_a_guest_is_attached() {
    if !root() {
        return;
    }
    let lab = Lab::create(config()).unwrap();
    let ports = ["one", "two", "three"].map(|name| lab.attach(name).unwrap());
    for port in &ports {
        assert!(carries_a_message(&lab, port));
        assert_eq!(port.drops().unwrap(), 0);
    }
    assert_eq!(lab.client_address().to_string(), "198.18.0.1");
    assert_eq!(ports.map(|p| p.address.to_string()), ["198.18.1.0", "198.18.1.1", "198.18.1.2"]);
}

#[test]
fn settings_are_those_that_the_kernel_reads_back() {
    if !root() {
        return;
    }
    let wanted = LabConfig { mtu: 9000, offloads: false, congestion_control: Some("reno".into()), ..config() };
    let lab = Lab::create(wanted).unwrap();
    assert_eq!(fact(&lab, "client eth0 mtu"), "9000 B");
    assert_eq!(fact(&lab, "sut tare0 mtu"), "9000 B");
    assert_eq!(fact(&lab, "client eth0 offloads"), "tso off, gso off, gro off");
    assert_eq!(fact(&lab, "sut tare0 offloads"), "tso off, gso off, gro off");
    assert_eq!(fact(&lab, "client net.ipv4.tcp_congestion_control"), "reno");
    let port = lab.attach("guest").unwrap();
    let inside = port.netns.run(|| facts_here("guest", &[GUEST_LINK])).unwrap().unwrap();
    assert!(inside.contains(&("guest eth0 offloads".into(), "tso off, gso off, gro off".into())), "{inside:?}");
    assert!(inside.contains(&("guest eth0 mtu".into(), "9000 B".into())), "{inside:?}");
    assert!(inside.contains(&("guest net.ipv4.tcp_congestion_control".into(), "reno".into())), "{inside:?}");
    assert!(carries_a_message(&lab, &port));

    let lab = Lab::create(config()).unwrap();
    assert!(fact(&lab, "client eth0 offloads").starts_with("tso on, gso on"));
}

#[test]
fn the_links_rate_is_kept_both_ways_and_read_back() {
    if !root() {
        return;
    }
    let rate = BitRate(80_000_000);
    let lab = Lab::create(LabConfig { link_rate: Some(rate), ..config() }).unwrap();
    let row = lab.rate().unwrap();
    assert_eq!((row.equal, row.asked.as_str()), (true, "80Mbit/s each way"), "{row:?}");
    assert_eq!(fact(&lab, "client eth0 rate"), "80Mbit/s");
    let port = lab.attach("guest").unwrap();
    assert!(carries_a_message(&lab, &port));
    // 4 MB take 400 ms at 10 MB/s; unbounded a few.
    for (sender, receiver, at) in
        [(lab.client(), &port.netns, port.address), (&port.netns, lab.client(), lab.client_address())]
    {
        let seconds = transfer_s(sender, receiver, at, 4_000_000);
        assert!(seconds > 0.3, "4 MB in {seconds} s");
    }
    // Changed behind its back.
    lab.sut().run(|| bounded(CLIENT_PORT, BitRate(40_000_000))).unwrap().unwrap();
    let row = lab.rate().unwrap();
    assert_eq!((row.equal, row.granted.as_deref()), (false, Some("to the guests 80Mbit/s, to the driver 40Mbit/s")));
    assert_eq!(fact(&Lab::create(config()).unwrap(), "sut client0 rate"), "not bounded");
}

/// Seconds that so many bytes take from one namespace to an address in another.
fn transfer_s(sender: &NetNs, receiver: &NetNs, at: IpAddr, bytes: usize) -> f64 {
    let listener = receiver.run(|| TcpListener::bind((at, 0))).unwrap().unwrap();
    let target = listener.local_addr().unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = sender.run(|| TcpStream::connect(target)).unwrap().unwrap();
            stream.write_all(&vec![0; bytes]).unwrap();
        });
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), bytes);
    });
    begun.elapsed().as_secs_f64()
}

#[test]
fn each_side_receives_on_cpus_of_its_own_and_what_is_in_force_is_read_back() {
    if !root() {
        return;
    }
    let lab = Lab::create(LabConfig { guest_cpus: vec![0], client_cpus: vec![1], ..config() }).unwrap();
    let row = lab.steering().unwrap();
    if !row.equal {
        eprintln!("SKIPPED: RPS cannot be set here: {row:?}");
        return;
    }
    assert_eq!(row.granted.as_deref(), Some("guests' side cpus 0, driver's side cpus 1"));
    assert_eq!(fact(&lab, "sut client0 received on"), "cpus 0");
    let port = lab.attach("guest").unwrap();
    assert!(carries_a_message(&lab, &port));
    // Changed behind its back.
    lab.sut().run(|| steer::mount_sysfs_here().and_then(|()| steer::set(CLIENT_PORT, &[]))).unwrap().unwrap();
    let row = lab.steering().unwrap();
    assert_eq!(
        (row.equal, row.granted.as_deref()),
        (false, Some("guests' side the sender's CPU, driver's side cpus 1"))
    );
    let plain = Lab::create(config()).unwrap();
    assert_eq!((plain.steering(), fact(&plain, "client eth0 received on").as_str()), (None, "the sender's CPU"));
}

/// On which CPU a guest received a datagram that the client sent from another one.
fn received_on(lab: &Lab, sender: u32) -> u32 {
    let port = lab.attach("guest").unwrap();
    let inside = port.netns.run(|| UdpSocket::bind((port.address, 0))).unwrap().unwrap();
    let outside = lab.client().run(|| UdpSocket::bind((lab.client_address(), 0))).unwrap().unwrap();
    // The kernel notes the CPU for connected sockets only.
    inside.connect(outside.local_addr().unwrap()).unwrap();
    outside.connect(inside.local_addr().unwrap()).unwrap();
    inside.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // The first one waits for an answer of ARP and leaves on the CPU that received it.
    for _ in 0..2 {
        let send = || {
            crate::set_affinity(None, &[sender]).unwrap();
            outside.send(b"x")
        };
        lab.client().run(send).unwrap().unwrap();
        inside.recv(&mut [0]).unwrap();
    }
    rustix::net::sockopt::socket_incoming_cpu(&inside).unwrap()
}

#[test]
fn what_a_guest_receives_runs_on_its_sides_cpu_and_without_steering_on_the_senders() {
    if !root() {
        return;
    }
    let steered = Lab::create(LabConfig { guest_cpus: vec![0], client_cpus: vec![1], ..config() }).unwrap();
    if !steered.steering().unwrap().equal {
        eprintln!("SKIPPED: RPS cannot be set here: {:?}", steered.steering());
        return;
    }
    assert_eq!(received_on(&steered, 1), 0);
    assert_eq!(received_on(&Lab::create(config()).unwrap(), 1), 1);
}

#[test]
fn an_unknown_congestion_control_is_refused_with_those_there_are() {
    if !root() {
        return;
    }
    for name in ["nonesuch", "../../x", ""] {
        let error = Lab::create(LabConfig { congestion_control: Some(name.into()), ..config() }).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("`{name}`")) && text.contains("available here: ") && text.contains("reno"),
            "{text}"
        );
    }
}

#[test]
fn an_impossible_mtu_is_the_kernels_to_refuse() {
    if !root() {
        return;
    }
    let error = Lab::create(LabConfig { mtu: 10, ..config() }).unwrap_err();
    assert!(error.to_string().contains("make the lab's bridge"), "{error}");
}

#[test]
fn nothing_leads_out_of_the_lab() {
    if !root() {
        return;
    }
    let lab = Lab::create(config()).unwrap();
    let port = lab.attach("guest").unwrap();
    for netns in [lab.client(), &port.netns] {
        // TEST-NET-3: nobody's address, so even a leak would reach no one.
        let outside = netns.run(|| TcpStream::connect("203.0.113.1:9")).unwrap().unwrap_err();
        assert_eq!(outside.kind(), ErrorKind::NetworkUnreachable);
        let version_6 = netns.run(|| std::fs::read_to_string("/proc/thread-self/net/if_inet6")).unwrap();
        assert_eq!(version_6.unwrap_or_default(), "");
    }
    assert_eq!(fact(&lab, "sut net.ipv4.ip_forward"), "0");
}

#[test]
fn a_detached_guest_is_gone_and_its_name_may_come_back() {
    if !root() {
        return;
    }
    let lab = Lab::create(config()).unwrap();
    let port = lab.attach("guest").unwrap();
    let (link, first) = (port.bridge_end().unwrap().0.to_owned(), port.address);
    let there = |name: &str| {
        lab.sut().run(|| {
            let netlink = Netlink::new().unwrap();
            let links = netlink.open().unwrap();
            netlink.wait(links.find(name)).unwrap().is_some()
        })
    };
    assert!(there(&link).unwrap());
    port.detach().unwrap();
    assert!(!there(&link).unwrap());
    let again = lab.attach("guest").unwrap();
    assert_ne!(again.address, first);
    assert!(carries_a_message(&lab, &again));
    assert!(matches!(lab.attach("../guest"), Err(LabError::Name { .. })));
}

#[test]
fn other_programs_enter_a_namespace_by_its_path() {
    if !root() {
        return;
    }
    let netns = NetNs::create().unwrap();
    let inside = format!("net:[{}]", netns.inode().unwrap());
    let output = Command::new("nsenter")
        .arg(format!("--net={}", netns.path().display()))
        .args(["readlink", "/proc/self/ns/net"])
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: needs nsenter");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), inside);
    assert_ne!(NetNs::current().unwrap().inode().unwrap(), netns.inode().unwrap(), "the caller's thread has moved");
}

#[test]
fn a_tap_is_a_port_of_the_bridge_until_it_is_detached() {
    if !root() {
        return;
    }
    if !std::path::Path::new("/dev/net/tun").exists() {
        eprintln!("SKIPPED: needs /dev/net/tun");
        return;
    }
    let lab = Lab::create(LabConfig { mtu: 9000, ..config() }).unwrap();
    let look = |name: String| {
        lab.sut()
            .run(|| {
                let netlink = Netlink::new().unwrap();
                let links = netlink.open().unwrap();
                netlink.wait(links.find(&name)).unwrap()
            })
            .unwrap()
    };
    for queues in [1, 4] {
        let tap = lab.tap("machine", queues).unwrap();
        let link = look(tap.link().to_owned()).unwrap();
        assert_eq!((link.mtu, link.alias.as_deref()), (9000, Some("tare-test-lab")));
        assert!(link.forwarding.is_some(), "no port of a bridge: {link:?}");
        assert_eq!(tap.drops().unwrap(), 0);
        let name = tap.link().to_owned();
        tap.detach().unwrap();
        assert_eq!(look(name), None);
    }
    assert!(lab.tap("machine", 0).is_err());

    // As another program makes it, elsewhere.
    let outside = NetNs::create().unwrap();
    outside.run(|| crate::sys::make_tap("vnet7", false)).unwrap().unwrap();
    let place = lab.reserve("machine").unwrap();
    let mac = place.mac.clone();
    let adopted = lab.adopt(place, &outside, "vnet7").unwrap();
    assert!(look(adopted.link().to_owned()).unwrap().forwarding.is_some());
    assert!(mac.starts_with("02:74:67:") && mac.len() == 17, "{mac}");
    let error = lab.adopt(lab.reserve("other").unwrap(), &outside, "vnet7").unwrap_err();
    assert!(error.to_string().contains("vnet7"), "{error}");
    adopted.detach().unwrap();
}

/// The kernel tells everybody of a new link under the number of the request that made it, and everybody counts from one.
#[test]
fn nobody_takes_an_answer_to_others_for_its_own() {
    use crate::netlink::Netlink;
    if !root() {
        return;
    }
    let lab = Lab::create(config()).unwrap();
    let (lab, begin) = (&lab, &std::sync::Barrier::new(4));
    let one = |number: u32| {
        lab.sut()
            .run(|| {
                let netlink = Netlink::new().unwrap();
                let links = netlink.open().unwrap();
                let name = format!("own{number}");
                begin.wait();
                for _ in 0..8 {
                    netlink.wait(links.add("add", "bridge", rtnetlink::LinkBridge::new(&name).build())).unwrap();
                    assert_eq!(netlink.wait(links.get(&name)).unwrap().name, name);
                    netlink.wait(links.remove(&name)).unwrap();
                    assert_eq!(netlink.wait(links.find(&name)).unwrap(), None);
                }
            })
            .unwrap();
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|number| drop(scope.spawn(move || one(number))));
    });
}
