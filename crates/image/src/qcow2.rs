//! The header of a qcow2 file, as far as it says what else is read with it.
//!
//! An image comes from anywhere, and its header can name any file of the host's as its backing or data file, which the
//! machine monitor would then open and show to the guest. So it is read here first, in bounds, and nothing is accepted
//! but a plain image (QEMU's docs/interop/qcow2.txt).

/// How every qcow2 file begins.
pub(crate) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// How much of a file is looked at: the header with its extensions is in the first cluster, of at most 2 MiB.
pub(crate) const LOOKED_AT: u64 = 2 << 20;

/// The largest disk that is believed, bytes: what ext4 and XFS would both take is less.
const LARGEST: u64 = 1 << 55;

/// Marks of the header (`incompatible_features`).
const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// Extensions of the header.
const END: u32 = 0;
const BACKING_FORMAT: u32 = 0xe279_2aca;
const DATA_FILE_NAME: u32 = 0x4441_5441;
const FULL_DISK_ENCRYPTION: u32 = 0x0537_be77;

/// A field of the file.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at.checked_add(8)?)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }
}

/// The size of the disk, bytes; `start` is the start of the file, at most [`LOOKED_AT`] bytes of it, and `length` how
/// long it is.
///
/// # Errors
/// Why it is not accepted, in words.
pub(crate) fn virtual_size(start: &[u8], length: u64) -> Result<u64, String> {
    if !start.starts_with(&MAGIC) {
        return Err("it does not begin as qcow2 does".into());
    }
    let short = || "its header is cut short".to_owned();
    let bytes = Bytes(start);
    let version = bytes.u32(4).ok_or_else(short)?;
    if !matches!(version, 2 | 3) {
        return Err(format!("it is of version {version}, and 2 and 3 are known"));
    }
    if bytes.u64(8).ok_or_else(short)? != 0 || bytes.u32(16).ok_or_else(short)? != 0 {
        return Err("it refers to a backing file, which could be any file of this host".into());
    }
    let cluster_bits = bytes.u32(20).ok_or_else(short)?;
    if !(9..=21).contains(&cluster_bits) {
        return Err(format!("its clusters of 2^{cluster_bits} bytes are none"));
    }
    let size = bytes.u64(24).ok_or_else(short)?;
    if bytes.u32(32).ok_or_else(short)? != 0 {
        return Err("it is encrypted".into());
    }
    check_table(&bytes, size, cluster_bits, length)?;
    if bytes.u32(60).ok_or_else(short)? != 0 {
        return Err("it has snapshots; convert it first: qemu-img convert -O qcow2".into());
    }
    let header_length = if version == 2 { 72 } else { check_features(&bytes)? };
    check_extensions(&bytes, header_length, 1 << cluster_bits)?;
    Ok(size)
}

/// The first table of clusters has to cover the disk and to be in the file.
fn check_table(bytes: &Bytes, size: u64, cluster_bits: u32, length: u64) -> Result<(), String> {
    let short = || "its header is cut short".to_owned();
    if size == 0 || size > LARGEST || !size.is_multiple_of(512) {
        return Err(format!("a disk of {size} bytes is none"));
    }
    let (entries, at) = (bytes.u32(36).ok_or_else(short)?, bytes.u64(40).ok_or_else(short)?);
    // Each entry stands for a cluster of further entries, of 8 bytes each, or 16.
    let covers = 1_u64 << (2 * cluster_bits - 4);
    if u64::from(entries) < size.div_ceil(covers.saturating_mul(2)) {
        return Err("its table is too small for its size".into());
    }
    let end = at.checked_add(u64::from(entries) * 8);
    if at == 0 || !at.is_multiple_of(1 << cluster_bits) || end.is_none_or(|end| end > length) {
        return Err("its table is not within the file".into());
    }
    Ok(())
}

/// What only version 3 has. Gives the length of the header.
fn check_features(bytes: &Bytes) -> Result<usize, String> {
    let short = || "its header is cut short".to_owned();
    let features = bytes.u64(72).ok_or_else(short)?;
    if features & DATA_FILE != 0 {
        return Err("it keeps its data in another file, which could be any file of this host".into());
    }
    if features & CORRUPT != 0 {
        return Err("it is marked as corrupt; repair it first: qemu-img check -r all".into());
    }
    if features & !(DIRTY | COMPRESSION | EXTENDED_L2) != 0 {
        return Err(format!("it needs features that are not known (0x{features:x})"));
    }
    let length = bytes.u32(100).ok_or_else(short)? as usize;
    if length < 104 || !length.is_multiple_of(8) || length > bytes.0.len() {
        return Err(format!("a header of {length} bytes is none"));
    }
    Ok(length)
}

fn check_extensions(bytes: &Bytes, header_length: usize, cluster: usize) -> Result<(), String> {
    let mut at = header_length;
    // Of version 2 there are files with no room for an extension, and none is needed.
    while at < cluster && at < bytes.0.len() {
        let cut = || "its header's extensions are cut short".to_owned();
        let (kind, length) = (bytes.u32(at).ok_or_else(cut)?, bytes.u32(at + 4).ok_or_else(cut)? as usize);
        match kind {
            END => return Ok(()),
            BACKING_FORMAT => return Err("it tells the format of a backing file, which could be any file".into()),
            DATA_FILE_NAME => return Err("it names another file for its data".into()),
            FULL_DISK_ENCRYPTION => return Err("it is encrypted".into()),
            _ => {}
        }
        let next = at.checked_add(8).and_then(|at| at.checked_add(length.checked_next_multiple_of(8)?));
        at = next.filter(|&next| next <= cluster).ok_or_else(cut)?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A header as `qemu-img create -f qcow2` writes it for a disk of 1 GiB.
    pub(crate) fn plain() -> Vec<u8> {
        let mut bytes = vec![0; 0x50000];
        bytes[..4].copy_from_slice(&MAGIC);
        put(&mut bytes, 4, &3_u32.to_be_bytes());
        put(&mut bytes, 20, &16_u32.to_be_bytes());
        put(&mut bytes, 24, &(1_u64 << 30).to_be_bytes());
        put(&mut bytes, 36, &2_u32.to_be_bytes());
        put(&mut bytes, 40, &0x30000_u64.to_be_bytes());
        put(&mut bytes, 48, &0x10000_u64.to_be_bytes());
        put(&mut bytes, 56, &1_u32.to_be_bytes());
        put(&mut bytes, 96, &4_u32.to_be_bytes());
        put(&mut bytes, 100, &112_u32.to_be_bytes());
        bytes
    }

    fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
        bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn with(at: usize, value: &[u8]) -> Result<u64, String> {
        let mut bytes = plain();
        put(&mut bytes, at, value);
        virtual_size(&bytes, bytes.len() as u64)
    }

    #[test]
    fn a_plain_image_is_accepted() {
        assert_eq!(virtual_size(&plain(), 0x50000), Ok(1 << 30));
        assert_eq!(with(4, &2_u32.to_be_bytes()), Ok(1 << 30));
        assert_eq!(with(72, &(DIRTY | COMPRESSION).to_be_bytes()), Ok(1 << 30));
    }

    #[test]
    fn whatever_refers_elsewhere_is_refused() {
        let refused = |at, value: &[u8], why: &str| {
            let error = with(at, value).unwrap_err();
            assert!(error.contains(why), "{error} is not {why}");
        };
        refused(8, &0x200_u64.to_be_bytes(), "backing file");
        refused(16, &11_u32.to_be_bytes(), "backing file");
        refused(72, &DATA_FILE.to_be_bytes(), "another file");
        refused(112, &BACKING_FORMAT.to_be_bytes(), "backing file");
        refused(112, &DATA_FILE_NAME.to_be_bytes(), "another file");
        refused(112, &FULL_DISK_ENCRYPTION.to_be_bytes(), "encrypted");
        refused(32, &2_u32.to_be_bytes(), "encrypted");
    }

    #[test]
    fn an_extension_behind_another_is_found() {
        let mut bytes = plain();
        // A table of feature names, then the name of a data file.
        put(&mut bytes, 112, &0x6803_f857_u32.to_be_bytes());
        put(&mut bytes, 116, &13_u32.to_be_bytes());
        put(&mut bytes, 112 + 8 + 16, &DATA_FILE_NAME.to_be_bytes());
        assert!(virtual_size(&bytes, bytes.len() as u64).unwrap_err().contains("another file"));
        // Of version 2, extensions follow the shorter header.
        let mut bytes = plain();
        put(&mut bytes, 4, &2_u32.to_be_bytes());
        put(&mut bytes, 72, &BACKING_FORMAT.to_be_bytes());
        assert!(virtual_size(&bytes, bytes.len() as u64).unwrap_err().contains("backing file"));
    }

    #[test]
    fn nonsense_is_refused() {
        for (at, value) in [
            (0, b"QFI\0".to_vec()),
            (4, 9_u32.to_be_bytes().to_vec()),
            (20, 31_u32.to_be_bytes().to_vec()),
            (20, 0_u32.to_be_bytes().to_vec()),
            (24, 0_u64.to_be_bytes().to_vec()),
            (24, u64::MAX.to_be_bytes().to_vec()),
            (24, (1_u64 << 40).to_be_bytes().to_vec()),
            (36, u32::MAX.to_be_bytes().to_vec()),
            (40, (u64::MAX << 16).to_be_bytes().to_vec()),
            (60, 1_u32.to_be_bytes().to_vec()),
            (72, CORRUPT.to_be_bytes().to_vec()),
            (72, (1_u64 << 40).to_be_bytes().to_vec()),
            (100, 3_u32.to_be_bytes().to_vec()),
            (100, u32::MAX.to_be_bytes().to_vec()),
            (112, [0xff; 8].to_vec()),
        ] {
            assert!(with(at, &value).is_err(), "{value:x?} at {at}");
        }
        for length in 0..120 {
            assert!(virtual_size(&plain()[..length], length as u64).is_err(), "{length} bytes of it");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), length in any::<u64>()) {
            let _ = virtual_size(&bytes, length);
        }

        #[test]
        fn no_change_of_a_header_makes_it_panic(at in 4_usize..400, value in any::<u64>(), length in any::<u64>()) {
            let mut bytes = plain();
            put(&mut bytes, at, &value.to_be_bytes());
            let _ = virtual_size(&bytes, length);
        }
    }
}
