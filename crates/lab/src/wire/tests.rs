//! Labs on a wire for real: a link between two namespaces, of which one is the host that carries the lab. They need root.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use rtnetlink::LinkVeth;

use super::*;
use crate::netlink::Netlink;
use crate::netns::scratch;
use crate::{Lab, LabConfig, Port};

/// The card of the host that carries the lab.
const CARD: &str = "card0";
const HOST: &str = "203.0.113.9";
const OTHER: &str = "203.0.113.1";

/// Another host on the wire.
struct Beside(NetNs);

impl Beside {
    fn connects(&self, to: SocketAddr) -> bool {
        self.0.run(|| TcpStream::connect_timeout(&to, Duration::from_millis(500)).is_ok()).unwrap()
    }

    /// Whether it connects in the end: other tests may keep the host busy.
    fn comes_to(&self, to: SocketAddr) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if self.connects(to) {
                return true;
            }
        }
        false
    }

    /// What the first who listens there says.
    fn hears(&self, to: SocketAddr) -> String {
        let mut text = String::new();
        let mut stream = self.0.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(5))).unwrap().unwrap();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

fn give(links: &Links, netlink: &Netlink, name: &str, address: &str) {
    netlink
        .wait(async {
            let link = links.get(name).await?;
            links.address(link.index, address.parse().unwrap(), 24).await?;
            links.up(name).await
        })
        .unwrap();
}

/// Runs `test` on a host of its own with a card on a wire, at whose other end is another host.
fn on_a_wire(test: impl FnOnce(&Beside) + Send) {
    if is_rootless() {
        eprintln!("SKIPPED: needs root");
        return;
    }
    scratch("wire-test", || {
        let beside = NetNs::create().unwrap();
        let netlink = Netlink::new().unwrap();
        NetNs::unshare_here().unwrap();
        let here = netlink.open().unwrap();
        let inner = LinkUnspec::new_with_name("eth0").setns_by_fd(beside.fd().as_raw_fd()).build();
        let veth = LinkVeth::new(CARD, "eth0").set_info_data(rtnetlink::packet_route::link::InfoData::Veth(
            rtnetlink::packet_route::link::InfoVeth::Peer(inner),
        ));
        netlink.wait(here.add("make a wire", "veth", veth.build())).unwrap();
        give(&here, &netlink, CARD, HOST);
        beside
            .run(|| {
                let netlink = Netlink::new().unwrap();
                give(&netlink.open().unwrap(), &netlink, "eth0", OTHER);
            })
            .unwrap();
        test(&Beside(beside));
    })
    .unwrap();
}

fn config(addresses: &str) -> LabConfig {
    let addresses = addresses.parse().unwrap();
    let wire = Some(Wire { interface: CARD.into(), addresses, attach: Attach::Bridge, cuts_off_host: false });
    LabConfig { wire, ..LabConfig::new("test-wire") }
}

/// The same with guests attached to the card itself.
fn direct(addresses: &str) -> LabConfig {
    let config = config(addresses);
    let wire = config.wire.map(|wire| Wire { attach: Attach::Macvlan, ..wire });
    LabConfig { wire, ..config }
}

/// Has a guest say something to whoever asks it.
fn answers(port: &Port, ask: impl FnOnce(SocketAddr) -> String) {
    let server = port.netns.run(|| TcpListener::bind((port.address, 0))).unwrap().unwrap();
    let to = server.local_addr().unwrap();
    let answers = std::thread::spawn(move || server.accept().unwrap().0.write_all(b"from a guest").unwrap());
    assert_eq!(ask(to), "from a guest");
    answers.join().unwrap();
}

/// What `ip -d` says of links here, without counts.
fn links(words: &[&str]) -> String {
    let ran = std::process::Command::new("ip").args(["-d", "-o", "link", "show"]).args(words).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

const RANGE: &str = "203.0.113.100-203.0.113.105/24";

fn refusal(config: LabConfig) -> String {
    match Lab::create(config) {
        Ok(_) => panic!("it was made"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn guests_are_reached_from_beside_and_the_card_serves_its_host_again_afterwards() {
    on_a_wire(|beside| {
        let listener = TcpListener::bind((HOST, 0)).unwrap();
        let at_host = listener.local_addr().unwrap();
        assert!(beside.comes_to(at_host));
        let lab = Lab::create(config(RANGE)).unwrap();
        assert_eq!(lab.client_address().to_string(), "203.0.113.100");
        let guests = ["one", "two"].map(|name| lab.attach(name).unwrap());
        assert_eq!(guests.each_ref().map(|port| port.address.to_string()), ["203.0.113.102", "203.0.113.103"]);
        for port in &guests {
            answers(port, |to| beside.hears(to));
        }
        assert!(lab.facts().iter().any(|(name, _)| name == "sut wire0 mtu"), "{:?}", lab.facts());
        assert!(!beside.connects(at_host), "the card's frames are the lab's");
        // A second lab finds the card taken.
        let taken = refusal(config("203.0.113.110-203.0.113.115/24"));
        assert!(taken.contains("macvlan over card0"), "{taken}");
        drop((guests, lab));
        assert!(beside.comes_to(at_host), "the host is not reached again");
    });
}

#[test]
fn guests_over_a_card_reach_each_other_and_the_wire_and_the_host_keeps_the_card() {
    on_a_wire(|beside| {
        let before = links(&["dev", CARD]);
        let listener = TcpListener::bind((HOST, 0)).unwrap();
        let at_host = listener.local_addr().unwrap();
        assert!(beside.comes_to(at_host));
        let lab = Lab::create(direct(RANGE)).unwrap();
        let port = lab.attach("one").unwrap();
        answers(&port, |to| beside.hears(to));
        let client = Beside(lab.client().try_clone().unwrap());
        answers(&port, |to| client.hears(to));
        let programs = Beside(lab.sut().try_clone().unwrap());
        assert_eq!(lab.sut_address().unwrap().to_string(), "203.0.113.101");
        answers(&port, |to| programs.hears(to));
        assert!(beside.comes_to(at_host), "the host has lost its card");
        let own = port.netns.run(|| links(&["dev", "eth0"])).unwrap();
        assert!(own.contains("macvlan mode bridge") && own.contains("02:74:67:"), "{own}");
        assert!(port.bridge_end().is_none() && port.drops().is_ok());
        let facts = lab.facts();
        let fact = |name: &str| facts.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!([fact("card driver"), fact("card mtu (b)")], [Some("veth 1.0"), Some("1500")], "{facts:?}");
        assert_eq!(fact("client eth0 mtu"), Some("1500 B"), "{facts:?}");
        // Another lab may be on the card too; on its bridge it would need all of it.
        drop(Lab::create(direct("203.0.113.110-203.0.113.112/24")).unwrap());
        let taken = refusal(config("203.0.113.110-203.0.113.115/24"));
        assert!(taken.contains("macvlan over card0"), "{taken}");
        let netns = port.netns.try_clone().unwrap();
        port.detach().unwrap();
        assert_eq!(netns.run(|| links(&["dev", "eth0"])).unwrap(), "");
        drop((lab, client, programs));
        let began = Instant::now();
        while links(&["dev", CARD]) != before && began.elapsed() < GONE_WITHIN {}
        assert_eq!(links(&["dev", CARD]), before);
        let why = refusal(direct("203.0.113.5-203.0.113.12/24"));
        assert!(why.contains("203.0.113.9 is this host's own"), "{why}");
        let why = refusal(LabConfig { offloads: false, ..direct(RANGE) });
        assert!(why.contains("always segments"), "{why}");
    });
}

#[test]
fn a_machine_over_a_card_has_a_macvtap_that_hears_the_wire() {
    on_a_wire(|beside| {
        let lab = Lab::create(LabConfig { guest_cpus: vec![0], client_cpus: vec![1], ..direct(RANGE) }).unwrap();
        assert_eq!(lab.steering().unwrap().granted.as_deref(), Some("the CPUs of the card's interrupts"));
        let tap = match lab.tap("machine", 1) {
            Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => {
                eprintln!("SKIPPED: this kernel has no macvtap");
                return;
            }
            made => made.unwrap(),
        };
        let of_sut = || lab.sut().run(|| links(&[])).unwrap();
        assert!(of_sut().contains("macvtap mode bridge") && of_sut().contains(&tap.place().mac), "{}", of_sut());
        let path = tap.device().unwrap();
        let mut device = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let to = SocketAddr::new(tap.place().address, 9);
        let asks = beside.0.run(|| UdpSocket::bind((OTHER, 0)).and_then(|socket| socket.send_to(b"x", to))).unwrap();
        assert_eq!(asks.unwrap(), 1);
        // The question who has the guest's address, behind a virtio header.
        let mut frame = [0; 2048];
        loop {
            let read = device.read(&mut frame).unwrap();
            let asked: Vec<u8> = match tap.place().address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(_) => panic!("{to}"),
            };
            if frame[..read].windows(2).any(|bytes| bytes == [0x08, 0x06])
                && frame[..read].windows(4).any(|bytes| bytes == asked)
            {
                break;
            }
        }
        assert!(tap.drops().is_ok());
        drop(device);
        let error = lab.adopt(lab.reserve("other").unwrap(), &NetNs::create().unwrap(), "vnet7").unwrap_err();
        assert!(error.to_string().contains("attach = \"bridge\""), "{error}");
        tap.detach().unwrap();
        assert!(!of_sut().contains("macvtap"), "{}", of_sut());
    });
}

#[test]
fn an_address_that_somebody_has_is_found_before_a_guest_gets_it() {
    on_a_wire(|beside| {
        beside
            .0
            .run(|| {
                let netlink = Netlink::new().unwrap();
                give(&netlink.open().unwrap(), &netlink, "eth0", "203.0.113.104");
            })
            .unwrap();
        let why = refusal(config(RANGE));
        assert!(why.contains("203.0.113.104 is in use there by "), "{why}");
        Lab::create(config("203.0.113.100-203.0.113.103/24")).unwrap();
    });
}

#[test]
fn a_card_that_cannot_be_had_is_refused_with_the_remedy() {
    on_a_wire(|_| {
        let missing = config(RANGE);
        let wire = missing.wire.clone().map(|wire| Wire { interface: "card7".into(), ..wire });
        let why = refusal(LabConfig { wire, ..missing });
        assert!(why.contains("no such network card"), "{why}");
        let why = refusal(LabConfig { mtu: 9000, ..config(RANGE) });
        assert!(why.contains("MTU is 1500 B") && why.contains("ip link set card0 mtu 9000"), "{why}");
        let run = |words: &[&str]| assert!(std::process::Command::new("ip").args(words).status().unwrap().success());
        run(&["route", "add", "default", "via", OTHER]);
        let why = refusal(config(RANGE));
        assert!(why.contains("default route") && why.contains("cuts-off-host"), "{why}");
        let asked = config(RANGE);
        let wire = asked.wire.clone().map(|wire| Wire { cuts_off_host: true, ..wire });
        Lab::create(LabConfig { wire, ..asked }).unwrap();
        run(&["link", "set", CARD, "down"]);
        let why = refusal(config(RANGE));
        assert!(why.contains("does not work") && why.contains("ip link set card0 up"), "{why}");
    });
}

#[test]
fn what_the_host_needs_a_card_for_is_found() {
    let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                 eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                 eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    assert!(has_default_route(table, "eth0") && !has_default_route(table, "eth1") && !has_default_route("", "eth0"));
    assert_eq!(login_server("203.0.113.5 51234 192.0.2.7 22"), "192.0.2.7".parse().ok());
    assert_eq!(login_server(""), None);
}
