//! How many guests a host carries: what is tried, when it stops, and what was seen at each number of guests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::guest::GuestSize;
use crate::merging::{MergeCounters, SavedFrom};
use crate::metric::{Better, MetricSpec, Unit};
use crate::part::Part;
use crate::units::{ByteSize, Span};

/// A case that adds guests to one instance until the host carries no more. One trial is one such scale-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DensitySpec {
    /// Numbers of guests at which load is offered; of tiles where guests make some.
    pub guests: GuestSeries,
    /// The guests that make one tile, in the order in which they are added. Empty: guests are alike, and each is added by itself. Not
    /// written when it is empty.
    pub tile: Vec<TileGuest>,
    /// Memory of the host that must stay available; the scale-up stops before it is touched.
    /// `None`: a tenth of the host's memory, 1 GiB at least.
    pub reserve: Option<ByteSize>,
    /// Longest wait for merging to settle, before a guest that does not fit yet and before each measurement.
    pub settle: Span,
    /// Rest between the last guest's start and load (the published study: 15 minutes).
    pub rest: Span,
    /// Share of time (0 to 1) in which some task of the host may wait for memory over 10 s (PSI `some avg10`).
    pub pressure: f64,
}

/// A guest of a tile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileGuest {
    /// Its name, unique in the tile.
    pub name: String,
    /// Its size.
    pub size: GuestSize,
}

/// Least reserve of a host where a study names none.
const MIN_RESERVE: ByteSize = ByteSize(1 << 30);

impl DensitySpec {
    /// Guests that are added before load is offered again, at least: those of a tile, or one.
    pub fn unit(&self) -> u32 {
        u32::try_from(self.tile.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Most guests at one time.
    pub fn most_guests(&self) -> u32 {
        self.guests.most().saturating_mul(self.unit())
    }

    /// Memory that all guests together are promised at most, where each is promised `each` unless a tile says otherwise.
    pub fn promised(&self, each: ByteSize) -> ByteSize {
        let tile = self.tile.iter().map(|guest| guest.size.memory.0).fold(0, u64::saturating_add);
        let unit = if self.tile.is_empty() { each.0 } else { tile };
        ByteSize(unit.saturating_mul(u64::from(self.guests.most())))
    }

    /// What is kept back on a host with so much memory.
    pub fn reserve_on(&self, host_memory: ByteSize) -> ByteSize {
        self.reserve.unwrap_or_else(|| ByteSize(host_memory.0 / 10).max(MIN_RESERVE))
    }
}

/// Numbers of guests at which load is offered. Whatever they are, it is also offered to the last number that stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestSeries {
    /// These, ascending.
    Listed(Vec<u32>),
    /// Each number half as large again as the one before, up to `most`; where one does not hold, the largest that holds is
    /// found between it and the last that did.
    Search {
        /// The first.
        from: u32,
        /// The largest that is tried.
        most: u32,
    },
}

/// Numbers of guests that are named one by one.
const NAMED: usize = 12;

impl GuestSeries {
    /// The largest number that may be tried.
    pub fn most(&self) -> u32 {
        match self {
            Self::Listed(all) => all.last().copied().unwrap_or(1),
            Self::Search { most, .. } => *most,
        }
    }

    /// The next number to be measured on the way up after `guests`; the first with 0. `None`: the end.
    pub fn after(&self, guests: u32) -> Option<u32> {
        match self {
            Self::Listed(all) => all.iter().copied().find(|&next| next > guests),
            Self::Search { from, .. } if guests == 0 => Some(*from),
            Self::Search { most, .. } => (guests < *most).then(|| guests.saturating_add(guests.div_ceil(2)).min(*most)),
        }
    }

    /// The numbers in words, such as `1, 4, 8`; of a long list only its ends.
    pub fn words(&self) -> String {
        match self {
            Self::Search { from, most } => format!("the numbers that a search from {from} to {most} comes to"),
            Self::Listed(all) if all.len() <= NAMED => all.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
            Self::Listed(all) => {
                format!("{} numbers from {} to {}", all.len(), all.first().copied().unwrap_or(1), self.most())
            }
        }
    }

    /// Numbers of guests on the way up, for the plan: as many as there are if nothing stops the scale-up.
    pub fn scale_up(&self) -> Vec<u32> {
        std::iter::successors(self.after(0), |&guests| self.after(guests)).collect()
    }

    /// Most numbers of guests at which one scale-up can offer load: all on the way up, or those up to the first that does not
    /// hold and those that halve the distance between it and the last that did.
    pub fn levels_at_most(&self) -> u32 {
        let up = self.scale_up();
        let all = u32::try_from(up.len()).unwrap_or(u32::MAX);
        match self {
            // A stop between two numbers adds one at which guests stood, and takes away one at least that comes after.
            Self::Listed(_) => all,
            Self::Search { .. } => {
                let before = std::iter::once(0).chain(up.iter().copied());
                let halvings = |low: u32, high: u32| (high - low).next_power_of_two().trailing_zeros();
                let failing = (1..).zip(before.zip(&up)).map(|(tried, (low, &high))| tried + halvings(low, high));
                failing.max().unwrap_or(0).max(all)
            }
        }
    }
}

/// What one scale-up saw.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScaleUp {
    /// Each number of guests at which load was offered, in the order in which they were.
    pub levels: Vec<Level>,
    /// Why no more guests were added.
    pub stopped: Stopped,
    /// The host over time, once a second.
    pub course: Vec<CoursePoint>,
    /// The rate that each guest was offered, operations a second; `None` where load was not throttled.
    pub offered_per_guest_per_s: Option<f64>,
    /// Names of the guests that make one tile, in the order in which they are added, where guests are added by tiles; numbers of guests
    /// in `levels` are multiples of as many. Empty: each guest is like the others.
    pub tile: Vec<String>,
}

impl ScaleUp {
    /// The largest number of guests that held, 0 if none did.
    pub fn held(&self) -> u32 {
        self.levels.iter().filter(|level| level.failed.is_none()).map(|level| level.guests).max().unwrap_or(0)
    }
}

/// Load at one number of guests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Level {
    /// Guests at work.
    pub guests: u32,
    /// Why this number does not count as held (an objective missed, a guest lost, wrong work); `None`: it held.
    pub failed: Option<String>,
    /// The kind of the reason in `failed`; `None`: it held.
    pub cause: Option<StopKind>,
    /// Start and end of the measured window, CLOCK_MONOTONIC nanoseconds of the controller's host.
    pub window_ns: (u64, u64),
    /// Seconds from the last guest's readiness until merging and ballooning had settled; `None`: they had not when load was
    /// offered, or there was neither.
    pub settled_after_s: Option<f64>,
    /// By metric id, see [`metric`].
    pub metrics: BTreeMap<String, f64>,
    /// Response times of all guests, nanoseconds; what lies within one level of one trial may be merged.
    pub response: Histogram,
    /// What each guest contributed.
    pub parts: Vec<Part>,
    /// What merging had saved at the end of the window, by what it was.
    pub saved_from: SavedFrom,
    /// The kernel's counts at the end of the window.
    pub merge: MergeCounters,
}

impl Level {
    /// Whether its figures count: all guests worked to the end, and rightly, though an objective may have been missed. Those
    /// of a level at which a guest was lost, the host ran towards harm, or work was wrong are kept as evidence alone.
    pub fn worked(&self) -> bool {
        self.failed.is_none() || self.cause == Some(StopKind::Qos)
    }
}

/// Ids of the metrics of a level, in the units that they end in.
pub mod metric {
    /// Operations a second, all guests together.
    pub const OPERATIONS: &str = crate::metric::common::OPERATIONS;
    /// Operations a second of a guest, mean.
    pub const PER_GUEST: &str = "operations_per_guest_per_s";
    /// 99th percentile of the response time, all guests' operations of the window, seconds; absent with too few.
    pub const RESPONSE_P99: &str = crate::metric::common::RESPONSE_P99;
    /// Busy share of all CPUs of the host (0 to 1), steal left out.
    pub const HOST_CPU: &str = "host_cpu_share";
    /// CPU that the merging thread of the kernel took in the window, a share of one CPU.
    pub const SCANNER_CPU: &str = "merging_cpu_share";
    /// CPU that it took from the start of the scale-up to the end of the window, seconds.
    pub const SCANNER_CPU_S: &str = "merging_cpu_s";
    /// Memory of the host available at the end of the window (`MemAvailable`).
    pub const AVAILABLE: &str = "memory_available_bytes";
    /// Memory promised to all guests together.
    pub const PROMISED: &str = "memory_promised_bytes";
    /// Promised memory over the memory of the host: the overcommit ratio.
    pub const OVERCOMMIT: &str = "overcommit_ratio";
    /// Saved by merging, before the kernel's bookkeeping.
    pub const SAVED: &str = "merging_saved_bytes";
    /// Saved by merging, after it, as the kernel reckons.
    pub const PROFIT: &str = "merging_profit_bytes";
    /// Memory that guests were promised and have given back by their balloons, all together.
    pub const BALLOONED: &str = "ballooned_bytes";
    /// Memory that a guest has to itself, mean.
    pub const GUEST_UNIQUE: &str = "guest_unique_bytes";
    /// A guest's part of what it shares with others, mean.
    pub const GUEST_SHARED: &str = "guest_shared_bytes";
    /// What the host has less available than before the first guest, for each guest.
    pub const GUEST_COST: &str = "guest_cost_bytes";
    /// Seconds from the first act of making a guest to its agent's first answer, mean of the guests that were added to reach this number.
    pub const ADDED_START: &str = "added_guest_start_s";
    /// The largest number of guests that held: the primary metric of a scale-up.
    pub const HELD: &str = "guests_held";
    /// The largest number of tiles that held, where guests are added by tiles.
    pub const TILES_HELD: &str = "tiles_held";
    /// Of a member of a tile ([`member`]): units of work a second of its guest, mean of the tiles.
    pub const MEMBER_WORK: &str = "work_per_s";
    /// Of a member of a tile: the same as a share of what it was with one tile alone on the host. Absent where one tile was not measured.
    pub const MEMBER_SHARE: &str = "share_of_single";

    /// Those of the host under the guests and of its memory. Where guests are machines elsewhere there are none.
    pub const OF_THE_HOST: [&str; 12] = [
        HOST_CPU,
        SCANNER_CPU,
        SCANNER_CPU_S,
        AVAILABLE,
        PROMISED,
        OVERCOMMIT,
        SAVED,
        PROFIT,
        BALLOONED,
        GUEST_UNIQUE,
        GUEST_SHARED,
        GUEST_COST,
    ];

    /// Id of a metric of a member of a tile.
    pub fn member(name: &str, id: &str) -> String {
        format!("{name}:{id}")
    }
}

/// The metrics of a level, the primary one of a scale-up first. Those that end in `_share` are bare numbers from 0 to 1.
pub fn metric_specs() -> Vec<MetricSpec> {
    use Better::{Higher, Lower};
    use Unit::{Bytes, Count, OperationsPerSecond, Seconds};
    let metric = |(id, label, unit, better)| MetricSpec::new(id, label, unit, better);
    let mut all = vec![metric((metric::HELD, "guests held", Count, Higher)).primary()];
    let others = [
        (metric::OPERATIONS, "operations per second, all guests", OperationsPerSecond, Higher),
        (metric::PER_GUEST, "operations per second of a guest, mean", OperationsPerSecond, Higher),
        (metric::RESPONSE_P99, "response time, 99th percentile", Seconds, Lower),
        (metric::HOST_CPU, "busy share of the host's CPUs", Count, Lower),
        (metric::SCANNER_CPU, "CPU of merging, share of one CPU", Count, Lower),
        (metric::SCANNER_CPU_S, "CPU of merging since the first guest", Seconds, Lower),
        (metric::AVAILABLE, "memory available on the host", Bytes, Higher),
        (metric::PROMISED, "memory promised to all guests", Bytes, Higher),
        (metric::OVERCOMMIT, "memory promised over memory there", Count, Higher),
        (metric::SAVED, "memory saved by merging, before bookkeeping", Bytes, Higher),
        (metric::PROFIT, "memory saved by merging, after bookkeeping", Bytes, Higher),
        (metric::BALLOONED, "memory that guests gave back by their balloons", Bytes, Higher),
        (metric::GUEST_UNIQUE, "memory that a guest has to itself, mean", Bytes, Lower),
        (metric::GUEST_SHARED, "a guest's part of shared memory, mean", Bytes, Lower),
        (metric::GUEST_COST, "memory of the host that a guest costs", Bytes, Lower),
        (metric::ADDED_START, "start of a guest that was added, mean", Seconds, Lower),
    ];
    all.extend(others.map(metric));
    all
}

/// Why no more guests were added.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stopped {
    /// The kind.
    pub kind: StopKind,
    /// Guests that stood when it happened.
    pub guests: u32,
    /// What was seen, with the figures.
    pub detail: String,
}

/// A kind of stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopKind {
    /// The last number of the series was reached: the host may carry more.
    #[default]
    End,
    /// The next guest would have touched the reserve, or memory ran towards it.
    Memory,
    /// The host swapped.
    Swap,
    /// Tasks of the host waited for memory.
    Pressure,
    /// A guest was killed for memory, or ended by itself.
    Killed,
    /// A guest could not be started.
    Start,
    /// An objective was missed.
    Qos,
    /// The work of a guest was wrong.
    Wrong,
}

/// The host at one moment of a scale-up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CoursePoint {
    /// Seconds since the start of the scale-up.
    pub at_s: f64,
    /// Guests that stand.
    pub guests: u32,
    /// Whether load is offered.
    pub load: bool,
    /// `MemAvailable`, bytes.
    pub available_bytes: u64,
    /// Saved by merging, bytes.
    pub saved_bytes: u64,
    /// Profit as the kernel reckons, bytes.
    pub profit_bytes: i64,
    /// CPU of the merging thread since the start of the scale-up, seconds.
    pub scanner_cpu_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_grows_by_half_and_ends_at_its_most() {
        let search = GuestSeries::Search { from: 1, most: 10 };
        assert_eq!(search.scale_up(), [1, 2, 3, 5, 8, 10]);
        assert_eq!(GuestSeries::Search { from: 4, most: 4 }.scale_up(), [4]);
        let listed = GuestSeries::Listed(vec![1, 4, 8]);
        assert_eq!((listed.scale_up(), listed.most(), listed.after(4)), (vec![1, 4, 8], 8, Some(8)));
    }

    #[test]
    fn a_scale_up_offers_load_at_no_more_numbers_than_it_is_said_to() {
        assert_eq!(GuestSeries::Listed(vec![1, 4, 8]).levels_at_most(), 3);
        assert_eq!(GuestSeries::Search { from: 1, most: 1 }.levels_at_most(), 1);
        for (from, most) in [(1, 64), (8, 8), (3, 100), (1, 256)] {
            let series = GuestSeries::Search { from, most };
            // Whatever the largest number that holds is, the search as it is described needs no more.
            let needed = |holds: u32| {
                let (mut tried, mut low, mut next) = (0, 0, series.after(0));
                while let Some(guests) = next {
                    tried += 1;
                    if guests > holds {
                        let mut high = guests;
                        while high - low > 1 {
                            tried += 1;
                            let middle = low + (high - low) / 2;
                            if middle > holds { high = middle } else { low = middle }
                        }
                        break;
                    }
                    low = guests;
                    next = series.after(guests);
                }
                tried
            };
            assert_eq!((0..=most).map(needed).max(), Some(series.levels_at_most()), "{from} to {most}");
        }
    }

    #[test]
    fn a_tenth_of_the_host_is_kept_back_and_a_gibibyte_at_least() {
        let guests = GuestSeries::Listed(vec![1]);
        let (settle, rest, tile) = (Span::ZERO, Span::ZERO, Vec::new());
        let mut spec = DensitySpec { guests, tile, reserve: None, settle, rest, pressure: 0.4 };
        assert_eq!(spec.reserve_on(ByteSize(40 << 30)), ByteSize(4 << 30));
        assert_eq!(spec.reserve_on(ByteSize(4 << 30)), ByteSize(1 << 30));
        spec.reserve = Some(ByteSize(1 << 20));
        assert_eq!(spec.reserve_on(ByteSize(40 << 30)), ByteSize(1 << 20));
    }

    #[test]
    fn numbers_of_a_series_are_of_tiles_where_guests_make_some() {
        let guest = |name: &str, gib: u64| {
            let size = GuestSize { cpus: 1, memory: ByteSize(gib << 30) };
            TileGuest { name: name.into(), size }
        };
        let guests = GuestSeries::Listed(vec![1, 4]);
        let alike = DensitySpec {
            guests,
            tile: Vec::new(),
            reserve: None,
            settle: Span::ZERO,
            rest: Span::ZERO,
            pressure: 0.4,
        };
        let each = ByteSize(2 << 30);
        assert_eq!((alike.unit(), alike.most_guests(), alike.promised(each)), (1, 4, ByteSize(8 << 30)));
        let tiles = DensitySpec { tile: vec![guest("shop", 1), guest("db", 2), guest("app", 4)], ..alike };
        assert_eq!((tiles.unit(), tiles.most_guests(), tiles.promised(each)), (3, 12, ByteSize(28 << 30)));
    }

    #[test]
    fn guests_held_is_the_primary_metric_and_no_id_stands_twice() {
        let specs = metric_specs();
        let primary: Vec<&str> = specs.iter().filter(|spec| spec.primary).map(|spec| spec.id.as_str()).collect();
        assert_eq!(primary, [metric::HELD]);
        let ids: std::collections::BTreeSet<&str> = specs.iter().map(|spec| spec.id.as_str()).collect();
        assert_eq!(ids.len(), specs.len());
    }

    #[test]
    fn what_failed_is_not_held() {
        let level = |guests, failed: Option<&str>| Level { guests, failed: failed.map(Into::into), ..Level::default() };
        let mut scale_up =
            ScaleUp { levels: vec![level(1, None), level(8, Some("x")), level(4, None)], ..ScaleUp::default() };
        assert_eq!(scale_up.held(), 4);
        let ended = |cause| Level { cause: Some(cause), ..level(8, Some("x")) }.worked();
        assert!(level(1, None).worked() && ended(StopKind::Qos), "an objective that was missed was measured");
        assert!(![StopKind::Wrong, StopKind::Killed, StopKind::Memory, StopKind::Swap].into_iter().any(ended));
        scale_up.levels.clear();
        assert_eq!(scale_up.held(), 0);
    }
}
