//! A request on its way: its text, and files in the midst of it that are made while they are sent.

use crate::social::spec::StoredFile;

pub(crate) use super::file::Template;

/// Most files of a request.
const FILES: usize = 3;

/// A file that a request has with it.
#[derive(Debug, Clone, Copy)]
struct Upload {
    /// It follows so many bytes of the text.
    after: usize,
    kind: StoredFile,
    id: u64,
}

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(super) text: Vec<u8>,
    files: [Option<Upload>; FILES],
}

impl Outgoing {
    /// Ready for the next; memory is kept.
    pub fn clear(&mut self) {
        self.text.clear();
        self.files = [None; FILES];
    }

    /// A file whose markers have a number goes with it, from here on in the text; a fourth does not.
    pub(super) fn upload(&mut self, kind: StoredFile, id: u64) {
        let after = self.text.len();
        if let Some(place) = self.files.iter_mut().find(|place| place.is_none()) {
            *place = Some(Upload { after, kind, id });
        }
    }

    /// Puts a head before what is there.
    pub(super) fn head(&mut self, head: &[u8]) {
        self.text.splice(0..0, head.iter().copied());
        for file in self.files.iter_mut().flatten() {
            file.after += head.len();
        }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64 + self.files.iter().flatten().map(|file| file.kind.bytes()).sum::<u64>()
    }

    /// The bytes from one that is not the end on, as many as there are in one piece.
    pub fn piece<'a>(&'a self, mut at: u64, template: &'a mut Template) -> &'a [u8] {
        let mut from = 0;
        for file in self.files.iter().flatten() {
            let text = &self.text[from..file.after];
            if at < text.len() as u64 {
                return &text[at as usize..];
            }
            at -= text.len() as u64;
            if at < file.kind.bytes() {
                return template.of(file.id, file.kind.bytes(), at);
            }
            at -= file.kind.bytes();
            from = file.after;
        }
        &self.text[(from + at as usize).min(self.text.len())..]
    }
}
