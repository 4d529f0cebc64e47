//! What a workload can do and what it takes. It says so once for a case; a study, its plan and the run know nothing else of it.

use crate::density::TileGuest;
use crate::guest::GuestSize;
use crate::layout::Work;
use crate::units::{ByteSize, Span};

/// A size for asking what does not depend on it.
pub const ANY_SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };

/// A workload with its parameters, under its load, in guests of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traits {
    /// Several guests can be measured at one time, each with several drivers.
    pub several_guests: bool,
    /// Several instances of the application can be at work in one guest, each a process of its own.
    pub several_instances: bool,
    /// It can be set up several times in one guest, each time with drivers of its own, which then have turns.
    pub several_set_ups: bool,
    /// One load after another can be offered in the same guest.
    pub repeats: bool,
    /// The guest's side can take a known share longer over each operation of a closed loop.
    pub slowable: bool,
    /// It can be driven again and again in the same guests while others are added.
    pub density: bool,
    /// It finds once a run, before the first trial, what load it is offered, whatever the case says.
    pub calibrated: bool,
    /// Guests like the measured one that it makes at one time as its work; 0: it makes none.
    pub made: u32,
    /// The longest that one trial's load may take where its phases do not say; `None`: the phases say.
    pub longest: Option<Span>,
    /// About how long a trial's guests are set up, from their start until load is offered.
    pub set_up: Span,
    /// How its arms take turns where the study does not say; `None`: it cannot be driven in turns.
    pub turns: Option<TurnTraits>,
    /// Why it cannot, where others of its kind can.
    pub no_turns: Option<&'static str>,
    /// The guest, or those of a tile where guests differ: the `index`-th guest of a trial is the one at `index` modulo their number.
    pub guests: Vec<GuestTraits>,
}

/// What one guest takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestTraits {
    /// Which of a tile it is; `None` where guests are alike.
    pub name: Option<String>,
    /// Its size.
    pub size: GuestSize,
    /// What it takes of the host's memory at once when it starts. The scale-up of a density search uses it until it has seen
    /// the first guest.
    pub touches: ByteSize,
    /// What serves in it and beside it, and what it is given.
    pub work: Work,
}

impl Traits {
    /// Of a workload that measures one load in one guest, which touches all of its memory.
    pub fn of(guest: GuestSize) -> Self {
        Self {
            several_guests: false,
            several_instances: false,
            several_set_ups: false,
            slowable: false,
            repeats: false,
            density: false,
            calibrated: false,
            made: 0,
            longest: None,
            set_up: Span::ZERO,
            turns: None,
            no_turns: None,
            guests: vec![GuestTraits::of(guest)],
        }
    }

    /// The same with what serves in each guest and beside it, and what the guest is given.
    #[must_use]
    pub fn with(mut self, work: Work) -> Self {
        for guest in &mut self.guests {
            guest.work = work.clone();
        }
        self
    }

    /// The `index`-th guest of a trial (from 0).
    pub fn guest(&self, index: u32) -> Option<&GuestTraits> {
        self.guests.get((index as usize).checked_rem(self.guests.len())?)
    }

    /// What a guest, or a whole tile, takes of the host's memory at once.
    pub fn touches(&self) -> ByteSize {
        ByteSize(self.guests.iter().fold(0, |sum, guest| sum.saturating_add(guest.touches.0)))
    }

    /// Whether any guest uses something beside it on the host.
    pub fn services(&self) -> bool {
        self.guests.iter().any(|guest| guest.work.has_services_beside())
    }

    /// The guests of one tile; empty where guests are alike.
    pub fn tile(&self) -> Vec<TileGuest> {
        let named = |guest: &GuestTraits| Some(TileGuest { name: guest.name.clone()?, size: guest.size });
        self.guests.iter().filter_map(named).collect()
    }
}

impl GuestTraits {
    /// One of that size, which touches all of its memory.
    pub const fn of(size: GuestSize) -> Self {
        Self { name: None, size, touches: size.memory, work: Work { services: Vec::new(), data: None } }
    }
}

/// How a workload is driven in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTraits {
    /// How long a turn is: many operations, and short against what changes on a host.
    pub turn: Span,
    /// The first part of each turn, which is driven and not measured.
    pub warm_up: Span,
    /// Rest between the end of a turn and the start of the next: longer than nearly all operations.
    pub gap: Span,
    /// What is made anew for each turn; `None`: nothing is.
    pub renewed: Option<Renewed>,
    /// Guests that are not in turn can be stopped: nothing in them times out.
    pub freezes: bool,
    /// Where each turn is one command, which ends it: how many an arm runs in a block where the study does not say; the turn is nothing then.
    pub commands: Option<u32>,
}

/// What a workload makes anew for each turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The memory that it works on.
    Memory,
    /// Its connections, with their buffers: the first part of a turn is long enough for them to reach their speed inside one host.
    Connections,
}

/// Disk that a workload takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// For what is made once and kept from run to run, bytes.
    pub kept: ByteSize,
    /// For each guest while it stands, bytes.
    pub guest: ByteSize,
    /// How much of that is a log, which an arm may have on storage of its own, bytes.
    pub log: ByteSize,
}
