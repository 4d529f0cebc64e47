//! Guests that are added by tiles, each a set of several workloads: how many hold, what each member does there, and which one ends it.

use std::collections::BTreeSet;

use tare_model::density::metric;
use tare_model::findings::{ArmDensity, CaseFindings, DensityFindings, Estimate, LevelFindings};
use tare_model::metric::{MetricSpec, Unit};
use tare_model::study::Case;

use super::case::{FigureView, Titled};
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::curves::{Chart, Line, Panel, Point};

/// Guests of one tile of a case; 0 where guests are not added by tiles.
pub(super) fn size(density: &DensityFindings) -> u32 {
    density.arms.iter().map(|arm| arm.tile.len() as u32).max().unwrap_or(0)
}

/// The members of the tile that a case adds, as its parameters name them: `shop, mail and java`. `None`: it adds none.
pub(super) fn members(case: &Case) -> Option<String> {
    let members = case.parameters.get("members").or_else(|| case.parameters.get("member"))?;
    let named = |member: &serde_json::Value| member.get("name").and_then(|name| name.as_str()).map(str::to_owned);
    let names: Vec<String> = match members {
        serde_json::Value::Array(all) => all.iter().filter_map(named).collect(),
        serde_json::Value::Object(all) => all.keys().cloned().collect(),
        _ => Vec::new(),
    };
    (!names.is_empty()).then(|| listed(&names))
}

/// `shop, mail and java`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// A case that adds tiles.
pub(super) struct Tiles<'a> {
    case: &'a CaseFindings,
    density: &'a DensityFindings,
    arms: &'a Arms,
    /// Names of the guests of one tile, in order.
    names: &'a [String],
}

impl<'a> Tiles<'a> {
    pub(super) fn new(case: &'a CaseFindings, arms: &'a Arms) -> Option<Self> {
        let density = case.density.as_ref()?;
        let names = &density.arms.iter().find(|arm| !arm.tile.is_empty())?.tile;
        Some(Self { case, density, arms, names })
    }

    fn shown(&self) -> impl Iterator<Item = (&'a ArmDensity, ArmLook)> + '_ {
        let density = self.density;
        let own = move |look: &ArmLook| Some((density.arms.iter().find(|arm| arm.arm == look.id)?, look.clone()));
        self.arms.iter().filter_map(own)
    }

    /// Whole tiles of so many guests.
    const fn tiles(&self, guests: u32) -> u32 {
        guests / self.names.len() as u32
    }

    /// `2 tiles`, or `2 tiles and 1 guest` where the last is not whole.
    fn stood(&self, guests: u32) -> String {
        let tiles = format::plural(u64::from(self.tiles(guests)), "tile", "tiles");
        match guests % self.names.len() as u32 {
            0 => tiles,
            rest => format!("{tiles} and {}", format::plural(u64::from(rest), "guest", "guests")),
        }
    }

    /// The members whose objectives failed, by what was seen: metrics of a member have its name before them.
    fn failed(&self, detail: &str) -> String {
        let own: Vec<&str> = self.names.iter().filter(|name| names(detail, name)).map(String::as_str).collect();
        own.join(", ")
    }

    /// Kinds of stop over the blocks, with the members that failed: `an objective was missed (shop)`.
    fn reasons(&self, arm: &ArmDensity) -> String {
        let kind = |(_, _, kind, detail): &(u32, u32, String, String)| match self.failed(detail) {
            none if none.is_empty() => kind.clone(),
            members => format!("{kind} ({members})"),
        };
        let kinds: BTreeSet<String> = arm.stopped.iter().map(kind).collect();
        kinds.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Levels of whole tiles, ascending.
    fn levels(&self, arm: &'a ArmDensity) -> impl Iterator<Item = (u32, &'a LevelFindings)> + '_ {
        arm.levels.iter().filter(|level| level.guests > 0).map(|level| (self.tiles(level.guests), level))
    }

    /// Metrics of a member that some level has, in order of their ids, with what is known of them.
    fn metrics(&self, member: &str) -> Vec<(String, Option<&'a MetricSpec>)> {
        let prefix = format!("{member}:");
        let levels = self.density.arms.iter().flat_map(|arm| &arm.levels);
        let ids: BTreeSet<&String> =
            levels.flat_map(|level| level.metrics.keys()).filter(|id| id.starts_with(&prefix)).collect();
        let spec = |id: &String| self.case.metrics.iter().map(|metric| &metric.spec).find(|spec| &spec.id == id);
        ids.into_iter().map(|id| (id.clone(), spec(id))).collect()
    }

    /// The tables that belong to the answer.
    pub(super) fn lead(&self) -> Vec<Titled> {
        vec![Titled { title: "How many tiles, and what ended it".to_owned(), table: self.carried() }]
    }

    fn carried(&self) -> Table {
        let host = match self.density.host_memory_bytes {
            0 => String::new(),
            bytes => format!(" on a host of {}", format::value(bytes as f64, &Unit::Bytes)),
        };
        let caption = format!(
            "The largest number of tiles{host} that held in every block. One tile: {}, {}. A number of tiles holds if \
             every member meets its objective in every tile.",
            format::plural(self.names.len() as u64, "guest", "guests"),
            listed(self.names)
        );
        let columns = vec![
            Column::text("Arm"),
            Column::numeric("Tiles"),
            Column::numeric("Guests"),
            Column::numeric("Overcommit"),
            Column::numeric("Host busy"),
            Column::text("Ended by"),
        ];
        let mut table = Table::new(caption, columns);
        for (arm, look) in self.shown() {
            let level = arm.levels.iter().find(|level| level.guests == arm.held);
            let of = |id: &str| level.and_then(|level| level.metrics.get(id));
            let bound = if arm.end_of_series && arm.held > 0 { "\u{2265} " } else { "" };
            let blocks: BTreeSet<u32> = arm.held_blocks.iter().map(|(_, held)| self.tiles(*held)).collect();
            let spread = match (blocks.first(), blocks.last()) {
                (Some(low), Some(high)) if low < high => format!("blocks: {low} to {high}"),
                _ => String::new(),
            };
            let overcommit = |ratio: &Estimate| Cell::text(format!("{}x", format::fixed(ratio.value, 2)));
            let detail = arm.stopped.iter().map(|(.., detail)| detail).find(|detail| !detail.is_empty());
            table.rows.push(vec![
                Cell { key: self.arms.key(&look.id), ..Cell::text(&look.label) },
                Cell::with_note(format!("{bound}{}", self.tiles(arm.held)), spread).strong(),
                Cell::text(arm.held.to_string()),
                of(metric::OVERCOMMIT).map_or_else(Cell::none, overcommit),
                of(metric::HOST_CPU).map_or_else(Cell::none, |found| estimate(found, &Unit::Share)),
                Cell::with_note(self.reasons(arm), detail.cloned().unwrap_or_default()),
            ]);
        }
        table
    }

    /// Numbers of tiles on any arm, ascending.
    fn numbers(&self) -> BTreeSet<u32> {
        let all = self.shown().flat_map(|(arm, _)| arm.levels.iter());
        all.filter(|level| level.guests > 0).map(|level| self.tiles(level.guests)).collect()
    }

    /// A line a metric of a member at a number of tiles, a column an arm.
    pub(super) fn by_member(&self) -> Option<Table> {
        let head = |look: &ArmLook| Column { key: self.arms.key(&look.id), ..Column::numeric(&look.label) };
        let heads = self.shown().map(|(_, look)| head(&look));
        let columns = [Column::text("Member, metric"), Column::numeric("Tiles")].into_iter().chain(heads).collect();
        let caption = "Metrics of each member as tiles are added: the worst of the tiles, with [interval]. In \
                       parentheses: per cent of the value of the same member in a single tile. \u{2717}: that number \
                       of tiles did not hold in every block.";
        let mut table = Table::new(caption, columns);
        for member in self.names {
            for (id, spec) in self.metrics(member) {
                let label = spec.map_or(id.as_str(), |spec| spec.label.as_str());
                let label =
                    label.strip_prefix(member.as_str()).map_or(label, |rest| rest.trim_start_matches([':', ' ']));
                for tiles in self.numbers() {
                    let name = Cell::text(format!("{member}: {label}"));
                    let cells = self.shown().map(|(arm, _)| self.cell(arm, tiles, &id, spec));
                    table.rows.push([name, Cell::text(tiles.to_string())].into_iter().chain(cells).collect());
                }
            }
        }
        table.filled()
    }

    fn cell(&self, arm: &ArmDensity, tiles: u32, id: &str, spec: Option<&MetricSpec>) -> Cell {
        let at = |wanted: u32| arm.levels.iter().find(|level| self.tiles(level.guests) == wanted);
        let Some(level) = at(tiles) else { return Cell::none() };
        let Some(found) = level.metrics.get(id) else { return Cell::none() };
        let unit = spec.map_or_else(|| guessed(id), |spec| spec.unit.clone());
        let parts = format::estimate_parts(found, &unit);
        let held = if level.held < level.tried { "\u{a0}\u{2717}" } else { "" };
        let is_share = id.ends_with(metric::MEMBER_SHARE);
        let single = at(1).filter(|_| tiles > 1 && !is_share).and_then(|level| level.metrics.get(id));
        let single = single.filter(|one| one.value > 0.0);
        let share = single.map(|one| format!(" ({} %)", format::fixed(100.0 * found.value / one.value, 0)));
        let value = format!("{}{}{held}", parts.value, share.unwrap_or_default());
        Cell::with_note(value, parts.interval.unwrap_or_default())
    }

    /// Response times of the members as tiles are added, a panel a metric.
    pub(super) fn figure(&self, id: &str) -> Option<FigureView> {
        let panels: Vec<Panel> = self.names.iter().flat_map(|member| self.panels(member)).collect();
        let title = "What each member does as tiles are added".to_owned();
        let chart = Chart {
            title: title.clone(),
            x_title: format!("tiles of {} guests ({})", self.names.len(), listed(self.names)),
            x_marked: self.numbers().into_iter().map(f64::from).collect(),
            height: 150.0,
            panels,
        };
        FigureView::new(
            title,
            "One panel per member and metric, each for the worst of the tiles. Marks: estimates over the blocks, with \
             their intervals; hollow: that number of tiles did not hold in every block. Dashed: the member\u{2019}s \
             objective.",
            chart.figure(id),
        )
    }

    /// The metrics of a member that its objectives bound, or else those in seconds; and what it still does of what it did in a single tile.
    fn panels(&self, member: &str) -> Vec<Panel> {
        let metrics = self.metrics(member);
        let bound = |id: &str| self.case.objectives.iter().find(|own| own.spec.id == id).map(|own| own.bound);
        let objectives = metrics.iter().any(|(id, _)| bound(id).is_some());
        let unit = |id: &str, spec: Option<&MetricSpec>| spec.map_or_else(|| guessed(id), |spec| spec.unit.clone());
        let shown = metrics.iter().filter(|(id, spec)| {
            let wanted = if objectives { bound(id).is_some() } else { unit(id, *spec) == Unit::Seconds };
            wanted || id.ends_with(metric::MEMBER_SHARE)
        });
        shown
            .map(|(id, spec)| {
                let label = spec.map_or(id.as_str(), |spec| spec.label.as_str());
                let label = if label.starts_with(member) { label.to_owned() } else { format!("{member}: {label}") };
                let lines = self.shown().map(|(arm, look)| {
                    let point = |(tiles, level): (u32, &LevelFindings)| {
                        let found = level.metrics.get(id)?;
                        let hollow = level.held < level.tried;
                        Some(Point { hollow, ..Point::new(f64::from(tiles), found) })
                    };
                    Line::new(look, self.levels(arm).filter_map(point).collect())
                });
                let objective = bound(id).map(|bound| (bound, "objective".to_owned()));
                Panel { bound: objective, ..Panel::new(label, unit(id, *spec), lines.collect()) }
            })
            .collect()
    }

    /// Each arm in a line, for a terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(arm, look): (&ArmDensity, ArmLook)| {
            let stood = arm.stopped.iter().map(|(_, guests, ..)| *guests).max().unwrap_or(arm.held);
            let detail = arm.stopped.iter().map(|(.., detail)| detail).find(|detail| !detail.is_empty());
            let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
            format!(
                "{}: {} of {} held ({} guests); {} running; ended by {}{detail}",
                look.label,
                format::plural(u64::from(self.tiles(arm.held)), "tile", "tiles"),
                listed(self.names),
                arm.held,
                self.stood(stood),
                self.reasons(arm)
            )
        };
        self.shown().map(line).collect()
    }
}

/// A figure with its interval below it.
fn estimate(estimate: &Estimate, unit: &Unit) -> Cell {
    let parts = format::estimate_parts(estimate, unit);
    Cell::with_note(parts.value, parts.interval.unwrap_or_default())
}

/// The unit that the end of an id tells, where the metric itself is not known.
fn guessed(id: &str) -> Unit {
    match id {
        id if id.ends_with(metric::MEMBER_SHARE) => Unit::Share,
        id if id.ends_with("_per_s") => Unit::OperationsPerSecond,
        id if id.ends_with("_s") => Unit::Seconds,
        id if id.ends_with("_bytes") => Unit::Bytes,
        _ => Unit::Count,
    }
}

/// Whether a text names a member's metric; a name that is the end of another's does not count.
fn names(text: &str, member: &str) -> bool {
    let metric = format!("{member}:");
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.match_indices(&metric).any(|(at, _)| !text[..at].ends_with(in_word))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn all_members_that_failed_are_named_and_no_other() {
        let seen = "web: response time was 7.6 s and should be at most 2 s; my-db: response time was 0.5 s";
        assert!(names(seen, "web") && names(seen, "my-db"));
        assert!(!names(seen, "db") && !names(seen, "response"), "the end of another's name is none");
    }
}
