//! A file of the kernel that is read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Keeps a file open and its buffer allocated, so that reading it again costs two system calls and no allocation.
#[derive(Debug)]
pub(crate) struct Reader {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens the file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(File::open(path)?, path))
    }

    /// Takes a file that is already open; `path` is only shown in messages.
    pub fn of(file: File, path: &Path) -> Self {
        Self { file, path: path.to_owned(), buffer: vec![0; 4096] }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the kernel says now.
    pub fn read(&mut self) -> io::Result<&str> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            // A short read is not the end of a file of the kernel: only an empty one is.
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(got) => length += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        std::str::from_utf8(&self.buffer[..length]).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_each_time_and_whatever_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.read().unwrap().len(), 10_000);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(reader.read().unwrap(), "short");
    }
}
