//! The numbers of searches, request types, resources, score and audit.

use tare_model::audit::AuditOutcome;
use tare_model::findings::{Findings, RequestRow, RequestTable};

use super::{Writer, interval, label, number, optional};

/// The files that there is something for.
pub(super) fn files(findings: &Findings) -> Vec<(String, String)> {
    let cases = &findings.cases;
    let mut files = Vec::new();
    let mut add = |name: &str, there: bool, content: fn(&Findings) -> String| {
        if there {
            files.push((name.to_owned(), content(findings)));
        }
    };
    add("searches.csv", cases.iter().any(|case| !case.capacity.is_empty()), searches);
    add("requests.csv", cases.iter().any(|case| !case.requests.is_empty()), requests);
    add("resources.csv", cases.iter().any(|case| !case.resources.is_empty()), resources);
    add("score.csv", findings.score.is_some(), score);
    add("audit.csv", !findings.audit.is_empty(), audit);
    files
}

fn searches(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case", "arm", "block", "try", "load", "held", "why_not", "capacity", "missed", "ended", "label",
    ]);
    for (case, arm) in findings.cases.iter().flat_map(|case| case.capacity.iter().map(move |arm| (case, arm))) {
        for search in &arm.searches {
            for (n, (load, why)) in search.tried.iter().enumerate() {
                let mut fields = vec![case.id.clone(), arm.arm.clone(), search.block.to_string(), (n + 1).to_string()];
                fields.extend([number(*load), why.is_none().to_string(), why.clone().unwrap_or_default()]);
                fields.extend([number(search.held), optional(search.missed), search.ended.clone()]);
                fields.push(label(findings, &arm.arm));
                out.record(fields);
            }
        }
    }
    out.0
}

fn requests(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case",
        "arm",
        "block",
        "iteration",
        "load",
        "window_s",
        "met",
        "type",
        "requests",
        "good",
        "tolerable",
        "failed",
        "validation_errors",
        "bytes",
        "response_s",
        "weighted_bytes_per_s",
        "mean_response_s",
        "p99_s",
        "bytes_per_request",
        "target",
        "label",
    ]);
    for (case, arm) in findings.cases.iter().flat_map(|case| case.requests.iter().map(move |arm| (case, arm))) {
        let label = label(findings, &arm.arm);
        for table in &arm.iterations {
            for row in table.rows.iter().chain([&table.total]) {
                let mut fields = vec![case.id.clone(), arm.arm.clone()];
                fields.extend(request(table, row));
                fields.push(label.clone());
                out.record(fields);
            }
        }
    }
    out.0
}

fn request(table: &RequestTable, row: &RequestRow) -> Vec<String> {
    let counts = &row.counts;
    let mut fields = vec![table.block.to_string(), table.iteration.to_string(), number(table.load)];
    fields.extend([number(table.window_s), table.met.to_string(), counts.name.clone()]);
    let whole = [counts.requests, counts.good, counts.tolerable, counts.failed, counts.validation_errors, counts.bytes];
    fields.extend(whole.iter().map(u64::to_string));
    // Of no request there is no mean.
    let mean = |value: f64| optional((counts.requests > 0).then_some(value));
    fields.extend([number(counts.response_s), number(row.weighted_byte_rate), mean(row.response_s)]);
    fields.extend([optional(row.p99_s), mean(row.bytes_per_request), optional(counts.target)]);
    fields
}

fn resources(findings: &Findings) -> String {
    let mut out = Writer::new(&["case", "arm", "load", "resource", "value", "label"]);
    for (case, own) in findings.cases.iter().flat_map(|case| case.resources.iter().map(move |own| (case, own))) {
        let share = |shares: Option<[f64; 4]>, i: usize| shares.map(|all| all[i]);
        let figures = [
            ("response_s", own.response_s),
            ("host_cpu_cores", own.host_cpu_cores),
            ("guest_user_cores", own.guest_cpu_cores.map(|both| both.0)),
            ("guest_system_cores", own.guest_cpu_cores.map(|both| both.1)),
            ("host_user_share", share(own.host_cpu_shares, 0)),
            ("host_system_share", share(own.host_cpu_shares, 1)),
            ("host_idle_share", share(own.host_cpu_shares, 2)),
            ("host_waiting_share", share(own.host_cpu_shares, 3)),
            ("inside_user_share", share(own.inside_cpu_shares, 0)),
            ("inside_system_share", share(own.inside_cpu_shares, 1)),
            ("inside_idle_share", share(own.inside_cpu_shares, 2)),
            ("inside_waiting_share", share(own.inside_cpu_shares, 3)),
            ("network_bits_per_s", own.network_bits_per_s),
            ("disk_s", own.disk_s),
            ("memory_bytes", own.memory_bytes),
            ("swapped_in_bytes", own.swapped_bytes.map(|both| both.0)),
            ("swapped_out_bytes", own.swapped_bytes.map(|both| both.1)),
        ];
        for (name, value) in figures.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            let head = vec![case.id.clone(), own.arm.clone(), number(own.load), name.to_owned()];
            out.record([head, vec![number(value), label(findings, &own.arm)]].concat());
        }
    }
    out.0
}

fn score(findings: &Findings) -> String {
    let mut out = Writer::new(&["arm", "figure", "value", "low", "high", "level", "n", "method", "label"]);
    let Some(score) = &findings.score else { return out.0 };
    let all = score.arms.iter().map(|own| ("score", own)).chain(score.ratios.iter().map(|own| ("ratio", own)));
    for (figure, (arm, estimate)) in all {
        let mut fields = vec![arm.clone(), figure.to_owned()];
        fields.extend(interval(estimate));
        fields.extend([estimate.method.clone(), label(findings, arm)]);
        out.record(fields);
    }
    out.0
}

fn audit(findings: &Findings) -> String {
    let mut out = Writer::new(&["check", "outcome", "case", "arms", "detail", "consequence"]);
    for entry in &findings.audit {
        let outcome = match entry.outcome {
            AuditOutcome::Holds => "holds",
            AuditOutcome::Unknown => "unknown",
            AuditOutcome::Reservation => "reservation",
            AuditOutcome::Broken => "broken",
        };
        out.record(vec![
            entry.check.name().to_owned(),
            outcome.to_owned(),
            entry.case.clone(),
            entry.arms.join(" "),
            entry.detail.clone(),
            entry.consequence.clone(),
        ]);
    }
    out.0
}
