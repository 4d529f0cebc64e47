//! Entries of a layer's archive as they are written there, each with what comes before it in entries of its own: long
//! names and PAX records. Nothing of a size that the archive itself says is read into memory.

use std::io::Read;

use tar::{Entry, EntryType};

use super::{Found, bad};

/// The longest name or record before an entry, bytes: a path has at most 4096.
const LONGEST: u64 = 1 << 20;

/// What is known of an entry before its own header is seen.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<i64>,
    size: Option<u64>,
    capability: Option<Vec<u8>>,
    sparse: bool,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device, a pipe: the guest has devices of its own.
    Special,
}

/// One entry.
#[derive(Debug)]
pub(super) struct Described {
    pub path: Vec<u8>,
    pub kind: Kind,
    /// Where a link leads.
    pub link: Vec<u8>,
    pub mode: u32,
    pub owner: (u32, u32),
    /// Seconds.
    pub mtime: i64,
    pub size: u64,
    /// The capabilities of a program, as the kernel keeps them.
    pub capability: Option<Vec<u8>>,
}

impl Ahead {
    /// Takes an entry in that says something of the next one; `false` where it is an entry itself.
    pub(super) fn takes(&mut self, entry: &mut Entry<'_, impl Read>) -> Found<bool> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.path = Some(name(read(entry)?)),
            EntryType::GNULongLink => self.link = Some(name(read(entry)?)),
            EntryType::XHeader => self.records(&read(entry)?)?,
            // What holds for all entries: programs that write images put comments there.
            EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// PAX records: `LENGTH KEY=VALUE` and a newline each. Values may have any bytes.
    fn records(&mut self, mut bytes: &[u8]) -> Found<()> {
        let malformed = || bad("an archive of its layers has a PAX record that cannot be understood");
        while !bytes.is_empty() {
            let space = bytes.iter().take(20).position(|&byte| byte == b' ').ok_or_else(malformed)?;
            let length: usize = number(&bytes[..space]).ok_or_else(malformed)?;
            let record =
                bytes.get(space + 1..length).and_then(|record| record.strip_suffix(b"\n")).ok_or_else(malformed)?;
            let equals = record.iter().position(|&byte| byte == b'=').ok_or_else(malformed)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"uid" => self.uid = Some(number(value).ok_or_else(malformed)?),
                b"gid" => self.gid = Some(number(value).ok_or_else(malformed)?),
                b"size" => self.size = Some(number(value).ok_or_else(malformed)?),
                b"mtime" => self.mtime = value.split(|&byte| byte == b'.').next().and_then(number),
                b"SCHILY.xattr.security.capability" => self.capability = Some(value.to_vec()),
                key => self.sparse |= key.starts_with(b"GNU.sparse."),
            }
            bytes = &bytes[length..];
        }
        Ok(())
    }

    /// The entry, with what was said before it.
    pub(super) fn describe(self, entry: &Entry<'_, impl Read>) -> Found<Described> {
        let header = entry.header();
        let path = self.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let what = |why: &str| bad(format!("its entry {} {why}", String::from_utf8_lossy(&path).escape_debug()));
        let unreadable = |_| what("has a header that cannot be understood");
        let size = entry.size();
        if self.sparse || self.size.is_some_and(|said| said != size) {
            return Err(what("is a sparse file, or one of more than 8 GiB, which layers of images do not have here"));
        }
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous if path.ends_with(b"/") => Kind::Directory,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Directory => Kind::Directory,
            EntryType::Symlink => Kind::Symlink,
            EntryType::Link => Kind::HardLink,
            EntryType::Char | EntryType::Block | EntryType::Fifo => Kind::Special,
            other => return Err(what(&format!("is of an unknown kind ({other:?})"))),
        };
        let link = self.link.or_else(|| header.link_name_bytes().map(|name| name.into_owned())).unwrap_or_default();
        let id = |said: Option<u64>, own: u64| u32::try_from(said.unwrap_or(own)).ok().filter(|&id| id != u32::MAX);
        let uid = id(self.uid, header.uid().map_err(unreadable)?);
        let gid = id(self.gid, header.gid().map_err(unreadable)?);
        let owner = uid.zip(gid).ok_or_else(|| what("has an owner that no system has"))?;
        let mode = header.mode().map_err(unreadable)? & 0o7777;
        let mtime =
            self.mtime.unwrap_or_else(|| header.mtime().ok().and_then(|at| i64::try_from(at).ok()).unwrap_or(0));
        Ok(Described { kind, link, mode, owner, mtime, size, capability: self.capability, path })
    }
}

fn read(entry: &mut Entry<'_, impl Read>) -> Found<Vec<u8>> {
    let mut bytes = Vec::new();
    if entry.size() > LONGEST {
        return Err(bad("an archive of its layers has a name longer than any system's"));
    }
    entry.read_to_end(&mut bytes).map_err(|error| bad(format!("an archive of its layers cannot be read: {error}")))?;
    Ok(bytes)
}

/// Without the zero that ends it.
fn name(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, value: &[u8]) -> Vec<u8> {
        let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let length = (1..).find(|length| format!("{length}").len() + rest.len() == *length).unwrap();
        [format!("{length}").into_bytes(), rest].concat()
    }

    #[test]
    fn records_have_any_bytes_and_their_length() {
        let mut ahead = Ahead::default();
        let bytes = [record("path", b"a\nb"), record("SCHILY.xattr.security.capability", b"\x01\n\0=")].concat();
        ahead.records(&bytes).unwrap();
        assert_eq!(ahead.path.unwrap(), b"a\nb");
        assert_eq!(ahead.capability.unwrap(), b"\x01\n\0=");
        for wrong in
            [&b"9 a=b\n"[..], b"x a=b\n", b"6 a=b", b"0 a=b\n", b"1 a=b\n", b"5 ab\n", b"99999999999999999999999 a=b\n"]
        {
            let mut ahead = Ahead::default();
            assert!(ahead.records(wrong).is_err(), "{wrong:?}");
        }
    }
}
