//! Words for summaries, descriptions and comments.

use crate::fill::copy;
use crate::fill::draw::{Draw, Key};
use crate::fill::words::{TITLE_WORDS, words};

/// Bytes of running text that all texts are cut from. Texts differ by where they begin; what they are made of is enough that few begin
/// alike.
const LENGTH: usize = 256 * 1024;
/// Words of a sentence, at most; two at least.
const SENTENCE: u64 = 14;

/// Running text: sentences of common words. ASCII, with nothing that HTML would have escaped.
#[derive(Debug)]
pub struct Prose {
    text: Vec<u8>,
    /// Where words begin, far enough from the end for the longest text.
    begins: Vec<u32>,
}

impl Prose {
    /// The text of a seed.
    pub fn new(seed: u64) -> Self {
        let mut draw = Key::new(seed, 0).row(0);
        let (mut text, mut begins) = (Vec::with_capacity(LENGTH + 64), Vec::new());
        let mut left = 0;
        while text.len() < LENGTH {
            if text.len() + super::PERSON_SUMMARY.1 as usize <= LENGTH {
                begins.push(text.len() as u32);
            }
            let word = words().title[draw.below(TITLE_WORDS as u64) as usize].as_bytes();
            if left == 0 {
                left = draw.from(2, SENTENCE);
                text.extend_from_slice(word);
            } else {
                text.extend(word.iter().map(u8::to_ascii_lowercase));
            }
            left -= 1;
            text.extend_from_slice(if left == 0 { b". " } else { b" " });
        }
        Self { text, begins }
    }

    /// A word, with a capital.
    pub fn word(&self, draw: &mut Draw) -> &'static [u8] {
        words().title[draw.below(TITLE_WORDS as u64) as usize].as_bytes()
    }

    /// Appends a text of exactly so many characters (1 to 2,500), in the format of [`copy`]. The same `at` gives the same words.
    pub fn write(&self, at: u64, length: u64, out: &mut Vec<u8>) {
        let at = (u128::from(at) * self.begins.len() as u128) >> 64;
        let begin = self.begins[at as usize] as usize;
        copy::joined(out, &[&self.text[begin..begin + length as usize - 1], b"."]);
    }
}
