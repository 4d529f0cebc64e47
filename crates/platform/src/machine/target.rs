//! An iSCSI target for one guest: a real one, tgt's, in a namespace of its own on the lab's network. It stands for the
//! storage server that is a machine of its own elsewhere: it has a control group beside the guest's, on the client's
//! CPUs, and is in nobody's account.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tare_image::{IscsiQueue, Kernel};
use tare_lab::Limits;
use tare_model::Refusal;
use tare_wire::launch::{Launch, LaunchUser, Namespace, PrivateMount};

use super::image::Image;
use super::user::{self, Confined};
use super::volume::Part;
use crate::builder::{GuestBuilder, plain_launch};
use crate::error::Result;
use crate::numbered::for_guest;
use crate::program::{self, find};

/// What serves, what tells it, and the package that both are in.
const SERVER: &str = "tgtd";
const ADMIN: &str = "tgtadm";
const REMEDY: &str = "Install it: on Debian and Ubuntu, `apt-get install tgt`";
/// Port of iSCSI (RFC 7143).
const PORT: u16 = 3260;
/// The first logical unit; 0 is the server's own.
const FIRST_LUN: u32 = 1;
/// Most commands of a session that the server takes at one time (`MAX_QUEUE_CMD_MAX` of tgt).
const MOST_COMMANDS: u32 = 512;
/// The server's directory in the guest's own.
const DIRECTORY: &str = "san";
/// Variable by which both programs find their socket, and its name in the server's directory.
const SOCKET_VARIABLE: &str = "TGT_IPC_SOCKET";
const SOCKET: &str = "tgt";
/// Where both programs see the server's directory: every host has the place, and what is served never lies there.
const SEEN: &str = "/tmp";
/// Ends of names of the guests' targets and initiators: names of iSCSI begin with a date and a domain (RFC 3720, 3.2.6.3).
const NAMES: &str = "iqn.2026-01.invalid.tare";
/// How long the server may take until it listens, and one order to it.
const TIMEOUT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What a reader of a report must know about it.
pub(crate) const DISCLOSURE: &str = "The iSCSI target is tgt's, one for each guest, beside it on this host: its CPU time \
     is in no guest's account, its disks are raw files of the host's through the host's page cache, of which it may have as much \
     as is free, and its network is the lab's. It runs as a user of its own without capabilities, in mount, IPC and UTS namespaces of its own.";

/// A logical unit that somebody may log in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Where the target is.
    pub portal: SocketAddr,
    /// Its name.
    pub target: String,
    /// Number of the unit.
    pub lun: u32,
    /// Name of who logs in.
    pub initiator: String,
    /// The queue of the session of a guest that logs in by itself; its initiator's own without.
    pub queue: Option<IscsiQueue>,
}

impl Unit {
    /// As QEMU and its programs take what is below a disk's format.
    pub(crate) fn words(&self) -> String {
        let Self { portal, target, lun, initiator, .. } = self;
        format!(
            "file.driver=iscsi,file.transport=tcp,file.portal={portal},file.target={target},file.lun={lun},\
             file.initiator-name={initiator}"
        )
    }
}

/// Name under which a guest, or its hypervisor, logs in to the user's storage server. It is the same in every trial, so that
/// the server can be configured to accept it.
pub(crate) fn known_initiator(guest: &str) -> String {
    for_guest(&format!("{NAMES}:guest-{{guest}}"), guest)
}

/// Name under which a guest, or its hypervisor, logs in to the lab's target.
pub(crate) fn initiator(guest: &str) -> String {
    format!("{NAMES}:{guest}-initiator")
}

/// What is missing on this host to serve targets, and the remedy.
pub(crate) fn refusal() -> Option<Refusal> {
    let missing = [SERVER, ADMIN].into_iter().find(|name| find(name).is_none())?;
    Some(Refusal::new(format!("the lab's iSCSI target needs {missing}, and it is not here"), REMEDY))
}

/// What is missing on this host for guests that log in by themselves, and the remedy. An image of the user's own is not
/// checked.
pub(crate) fn guest_refusal(image: &Image, kernel: Option<&Path>) -> std::result::Result<(), Refusal> {
    if *image == Image::Host && find("iscsistart").is_none() {
        let reason = "the guest logs in with iscsistart, and the host's root, which is the guest's, has none";
        return Err(Refusal::new(reason, "apt-get install open-iscsi"));
    }
    if image.is_own() {
        return Ok(());
    }
    Ok(Kernel::find(kernel)?.check_iscsi()?)
}

/// The server's name and version.
pub(crate) fn version() -> (String, String) {
    let answer = find(SERVER).and_then(|path| program::run(Command::new(path).arg("--version"), TIMEOUT).ok());
    let answer = answer.and_then(|ran| ran.output.lines().next().map(|line| line.trim().to_owned()));
    (SERVER.to_owned(), answer.unwrap_or_else(|| "not here".into()))
}

/// Serves files to whoever comes from one address, each as a unit of one target. `folder` is the guest's own directory.
///
/// The server is a user of its own without capabilities, and nobody but that user may give it orders. It sees its directory and the files
/// by a way that is open to it; the guest's directories are closed.
pub(crate) fn serve(
    builder: &mut GuestBuilder<'_>,
    folder: &Path,
    files: &[(Part, PathBuf)],
    client: IpAddr,
    queue: Option<IscsiQueue>,
) -> Result<Vec<Unit>> {
    let name = format!("{}-san", builder.spec.name);
    let cpus = builder.site.lab.config().client_cpus.clone();
    let (netns, address) = builder.attach_beside(&name)?;
    let limits = Limits { cpu_set: cpus.clone(), ..Limits::default() };
    let groups = builder.limit_beside(&name, &limits)?;
    let portal = SocketAddr::new(address, PORT);
    let program =
        |name: &str| find(name).ok_or_else(|| builder.failed(&format!("run {name}"), "it is not here".into(), REMEDY));
    let (server, admin) = (program(SERVER)?, program(ADMIN)?);
    let own = user::own(builder.site.run_id, &[]);
    let directory = folder.join(DIRECTORY);
    furnish(&directory, files, &own).map_err(|error| {
        builder.failed(
            "make a directory for an iSCSI target",
            error.to_string(),
            "Is the file system full or read-only?",
        )
    })?;
    let seen = confined(&directory, files, &own);
    let portal_word = format!("portal={portal}");
    let mut launch = spoken(&seen, &[&*server.to_string_lossy(), "-f", "-C", "1", "--iscsi", &portal_word]);
    (launch.cgroup_procs, launch.netns, launch.cpu_set) = (groups, Some(netns), cpus);
    launch.unshare.extend([Namespace::Ipc, Namespace::Uts]);
    let process = builder.beside(&launch)?;
    let target = format!("{NAMES}:{}", builder.spec.name);
    let listening = directory.join(format!("{SOCKET}.1"));
    let parts: Vec<Part> = files.iter().map(|(part, _)| *part).collect();
    for order in orders(&target, client, &parts, queue) {
        let words = [
            vec![admin.to_string_lossy().into_owned(), "-C".into(), "1".into(), "--lld".into(), "iscsi".into()],
            order,
        ];
        let words = words.concat();
        let mut command = builder.entering(&spoken(&seen, &words))?;
        tell(&mut command, &listening, &words.join(" "), TIMEOUT)
            .map_err(|why| builder.failed("serve an iSCSI target", why, "See below what it said"))?;
    }
    user::hold_to(builder, SERVER, process, Confined::new(own.uid, 0, false))?;
    let initiator = initiator(&builder.spec.name);
    let unit = |lun| Unit { portal, target: target.clone(), lun, initiator: initiator.clone(), queue };
    Ok((FIRST_LUN..).zip(files).map(|(lun, _)| unit(lun)).collect())
}

/// Makes the server's directory, and gives the server that and the files.
fn furnish(directory: &Path, files: &[(Part, PathBuf)], own: &LaunchUser) -> std::io::Result<()> {
    std::fs::create_dir(directory)?;
    std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    std::os::unix::fs::lchown(directory, Some(own.uid), Some(own.gid))?;
    for (part, file) in files {
        // The file is shown on this one.
        std::fs::File::create_new(directory.join(part.name()))?;
        std::os::unix::fs::lchown(file, Some(own.uid), Some(own.gid))?;
    }
    Ok(())
}

/// A launch of a program as the server's user, which sees what the server sees.
fn confined(directory: &Path, files: &[(Part, PathBuf)], own: &LaunchUser) -> Launch {
    let mut launch = plain_launch();
    launch.unshare = vec![Namespace::Mount];
    let shown = |(part, file): &(Part, PathBuf)| PrivateMount::Bind {
        from: file.clone(),
        at: Path::new(SEEN).join(part.name()),
    };
    launch.mounts = vec![PrivateMount::Bind { from: directory.to_owned(), at: SEEN.into() }];
    launch.mounts.extend(files.iter().map(shown));
    launch.user = Some(own.clone());
    launch
}

/// The same with a program, which finds the socket.
fn spoken(launch: &Launch, words: &[impl AsRef<str>]) -> Launch {
    let variable = format!("{SOCKET_VARIABLE}={SEEN}/{SOCKET}");
    let argv = ["/usr/bin/env".to_owned(), variable].into_iter();
    Launch { argv: argv.chain(words.iter().map(|word| word.as_ref().to_owned())).collect(), ..launch.clone() }
}

/// The orders for the server: a target, its disks, how many commands it takes, and who may connect.
fn orders(target: &str, client: IpAddr, parts: &[Part], queue: Option<IscsiQueue>) -> Vec<Vec<String>> {
    let words = |parts: &[&[&str]]| parts.concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let whole = ["--mode", "target", "--tid", "1"];
    let mut orders = vec![words(&[&["--op", "new"], &whole, &["-T", target]])];
    for (lun, part) in (FIRST_LUN..).zip(parts) {
        let (lun, file) = (lun.to_string(), format!("{SEEN}/{}", part.name()));
        let unit = ["--mode", "logicalunit", "--tid", "1", "--lun", &lun];
        let names = format!("vendor_id=TARE,product_id={},scsi_sn={}", part.name(), part.serial());
        orders.push(words(&[&["--op", "new"], &unit, &["--bstype", "rdwr", "-b", &file]]));
        orders.push(words(&[&["--op", "update"], &unit, &["--params", &names]]));
    }
    if let Some(queue) = queue {
        let most = queue.commands.min(MOST_COMMANDS).to_string();
        orders.push(words(&[&["--op", "update"], &whole, &["--name", "MaxQueueCmd", "--value", &most]]));
    }
    orders.push(words(&[&["--op", "bind"], &whole, &["-I", &client.to_string()]]));
    orders
}

/// One order, given again while nobody listens. `listening` is the server's socket.
fn tell(command: &mut Command, listening: &Path, order: &str, limit: Duration) -> std::result::Result<(), String> {
    let deadline = Instant::now() + limit;
    loop {
        let there = listening.exists();
        let said = if there {
            match program::run(command, TIMEOUT) {
                Ok(ran) if ran.success => return Ok(()),
                Ok(ran) => ran.output.trim().to_owned(),
                Err(error) => error.to_string(),
            }
        } else {
            "it does not listen".to_owned()
        };
        // Between the making of its socket and its listening it refuses; anything else that it says is its answer.
        if (there && !said.contains("not connected") && !said.contains("refused")) || Instant::now() >= deadline {
            return Err(format!("{order}: {said}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_guest_may_come_and_only_to_its_disks() {
        let words = |parts: &[Part], queue| {
            let orders = orders("iqn.x:g", IpAddr::from([198, 18, 1, 7]), parts, queue).into_iter();
            orders.map(|order| order.join(" ")).collect::<Vec<_>>()
        };
        let one = words(&[Part::Data], None);
        assert!(one[0].ends_with("-T iqn.x:g"), "{one:?}");
        assert!(one[1].ends_with("--lun 1 --bstype rdwr -b /tmp/data"), "{one:?}");
        assert!(one[3].ends_with("-I 198.18.1.7") && one.len() == 4, "{one:?}");
        let two = words(&[Part::Data, Part::Log], Some(IscsiQueue::of(128)));
        assert!(two[3].ends_with("--lun 2 --bstype rdwr -b /tmp/log"), "{two:?}");
        assert!(two[4].ends_with("product_id=log,scsi_sn=tare-log"), "{two:?}");
        assert!(two[5].ends_with("--name MaxQueueCmd --value 512"), "{two:?}");
        assert!(two[6].ends_with("-I 198.18.1.7"), "{two:?}");
    }

    #[test]
    fn a_storage_server_knows_who_comes_whatever_the_trial() {
        let names = ["t0x1", "t9x1", "t3"].map(known_initiator);
        let known = |number: u32| format!("iqn.2026-01.invalid.tare:guest-{number}");
        assert_eq!(names, [known(2), known(2), known(1)]);
        let unit = Unit {
            portal: SocketAddr::from(([192, 0, 2, 9], 3260)),
            target: "iqn.x:g".into(),
            lun: 3,
            initiator: known(2),
            queue: None,
        };
        let words = unit.words();
        assert!(words.contains("file.portal=192.0.2.9:3260,file.target=iqn.x:g,file.lun=3"), "{words}");
        assert!(words.ends_with("file.initiator-name=iqn.2026-01.invalid.tare:guest-2"), "{words}");
    }

    #[test]
    fn a_server_that_never_listens_is_reported() {
        let place = Path::new("/nonexistent/tgt.1");
        let why = tell(&mut Command::new("/bin/true"), place, "--op", Duration::from_millis(10));
        assert!(why.is_err_and(|why| why.contains("does not listen")));
    }
}
