//! A stretch of anonymous memory that can be given back from its end.

use std::io;
use std::ptr::NonNull;

/// Memory of this process alone, from the kernel and not from the allocator, so that all of it can be given back. Huge pages
/// are neither asked for nor refused: that is the host's to decide.
#[derive(Debug)]
pub struct Region {
    at: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, and is reached through it alone.
unsafe impl Send for Region {}

/// Bytes of a page.
pub fn page_bytes() -> usize {
    // SAFETY: the call takes no pointer.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0).unwrap_or(4096)
}

impl Region {
    /// Maps so many bytes, above 0, a multiple of a page. They take no memory before they are written to.
    ///
    /// # Errors
    /// The system's: no such stretch of addresses, or more than may be promised (`vm.overcommit_memory`).
    pub fn map(len: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing of ours is touched.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(at).map(|at| Self { at, len }).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Its bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether all of it was given back.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its memory.
    pub const fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes from `at` on are mapped, readable, writable and initialised (to zeros, by the kernel), and nobody
        // else refers to them while this is borrowed. With 0 bytes nothing is mapped, and the address is still aligned.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().cast(), self.len) }
    }

    /// Gives back all beyond so many bytes, a multiple of a page.
    ///
    /// # Errors
    /// The system's: too many mappings. Then nothing was given back.
    pub fn shrink(&mut self, len: usize) -> io::Result<()> {
        let Some(surplus) = self.len.checked_sub(len).filter(|&surplus| surplus > 0) else { return Ok(()) };
        // SAFETY: the stretch lies within the mapping, at its end, and nobody refers to it: this is borrowed alone.
        let result = unsafe { libc::munmap(self.at.as_ptr().wrapping_byte_add(len), surplus) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        self.len = len;
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Refused, the memory stays until the process ends.
        let _ = self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_read_and_given_back_from_its_end() {
        let page = page_bytes();
        let mut region = Region::map(8 * page).unwrap();
        assert!(region.bytes().iter().all(|&byte| byte == 0));
        region.bytes().fill(7);
        region.shrink(3 * page).unwrap();
        assert_eq!((region.len(), region.bytes().len()), (3 * page, 3 * page));
        assert!(region.bytes().iter().all(|&byte| byte == 7));
        region.shrink(5 * page).unwrap();
        assert_eq!(region.len(), 3 * page, "it never grows");
        region.shrink(0).unwrap();
        assert!(region.is_empty() && region.bytes().is_empty());
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(Region::map(1 << 60).is_err());
    }
}
