//! A scanner that is reckoned, for tests of rules: it goes over pages as the kernel does. A page is merged when it is met a
//! second time with the same content.

use tare_model::merging::MergeCounters;

use super::{Memory, Rule, Seen, Set};
use crate::Guests;

pub(super) const PAGE: u64 = 4096;
/// Pages that are reckoned as one.
const TOGETHER: u64 = 256;
/// CPU of a page, seconds: not what the rule takes for granted.
pub(super) const PAGE_CPU_S: f64 = 2e-6;
/// What the kernel's clock and others add to each pause, seconds.
const LATE_S: f64 = 0.004;
/// Bookkeeping of a page, bytes.
const BOOKKEEPING: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Zero,
    Same,
    Distinct,
    Volatile,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    kind: Kind,
    met: bool,
    merged: bool,
}

pub(super) struct Simulator {
    rule: Box<dyn Rule>,
    blocks: Vec<Block>,
    at: f64,
    pub(super) set: Set,
    pub(super) memory: Memory,
    pub(super) guests: Guests,
    pub(super) at_s: f64,
    counters: MergeCounters,
}

impl Simulator {
    /// A host of 24 GiB with so much available, and no guests.
    pub(super) fn new(rule: impl Rule + 'static, available_bytes: u64) -> Self {
        let memory = Memory { total_bytes: 24 << 30, available_bytes, free_bytes: available_bytes };
        let mut new = Self {
            rule: Box::new(rule),
            blocks: Vec::new(),
            at: 0.0,
            set: Set::Stop,
            memory,
            guests: Guests::default(),
            at_s: 0.0,
            counters: MergeCounters::default(),
        };
        new.set = new.rule.begin(&new.seen());
        new
    }

    /// A guest comes, with so many MiB of each kind.
    pub(super) fn add(&mut self, content: &[(Kind, u64)]) {
        for &(kind, mib) in content {
            let block = Block { kind, met: false, merged: false };
            self.blocks.extend((0..mib).map(|_| block));
            self.guests.promised_bytes += mib << 20;
        }
    }

    /// So many MiB of one kind become another, and are written to by that.
    pub(super) fn change(&mut self, from: Kind, to: Kind, mib: usize) {
        let of_kind = self.blocks.iter_mut().filter(|block| block.kind == from);
        of_kind.take(mib).for_each(|block| *block = Block { kind: to, met: false, merged: false });
    }

    pub(super) fn seen(&self) -> Seen {
        let merged =
            |kind| self.blocks.iter().filter(|block| block.merged && block.kind == kind).count() as u64 * TOGETHER;
        let mut counters = self.counters;
        counters.zero_pages = merged(Kind::Zero);
        counters.pages_sharing = merged(Kind::Same);
        let known = self.blocks.iter().filter(|block| block.met).count() as u64 * TOGETHER;
        counters.profit_bytes = counters.saved(PAGE).0 as i64 - (known * BOOKKEEPING) as i64;
        let all = self.blocks.len() as u64 * TOGETHER;
        let guests = Guests { resident_bytes: (all - counters.zero_pages) * PAGE, ..self.guests };
        Seen { at_s: self.at_s, memory: self.memory, guests, counters }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.rule.is_at_rest()
    }

    /// Lets the scanner work for a second at what is set, then lets the rule decide.
    pub(super) fn second(&mut self) {
        if let Set::Scan { pages, sleep_ms } = self.set {
            let batch_s = f64::from(pages) * PAGE_CPU_S;
            let pages = f64::from(pages) / (batch_s + f64::from(sleep_ms) / 1e3 + LATE_S);
            self.counters.scanner_cpu_s += pages * PAGE_CPU_S;
            self.counters.pages_scanned += pages as u64;
            self.scan(pages / TOGETHER as f64);
        }
        self.at_s += 1.0;
        self.set = self.rule.decide(&self.seen());
    }

    fn scan(&mut self, blocks: f64) {
        let end = self.at + blocks;
        while !self.blocks.is_empty() && (self.at as usize) < end as usize {
            let length = self.blocks.len();
            let block = &mut self.blocks[self.at as usize % length];
            block.merged |= block.met && matches!(block.kind, Kind::Zero | Kind::Same);
            block.met = true;
            self.at += 1.0;
            self.counters.full_scans += u64::from((self.at as usize).is_multiple_of(length));
        }
        self.at = end;
    }

    /// Goes on until the rule rests, at most so many seconds; how many it took.
    pub(super) fn until_rest(&mut self, most: u32) -> Option<u32> {
        (1..=most).find(|_| {
            self.second();
            self.is_at_rest()
        })
    }

    /// CPU seconds of the scanner over so many seconds.
    pub(super) fn cpu_of(&mut self, seconds: u32) -> f64 {
        let before = self.counters.scanner_cpu_s;
        (0..seconds).for_each(|_| self.second());
        self.counters.scanner_cpu_s - before
    }
}
