//! The channel as a device file: a virtio port, or anything else that is read and written.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long the other end may take to be there.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Opens a channel for reading and for writing, once its other end is there.
///
/// As long as nobody on the host has opened the port, what is written there is lost, and reading tells an end that is
/// none: a greeting would never arrive.
///
/// # Errors
/// The system's; that nobody came.
pub fn open(path: &Path) -> io::Result<(File, File)> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let deadline = Instant::now() + TIMEOUT;
    while is_hung_up(&file)? {
        if Instant::now() >= deadline {
            let why = format!("nobody opened its other end within {TIMEOUT:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok((file.try_clone()?, file))
}

/// Whether the other end is not there (drivers/char/virtio_console.c: `port_fops_poll`).
fn is_hung_up(file: &File) -> io::Result<bool> {
    let mut polled = [PollFd::new(file, PollFlags::OUT)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => Ok(polled[0].revents().contains(PollFlags::HUP)),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_device_is_opened_both_ways() {
        let (mut reader, mut writer) = open(Path::new("/dev/null")).unwrap();
        writer.write_all(b"x").unwrap();
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
        assert_ne!(reader.as_raw_fd(), writer.as_raw_fd());
        assert!(open(Path::new("/no/such/device")).is_err());
    }
}
