//! The guest's network card: what may be set about it, what of that this host has.

use std::net::IpAddr;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_image::Kernel;
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::study::Attach;

use super::vfio;
use crate::machine::kernel;
use crate::numbered::{for_guest, for_number};
use crate::options::Switch;

/// The network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Network {
    /// Whether the host's kernel moves the frames (vhost-net), not QEMU: `auto` where there is `/dev/vhost-net`.
    pub vhost: Switch,
    /// Pairs of queues.
    pub queues: u32,
    /// Whether frames beyond the MTU may pass (checksums are left to the card in any case). Left out: as in the lab.
    pub offloads: Option<bool>,
    /// Frames that wait to be received: a power of two from 256 to 1024. Left out: QEMU's own choice.
    pub rx_queue_size: Option<u16>,
    /// Frames that wait to be sent: 256, or up to 1024 with vhost. Left out: QEMU's own choice.
    pub tx_queue_size: Option<u16>,
    /// How QEMU coalesces what is sent: `bh` sends at its next turn, `timer` waits for more. Without vhost only.
    pub tx: Option<Transmit>,
    /// How long `timer` waits, nanoseconds. Left out: 150000.
    pub tx_timer_ns: Option<u32>,
    /// Frames that are sent in one turn at most. Left out: 256.
    pub tx_burst: Option<u32>,
    /// A network device of the host's that is passed through in place of a virtual one.
    pub vfio: Option<Vfio>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            vhost: Switch::Auto,
            queues: 1,
            offloads: None,
            rx_queue_size: None,
            tx_queue_size: None,
            tx: None,
            tx_timer_ns: None,
            tx_burst: None,
            vfio: None,
        }
    }
}

/// How QEMU sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Transmit {
    /// At the next turn of its loop.
    Bh,
    /// When a timer has run down.
    Timer,
}

/// A device of the host's that is passed through (SR-IOV or a whole card). The guest is then on the network of that
/// device and not on the lab's. In each of the three `{guest}` stands for the guest's number in its trial (1, 2, ..), so that
/// several guests have one each: functions of one card differ in their last digit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Vfio {
    /// Its PCI address, such as `0000:01:00.1`. It must be bound to `vfio-pci`.
    pub device: String,
    /// Its hardware address, by which the guest finds it, such as `02:00:00:00:00:01`.
    pub mac: String,
    /// The guest's address on that network, such as `192.0.2.7/24`.
    pub address: String,
}

impl Vfio {
    /// That of the guest with this number.
    pub(super) fn of(&self, number: u32) -> Self {
        let [device, mac, address] = [&self.device, &self.mac, &self.address].map(|text| for_number(text, number));
        Self { device, mac, address }
    }

    /// That of the guest with this name.
    pub(super) fn of_guest(&self, guest: &str) -> Self {
        let [device, mac, address] = [&self.device, &self.mac, &self.address].map(|text| for_guest(text, guest));
        Self { device, mac, address }
    }

    /// The address and the length of its prefix.
    pub(super) fn place(&self) -> Option<(IpAddr, u8)> {
        let (address, prefix) = self.address.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, prefix))
    }

    /// The modules that drive it in a guest with this kernel.
    pub(super) fn drivers(&self, kernel: &Kernel, sys: &Path) -> Result<Vec<String>, Refusal> {
        let path = sys.join("bus/pci/devices").join(&self.device).join("modalias");
        let modalias = std::fs::read_to_string(&path).map_err(|error| {
            Refusal::new(format!("{}: {error}", path.display()), "Check the address: `lspci -D` lists the devices")
        })?;
        kernel.drivers(modalias.trim()).map_err(Into::into)
    }

    /// What is missing on this host for it, looked up in a tree like `/sys`.
    pub(super) fn usable(&self, sys: &Path) -> Result<(), Refusal> {
        let device = sys.join("bus/pci/devices").join(&self.device);
        if !device.exists() {
            let remedy = "`lspci -D` lists the devices; functions of SR-IOV are made through sriov_numvfs";
            return Err(Refusal::new(format!("there is no PCI device {}", self.device), remedy));
        }
        let group = std::fs::read_link(device.join("iommu_group")).map_err(|_| {
            let remedy = "Switch the IOMMU on, in the firmware and by the kernel's words (intel_iommu=on)";
            Refusal::new(format!("the device {} is in no IOMMU group", self.device), remedy)
        })?;
        let driver = std::fs::read_link(device.join("driver")).unwrap_or_default();
        let driver = driver.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if driver != "vfio-pci" {
            let bound = if driver.is_empty() { "no driver".to_owned() } else { format!("the driver {driver}") };
            let remedy = format!(
                "Load the driver with `modprobe vfio-pci`; `driverctl set-override {} vfio-pci` binds it",
                self.device
            );
            return Err(Refusal::new(
                format!("the device {} is bound to {bound}, not to vfio-pci", self.device),
                remedy,
            ));
        }
        let group = group.file_name().unwrap_or_default().to_string_lossy();
        vfio::hands_over(&self.device, &group, sys)
    }
}

impl Network {
    /// Checks what is written.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        let refuse = |key: &str, why: &str, help: &str| Err(FieldError::new(&["network", key], why).help(help));
        if !(1..=64).contains(&self.queues) {
            return refuse("queues", "a card has 1 to 64 pairs of queues here", "write 1, or as many as virtual CPUs");
        }
        let size = |size: Option<u16>| size.is_none_or(|n| n.is_power_of_two() && (256..=1024).contains(&n));
        if !size(self.rx_queue_size) {
            return refuse("rx-queue-size", "it is no power of two from 256 to 1024", "write 256, 512 or 1024");
        }
        if !size(self.tx_queue_size) {
            return refuse("tx-queue-size", "it is no power of two from 256 to 1024", "write 256, 512 or 1024");
        }
        if self.tx_queue_size.is_some_and(|n| n > 256) && self.vhost != Switch::On {
            return refuse("tx-queue-size", "QEMU itself sends from queues of 256 only", "write vhost = \"on\" too");
        }
        let coalesces = self.tx.is_some() || self.tx_timer_ns.is_some() || self.tx_burst.is_some();
        if coalesces && self.vhost != Switch::Off {
            return refuse("tx", "only QEMU coalesces so, not the host's kernel", "write vhost = \"off\" too");
        }
        if self.tx_timer_ns.is_some() && self.tx != Some(Transmit::Timer) {
            return refuse("tx-timer-ns", "there is no timer to set", "write tx = \"timer\" too");
        }
        let Some(vfio) = self.vfio.as_ref().map(|vfio| vfio.of(1)) else { return Ok(()) };
        if !is_pci_address(&vfio.device) {
            return refuse("vfio", &format!("{:?} is no PCI address", vfio.device), "write it as 0000:01:00.1");
        }
        if !is_mac(&vfio.mac) {
            return refuse("vfio", &format!("{:?} is no hardware address", vfio.mac), "write it as 02:00:00:00:00:01");
        }
        if vfio.place().is_none() {
            return refuse("vfio", &format!("{:?} is no address with a prefix", vfio.address), "write 192.0.2.7/24");
        }
        Ok(())
    }

    /// Whether vhost moves the frames here, or why it was asked for in vain.
    pub(super) fn vhost(&self) -> Result<bool, Refusal> {
        if self.vhost == Switch::Off || self.vfio.is_some() {
            return Ok(false);
        }
        match (kernel::vhost(), self.vhost) {
            (Ok(()), _) => Ok(true),
            (Err(_), Switch::Auto | Switch::Off) => Ok(false),
            (Err(Refusal { reason, remedy }), Switch::On) => {
                Err(Refusal::new(reason, format!("{remedy}; or write network.vhost = \"auto\"")))
            }
        }
    }

    /// Why QEMU moves the frames where the choice is left to the host, and the remedy.
    pub(super) fn moved_by_qemu(&self) -> Option<Refusal> {
        if self.vhost == Switch::Auto { kernel::vhost().err() } else { None }
    }

    /// What is missing on this host for the card. `kernel` is the guests', where it is not an image's own.
    pub(super) fn usable(&self, kernel: Option<&Kernel>) -> Result<(), Refusal> {
        if let Some(vfio) = self.vfio.as_ref().map(|vfio| vfio.of(1)) {
            vfio.usable(Path::new("/sys"))?;
            return kernel.map_or(Ok(()), |kernel| vfio.drivers(kernel, Path::new("/sys")).map(drop));
        }
        kernel::tun()?;
        self.vhost().map(drop)
    }

    /// Why the card cannot be attached so, and the remedy.
    pub(super) fn attach_refusal(&self, attach: Attach) -> Option<Refusal> {
        (attach == Attach::Macvlan && self.queues > 1).then(|| {
            Refusal::new(
                "a macvtap is opened with one pair of queues",
                "leave `network.queues` out of its options, or write `attach = \"bridge\"` in `wire` of `[lab]`",
            )
        })
    }

    /// QEMU's words for the card. `tap` is how QEMU comes by the tap, `bus` the end of the devices' names.
    pub(super) fn words(
        &self,
        tap: &str,
        mac: &str,
        mtu: u32,
        lab_offloads: bool,
        vhost: bool,
        bus: &str,
    ) -> Vec<String> {
        let several = self.queues > 1;
        let mut backend = format!("tap,id=net,{tap},vhost={}", on(vhost));
        let mut card = format!("virtio-net-{bus},netdev=net,mac={mac},host_mtu={mtu}");
        if several {
            backend.push_str(&format!(",queues={}", self.queues));
            card.push_str(",mq=on");
            if bus == "pci" {
                // One vector each for sending and receiving, one for the configuration, one for the control queue.
                card.push_str(&format!(",vectors={}", 2 * self.queues + 2));
            }
        }
        if !self.offloads.unwrap_or(lab_offloads) {
            for feature in
                ["guest_tso4", "guest_tso6", "guest_ufo", "guest_ecn", "host_tso4", "host_tso6", "host_ufo", "host_ecn"]
            {
                card.push_str(&format!(",{feature}=off"));
            }
        }
        let numbers = [
            ("rx_queue_size", self.rx_queue_size.map(u32::from)),
            ("tx_queue_size", self.tx_queue_size.map(u32::from)),
            ("x-txtimer", self.tx_timer_ns),
            ("x-txburst", self.tx_burst),
        ];
        for (name, number) in numbers.iter().filter_map(|(name, number)| Some((name, (*number)?))) {
            card.push_str(&format!(",{name}={number}"));
        }
        if let Some(tx) = self.tx {
            card.push_str(if tx == Transmit::Timer { ",tx=timer" } else { ",tx=bh" });
        }
        ["-netdev", &backend, "-device", &card].map(str::to_owned).to_vec()
    }
}

pub(super) const fn on(yes: bool) -> &'static str {
    if yes { "on" } else { "off" }
}

fn is_pci_address(text: &str) -> bool {
    let hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let Some((domain, [bus, rest])) =
        text.split_once(':').map(|(d, r)| (d, r.split_once(':').map_or(["", ""], |p| [p.0, p.1])))
    else {
        return false;
    };
    let Some((slot, function)) = rest.split_once('.') else { return false };
    hex(domain, 4) && hex(bus, 2) && hex(slot, 2) && hex(function, 1)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6 && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn vfio() -> Vfio {
        Vfio { device: "0000:01:00.1".into(), mac: "02:00:00:00:00:01".into(), address: "192.0.2.7/24".into() }
    }

    #[test]
    fn a_device_is_passed_through_only_when_it_is_there_and_bound() {
        let sys = tempfile::tempdir().unwrap();
        let said = |sys: &Path| vfio().usable(sys).unwrap_err().reason;
        assert!(said(sys.path()).contains("no PCI device"), "{}", said(sys.path()));
        let device = sys.path().join("bus/pci/devices/0000:01:00.1");
        std::fs::create_dir_all(&device).unwrap();
        assert!(said(sys.path()).contains("IOMMU"));
        symlink("../../kernel/iommu_groups/77777", device.join("iommu_group")).unwrap();
        assert!(said(sys.path()).contains("no driver"));
        symlink("../../bus/pci/drivers/ixgbevf", device.join("driver")).unwrap();
        assert!(said(sys.path()).contains("ixgbevf"));
        std::fs::remove_file(device.join("driver")).unwrap();
        symlink("../../bus/pci/drivers/vfio-pci", device.join("driver")).unwrap();
        assert!(said(sys.path()).contains("/dev/vfio/77777"), "{}", said(sys.path()));
    }

    #[test]
    fn what_is_no_card_is_refused() {
        let wrong = |network: Network| network.check().unwrap_err().path.join(".");
        let with = |vfio| Network { vfio: Some(vfio), ..Network::default() };
        assert!(with(vfio()).check().is_ok());
        let each = Vfio {
            device: "0000:01:00.{guest}".into(),
            mac: "02:00:00:00:00:0{guest}".into(),
            address: "192.0.2.{guest}/24".into(),
        };
        assert!(with(each.clone()).check().is_ok());
        let third =
            Vfio { device: "0000:01:00.3".into(), mac: "02:00:00:00:00:03".into(), address: "192.0.2.3/24".into() };
        assert_eq!(each.of_guest("t7x2"), third);
        assert_eq!(wrong(with(Vfio { device: "01:00.1".into(), ..vfio() })), "network.vfio");
        assert_eq!(wrong(with(Vfio { device: "0000:01:00.1,x=y".into(), ..vfio() })), "network.vfio");
        assert_eq!(wrong(with(Vfio { mac: "02".into(), ..vfio() })), "network.vfio");
        assert_eq!(wrong(with(Vfio { address: "192.0.2.7/33".into(), ..vfio() })), "network.vfio");
        assert_eq!(wrong(Network { queues: 0, ..Network::default() }), "network.queues");
        assert_eq!(wrong(Network { rx_queue_size: Some(300), ..Network::default() }), "network.rx-queue-size");
        assert_eq!(wrong(Network { tx_queue_size: Some(1024), ..Network::default() }), "network.tx-queue-size");
        assert_eq!(wrong(Network { tx: Some(Transmit::Timer), ..Network::default() }), "network.tx");
        let timer = Network { tx_timer_ns: Some(1), vhost: Switch::Off, ..Network::default() };
        assert_eq!(wrong(timer), "network.tx-timer-ns");
    }

    #[test]
    fn options_of_the_card_reach_it() {
        let network = Network {
            queues: 2,
            tx: Some(Transmit::Timer),
            tx_timer_ns: Some(50_000),
            vhost: Switch::Off,
            rx_queue_size: Some(512),
            ..Network::default()
        };
        let words = network.words("ifname=p3", "02:00:00:00:00:01", 9000, false, false, "pci").join(" ");
        for word in [
            "queues=2",
            "mq=on,vectors=6",
            "tx=timer",
            "x-txtimer=50000",
            "rx_queue_size=512",
            "host_mtu=9000",
            "host_tso4=off",
        ] {
            assert!(words.contains(word), "{word}: {words}");
        }
        let words = Network::default().words("fd=100", "m", 1500, true, true, "device").join(" ");
        assert!(words.contains("fd=100,vhost=on") && !words.contains("off,") && !words.contains("mq"), "{words}");
        assert!(network.attach_refusal(Attach::Macvlan).is_some_and(|refusal| refusal.remedy.contains("queues")));
        assert_eq!(
            [network.attach_refusal(Attach::Bridge), Network::default().attach_refusal(Attach::Macvlan)],
            [None, None]
        );
    }
}
