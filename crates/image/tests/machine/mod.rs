//! A virtual machine started by hand, as simply as can be: its channel is the emulator's standard input and output.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_image::{Boot, CHANNEL_PORT, Extras, GuestConfig, Kernel, Root};
use tare_wire::{AgentFacts, ExecSpec, Link, Reply, Request};

pub const EMULATOR: &str = "qemu-system-x86_64";
/// Emulated machines on a busy host take their time.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The agent that was built with these tests.
pub fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("tare-agent"));
    std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside).filter(|path| path.exists())
}

/// What guests boot from; or why this machine cannot boot any.
pub fn boot() -> Result<Boot, String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the machines of these tests are x86".into());
    }
    if Command::new(EMULATOR).arg("--version").stdout(Stdio::null()).status().is_err() {
        return Err(format!("no {EMULATOR} here"));
    }
    let agent = agent().ok_or("the agent is not built: cargo build -p tare-agent")?;
    let kernel = Kernel::find(None).map_err(|error| error.to_string())?;
    Ok(tare_image::boot(&kernel, &agent, &Extras::default()).unwrap())
}

pub fn config(root: Root) -> GuestConfig {
    GuestConfig::new("guest-1", "20260101-000000-beef", root)
}

/// A machine that runs; dropped, it is gone.
pub struct Machine {
    child: Child,
    console: PathBuf,
    /// Dropped, the channel is closed.
    pub link: Option<Link>,
    _place: tempfile::TempDir,
}

impl Machine {
    /// Starts one with further arguments and words of the command line.
    pub fn start(boot: &Boot, words: &str, arguments: &[&str]) -> Self {
        Self::start_on("stdio,id=agent,signal=off", boot, words, arguments)
    }

    /// Starts one with its channel on something else.
    pub fn start_on(channel: &str, boot: &Boot, words: &str, arguments: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let console = place.path().join("console");
        let words = format!("console=ttyS0 panic=-1 mitigations=off tsc=reliable random.trust_cpu=on {words}");
        let mut command = Command::new(EMULATOR);
        command
            .args(["-accel", "tcg,thread=multi,tb-size=64", "-M", "q35", "-nodefaults", "-no-user-config"])
            .args(["-display", "none", "-no-reboot", "-m", "256", "-smp", "1"])
            .args(["-kernel", boot.kernel.to_str().unwrap(), "-initrd", boot.initrd.to_str().unwrap()])
            .args(["-append", &words, "-serial", &format!("file:{}", console.display())])
            .args(["-chardev", channel, "-device", "virtio-serial-pci"])
            .args(["-device", &format!("virtserialport,chardev=agent,name={CHANNEL_PORT}")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Self { child: command.spawn().unwrap(), console, link: None, _place: place }
    }

    /// Starts one and waits for its agent.
    pub fn with_agent(boot: &Boot, config: &GuestConfig, arguments: &[&str]) -> Self {
        let mut machine = Self::start(boot, &config.command_line().unwrap(), arguments);
        machine.reach_agent(TIMEOUT);
        machine
    }

    /// Waits until the agent answers.
    pub fn reach_agent(&mut self, timeout: Duration) {
        let machine = self;
        let (reader, writer) = (machine.child.stdout.take().unwrap(), machine.child.stdin.take().unwrap());
        machine.open(Box::new(reader), Box::new(writer), timeout);
    }

    /// Waits until the agent at the other end of a stream answers.
    pub fn open(&mut self, reader: Box<dyn Read + Send>, writer: Box<dyn Write + Send>, timeout: Duration) {
        let machine = self;
        match Link::open(reader, writer, timeout, TIMEOUT) {
            Ok(link) => machine.link = Some(link),
            Err(error) => panic!("{error}\n{}", machine.console()),
        }
    }

    pub fn console(&self) -> String {
        fs::read(&self.console).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    pub fn call(&self, request: Request) -> Reply {
        let link = self.link.as_ref().unwrap();
        link.call(request, TIMEOUT).unwrap_or_else(|error| panic!("{error}\n{}", self.console()))
    }

    pub fn facts(&self) -> AgentFacts {
        let Reply::Facts(facts) = self.call(Request::Facts) else { panic!("no facts") };
        facts
    }

    pub fn fact(&self, name: &str) -> String {
        let facts = self.facts().facts;
        facts.into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap_or_default()
    }

    /// What a command printed, after it ended well.
    pub fn run(&self, argv: &[&str]) -> String {
        let spec = ExecSpec::new(argv, Duration::from_secs(30), 1 << 16);
        let Reply::Executed(result) = self.call(Request::Exec(spec)) else { panic!("not run") };
        assert_eq!(result.code, Some(0), "{result:?}");
        String::from_utf8_lossy(&result.stdout).trim().to_owned()
    }

    /// Waits until the machine has switched itself off.
    pub fn wait(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not switch off:\n{}", self.console());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
