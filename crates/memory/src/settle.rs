//! Whether merging has come to its end.

use tare_model::merging::MergeCounters;

use crate::Guests;

/// Whole passes that must bring nothing.
const PASSES: u64 = 2;
/// Growth of what is saved that counts as something: this share of it.
const GROWTH: f64 = 0.01;
/// Growth below this is chance, however little is saved: guests at work make and break a few equal pages all the time.
const FLOOR_BYTES: u64 = 1 << 20;
/// Savings of less than this share of what they were are reckoned from anew: a guest has gone, or the kernel still counted those of
/// processes that had gone before. A smaller loss is made up for by chance, and is no growth then.
const FEW: f64 = 0.9;
/// Guests that took so much more than before have touched new pages: this share of it, and these bytes at least.
const NEW_SHARE: f64 = 0.01;
const NEW_BYTES: u64 = 64 << 20;

/// Tells from the counters whether merging has come to its end: the scanner has gone over all memory twice, from end to end, and
/// what is saved has grown by less than a hundredth. Where nothing can be merged, that is so after two passes, too. What was
/// settled stays so until guests take more memory or are promised more, or more is saved after all.
#[derive(Debug, Clone)]
pub struct Settled {
    page: u64,
    since: Option<Mark>,
    anew: bool,
}

/// From where growth is reckoned.
#[derive(Debug, Clone, Copy)]
struct Mark {
    full_scans: u64,
    saved_bytes: u64,
    touched_bytes: u64,
    promised_bytes: u64,
}

impl Settled {
    /// Nothing was seen yet. `page`: bytes of a page.
    pub const fn new(page: u64) -> Self {
        Self { page, since: None, anew: true }
    }

    /// Looks again; true if merging has come to its end.
    pub fn see(&mut self, counters: &MergeCounters, guests: &Guests) -> bool {
        let now = Mark {
            full_scans: counters.full_scans,
            saved_bytes: counters.saved(self.page).0,
            touched_bytes: touched(counters, guests, self.page),
            promised_bytes: guests.promised_bytes,
        };
        match &mut self.since {
            Some(since) if !since.is_outdone_by(&now) => {
                // Less than there was, such as after a guest has gone: growth counts from there.
                since.touched_bytes = since.touched_bytes.min(now.touched_bytes);
                if (now.saved_bytes as f64) < since.saved_bytes as f64 * FEW {
                    since.saved_bytes = now.saved_bytes;
                }
                // The first pass that ends was not whole: it had begun before.
                self.anew = false;
                now.full_scans > since.full_scans + PASSES
            }
            since => {
                *since = Some(now);
                self.anew = true;
                false
            }
        }
    }

    /// Whether the last look saw something new, from which it then counted.
    pub(crate) const fn began_anew(&self) -> bool {
        self.anew
    }

    /// Forgets what was seen: two passes count from the next look on.
    pub const fn restart(&mut self) {
        self.since = None;
    }
}

impl Mark {
    fn is_outdone_by(&self, now: &Self) -> bool {
        let least = FLOOR_BYTES.max((self.saved_bytes as f64 * GROWTH) as u64);
        now.saved_bytes >= self.saved_bytes + least
            || now.promised_bytes != self.promised_bytes
            || is_new(self.touched_bytes, now.touched_bytes)
    }
}

/// What guests have taken. Empty pages that were merged are no longer resident, yet they were.
pub(crate) const fn touched(counters: &MergeCounters, guests: &Guests, page: u64) -> u64 {
    guests.resident_bytes + counters.zero_pages * page
}

/// Whether guests have taken so much more that it must be looked at.
pub(crate) fn is_new(before: u64, now: u64) -> bool {
    now >= before + NEW_BYTES.max((before as f64 * NEW_SHARE) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;
    const MIB: u64 = 1 << 20;

    fn counters(full_scans: u64, saved_mib: u64, zero_mib: u64) -> MergeCounters {
        let pages_sharing = (saved_mib - zero_mib) * 256;
        MergeCounters { full_scans, pages_sharing, zero_pages: zero_mib * 256, ..MergeCounters::default() }
    }

    fn guests(resident_mib: u64) -> Guests {
        Guests { resident_bytes: resident_mib * MIB, promised_bytes: 8 << 30, ..Guests::default() }
    }

    #[test]
    fn two_whole_passes_after_the_last_growth() {
        let mut settled = Settled::new(PAGE);
        let mut see = |full_scans, saved| settled.see(&counters(full_scans, saved, 0), &guests(4000));
        // The pass that ends as 8 had begun before the first look.
        assert!(!see(7, 0) && !see(8, 0) && !see(9, 600));
        assert!(!see(10, 602) && !see(11, 605), "within a hundredth, but two passes have not ended");
        assert!(!see(11, 606), "a hundredth");
        assert!(!see(12, 606) && !see(13, 606) && see(14, 606));
        assert!(see(15, 500), "what is lost is no growth");
        assert!(see(16, 504) && !see(17, 520), "what is won after a great loss is");
        assert!(see(20, 470) && see(21, 520), "what makes up for a small one is not");
    }

    #[test]
    fn nothing_to_merge_is_settled_after_two_passes() {
        let mut settled = Settled::new(PAGE);
        let mut see = |full_scans| settled.see(&counters(full_scans, 0, 0), &guests(4000));
        assert!(!see(0) && !see(1) && !see(2) && see(3));
    }

    #[test]
    fn guests_that_take_more_begin_it_anew() {
        let mut settled = Settled::new(PAGE);
        assert!(!settled.see(&counters(0, 100, 0), &guests(4000)));
        assert!(settled.see(&counters(3, 100, 0), &guests(4000)) && !settled.began_anew());
        assert!(settled.see(&counters(3, 100, 0), &guests(4063)));
        assert!(!settled.see(&counters(3, 100, 0), &guests(4064)) && settled.began_anew());
        assert!(settled.see(&counters(6, 100, 0), &guests(4064)));
        // One that has gone, and the next in its place.
        assert!(settled.see(&counters(6, 100, 0), &guests(3000)));
        assert!(!settled.see(&counters(6, 100, 0), &guests(4000)));
        // A promise counts before anything is taken.
        assert!(settled.see(&counters(9, 100, 0), &guests(4000)));
        let promised = Guests { promised_bytes: 9 << 30, ..guests(4000) };
        assert!(!settled.see(&counters(9, 100, 0), &promised));
    }

    #[test]
    fn empty_pages_that_are_merged_are_not_resident_and_yet_taken() {
        let mut settled = Settled::new(PAGE);
        assert!(!settled.see(&counters(0, 500, 500), &guests(4000)));
        // A new guest of 400 MiB, while 400 MiB of the others were merged: nothing more is resident.
        assert!(!settled.see(&counters(3, 900, 900), &guests(4000)));
    }
}
