//! Runs in and out of the tables of a history.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use tare_model::findings::Estimate;
use tare_model::history::{Effect, RunEffects};
use tare_model::metric::MetricSpec;

use crate::store::names::{better_name, better_of, unit_name, unit_of};
use crate::store::word;

pub(super) fn insert(db: &Connection, run: &RunEffects) -> rusqlite::Result<()> {
    db.execute(
        "INSERT INTO runs (run_id, root_hash, study, started_at, tare_version) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![run.run, run.root_hash, run.study, run.started_at, run.tare_version],
    )?;
    let id = db.last_insert_rowid();
    let mut fact = db.prepare("INSERT INTO facts (run, position, name, value, splits) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let facts = run.host.iter().map(|fact| (fact, true)).chain(run.notes.iter().map(|fact| (fact, false)));
    for (position, ((name, value), splits)) in facts.enumerate() {
        fact.execute(params![id, position as i64, name, value, splits])?;
    }
    let mut effect = db.prepare(
        "INSERT INTO effects (run, position, case_id, case_label, arm, arm_label, baseline, metric, metric_label, unit, better,
                              is_primary, plan, arm_plan, ratio, low, high, level, n, method, fault)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
    )?;
    for (position, own) in run.effects.iter().enumerate() {
        let (metric, ratio) = (&own.metric, &own.ratio);
        effect.execute(params![
            id,
            position as i64,
            own.case,
            own.case_label,
            own.arm,
            own.arm_label,
            own.baseline,
            metric.id,
            metric.label,
            unit_name(&metric.unit),
            better_name(metric.better),
            metric.primary,
            own.plan,
            own.arm_plan,
            ratio.value,
            ratio.low,
            ratio.high,
            ratio.level,
            ratio.n,
            ratio.method,
            own.fault,
        ])?;
    }
    Ok(())
}

pub(super) fn read(db: &Connection) -> rusqlite::Result<Vec<RunEffects>> {
    let mut runs: BTreeMap<i64, RunEffects> = db
        .prepare("SELECT run, run_id, root_hash, study, started_at, tare_version FROM runs")?
        .query_map([], |row| Ok((row.get(0)?, head(row)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut facts = db.prepare("SELECT run, name, value, splits FROM facts ORDER BY run, position")?;
    let mut rows = facts.query([])?;
    while let Some(row) = rows.next()? {
        let Some(run) = runs.get_mut(&row.get(0)?) else { continue };
        let facts = if row.get(3)? { &mut run.host } else { &mut run.notes };
        facts.push((row.get(1)?, row.get(2)?));
    }
    let mut effects = db.prepare(
        "SELECT run, case_id, case_label, arm, arm_label, baseline, metric, metric_label, unit, better, is_primary, plan, arm_plan,
                ratio, low, high, level, n, method, fault
         FROM effects ORDER BY run, position",
    )?;
    let mut rows = effects.query([])?;
    while let Some(row) = rows.next()? {
        let Some(run) = runs.get_mut(&row.get(0)?) else { continue };
        run.effects.push(effect(row)?);
    }
    Ok(runs.into_values().collect())
}

fn head(row: &Row<'_>) -> rusqlite::Result<RunEffects> {
    Ok(RunEffects {
        run: row.get(1)?,
        root_hash: row.get(2)?,
        study: row.get(3)?,
        started_at: row.get(4)?,
        tare_version: row.get(5)?,
        ..RunEffects::default()
    })
}

fn effect(row: &Row<'_>) -> rusqlite::Result<Effect> {
    Ok(Effect {
        case: row.get(1)?,
        case_label: row.get(2)?,
        arm: row.get(3)?,
        arm_label: row.get(4)?,
        baseline: row.get(5)?,
        metric: MetricSpec {
            id: row.get(6)?,
            label: row.get(7)?,
            unit: word(row, 8, unit_of)?,
            better: word(row, 9, better_of)?,
            primary: row.get(10)?,
        },
        plan: row.get(11)?,
        arm_plan: row.get(12)?,
        ratio: Estimate {
            value: row.get(13)?,
            low: row.get(14)?,
            high: row.get(15)?,
            level: row.get(16)?,
            n: row.get(17)?,
            method: row.get(18)?,
        },
        fault: row.get(19)?,
    })
}
