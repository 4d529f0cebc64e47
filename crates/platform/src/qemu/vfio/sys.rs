//! The calls of VFIO (linux/vfio.h) that come before a device is used.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IO(VFIO_TYPE, VFIO_BASE + number)`: they tell no size and no direction.
const fn request(number: libc::c_ulong) -> libc::c_ulong {
    const TYPE: libc::c_ulong = b';' as libc::c_ulong;
    const BASE: libc::c_ulong = 100;
    TYPE << 8 | (BASE + number)
}

const CHECK_EXTENSION: libc::c_ulong = request(1);
const SET_IOMMU: libc::c_ulong = request(2);
const GROUP_GET_STATUS: libc::c_ulong = request(3);
const GROUP_SET_CONTAINER: libc::c_ulong = request(4);

const TYPE1: libc::c_ulong = 1;
const TYPE1_V2: libc::c_ulong = 3;

/// `VFIO_GROUP_FLAGS_VIABLE`: no device of the group is bound to a driver of the host's.
const VIABLE: u32 = 1;

/// `struct vfio_group_status`.
#[repr(C)]
struct GroupStatus {
    argsz: u32,
    flags: u32,
}

/// What was asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Whether the whole group can be had.
    Viable,
    /// The group itself.
    Group,
    /// Its IOMMU.
    Iommu,
}

/// Puts a group into a container and gives that its IOMMU. Both are as before when the two files are closed.
pub(super) fn attach(container: &File, group: &File) -> Result<(), (Step, io::Error)> {
    let mut status = GroupStatus { argsz: size_of::<GroupStatus>() as u32, flags: 0 };
    // SAFETY: the call takes a `vfio_group_status` that says its own size; it lives until the call returns.
    let returned = unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_STATUS as _, &raw mut status) };
    answered(returned).map_err(|error| (Step::Group, error))?;
    if status.flags & VIABLE == 0 {
        return Err((Step::Viable, io::Error::from_raw_os_error(libc::EPERM)));
    }
    let number: libc::c_int = container.as_raw_fd();
    // SAFETY: the call takes a pointer to the number of an open file, which both live until it returns.
    let put = unsafe { libc::ioctl(group.as_raw_fd(), GROUP_SET_CONTAINER as _, &raw const number) };
    answered(put).map_err(|error| (Step::Group, error))?;
    // SAFETY: the call takes a plain number.
    let newer = unsafe { libc::ioctl(container.as_raw_fd(), CHECK_EXTENSION as _, TYPE1_V2) } > 0;
    // SAFETY: the call takes a plain number.
    let set = unsafe { libc::ioctl(container.as_raw_fd(), SET_IOMMU as _, if newer { TYPE1_V2 } else { TYPE1 }) };
    answered(set).map_err(|error| (Step::Iommu, error))
}

fn answered(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_group_answers_that_it_is_none() {
        let null = File::open("/dev/null").unwrap();
        let (step, error) = attach(&null, &null).unwrap_err();
        assert_eq!((step, error.raw_os_error()), (Step::Group, Some(libc::ENOTTY)));
    }

    #[test]
    fn numbers_are_those_of_the_kernels_header() {
        let path = "/usr/include/linux/vfio.h";
        let header = match std::fs::read_to_string(path) {
            Ok(header) => header,
            Err(error) => return println!("SKIPPED: {path}: {error}; Debian has it in linux-libc-dev"),
        };
        let value = |name: &str| {
            let lines =
                header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(char::is_whitespace));
            let (_, value) = { lines }.find(|(defined, _)| *defined == name).unwrap();
            value.trim().to_owned()
        };
        assert_eq!((value("VFIO_TYPE"), value("VFIO_BASE")), ("(';')".to_owned(), "100".to_owned()));
        for (name, ours) in [
            ("VFIO_CHECK_EXTENSION", CHECK_EXTENSION),
            ("VFIO_SET_IOMMU", SET_IOMMU),
            ("VFIO_GROUP_GET_STATUS", GROUP_GET_STATUS),
            ("VFIO_GROUP_SET_CONTAINER", GROUP_SET_CONTAINER),
        ] {
            let number: libc::c_ulong =
                value(name).trim_start_matches("_IO(VFIO_TYPE, VFIO_BASE + ").trim_end_matches(')').parse().unwrap();
            assert_eq!(request(number), ours, "{name}");
        }
        let plain =
            ["VFIO_TYPE1_IOMMU", "VFIO_TYPE1v2_IOMMU"].map(|name| value(name).parse::<libc::c_ulong>().unwrap());
        assert_eq!(plain, [TYPE1, TYPE1_V2]);
        assert_eq!(value("VFIO_GROUP_FLAGS_VIABLE").chars().take(8).collect::<String>(), "(1 << 0)");
        assert_eq!(VIABLE, 1 << 0);
    }
}
