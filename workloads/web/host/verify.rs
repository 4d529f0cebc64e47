//! Whether what was served was right, and whether the backend could have been the limit.

use crate::faults;
use crate::web::spec::{Body, SiteModel, WebDone};
use serde::Deserialize;
use tare_model::trial::{Flag, RequestType};
use tare_wire::ServeReport;

use super::figures::{p99_s, total};
use super::parameters::Parameters;
use super::users::Stay;

/// The backend is flagged when the 99th percentile of its times, beyond the delay that it was asked for, is more than this share
/// of the bound for a good page: then it is a part of response times that can be seen.
const BACKEND_TIME: f64 = 0.01;
/// Or when it used more than this much of a CPU: queues before it grow from there on.
const BACKEND_CPU: f64 = 0.7;
/// Standard deviations of a share that chance is allowed.
const CHANCE: f64 = 3.0;

/// What the server counted itself, all phases. docs/reference/web.md has the names.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    pub pages: u64,
    pub files: u64,
    pub not_modified: u64,
    pub errors: u64,
    pub sessions_most: u64,
    pub backend_calls: u64,
    pub backend_errors: u64,
    pub backend_seconds: f64,
    pub backend_p99_seconds: Option<f64>,
    pub heap_used_bytes: u64,
    pub collections: u64,
    pub collection_seconds: f64,
    pub cpu_seconds: f64,
}

impl Stats {
    /// What was counted since it was asked `before`. What is no sum stays as it is: of the server's whole life.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            pages: self.pages.saturating_sub(before.pages),
            files: self.files.saturating_sub(before.files),
            not_modified: self.not_modified.saturating_sub(before.not_modified),
            errors: self.errors.saturating_sub(before.errors),
            backend_calls: self.backend_calls.saturating_sub(before.backend_calls),
            backend_errors: self.backend_errors.saturating_sub(before.backend_errors),
            backend_seconds: self.backend_seconds - before.backend_seconds,
            collections: self.collections.saturating_sub(before.collections),
            collection_seconds: self.collection_seconds - before.collection_seconds,
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            ..self.clone()
        }
    }
}

/// Pages that the drivers saw and found right, in the window: requests of types that are made of pages alone.
pub(super) fn right_pages(site: &SiteModel, types: &[RequestType]) -> u64 {
    let is_page = |name: &str| {
        let index = site.types.iter().position(|known| known == name);
        let mut states = site.states.iter().filter(|state| Some(usize::from(state.counted_as)) == index).peekable();
        states.peek().is_some() && states.all(|state| matches!(state.body, Body::Page { .. }))
    };
    let of_pages = types.iter().filter(|one| is_page(&one.name));
    of_pages.map(|one| one.requests.saturating_sub(one.validation_errors)).sum()
}

/// What is wrong with what was served, if the figures must not be used. The backend `answered` so many requests.
pub(super) fn wrong(
    parameters: &Parameters,
    site: &SiteModel,
    done: &WebDone,
    server: Option<&Stats>,
    answered: u64,
) -> Option<String> {
    let all = total(&done.types);
    if all.requests == 0 {
        return Some("no page was completed in steady state".to_owned());
    }
    let share = all.validation_errors as f64 / all.requests as f64;
    if share > parameters.validation_errors_max {
        return Some(format!(
            "{} of {} requests ({:.2} %) had a wrong answer or none, more than {:.2} % ({})",
            all.validation_errors,
            all.requests,
            share * 100.0,
            parameters.validation_errors_max * 100.0,
            faults::shown(&done.faults)
        ));
    }
    if all.requests == all.validation_errors {
        return Some(format!("no page was right ({})", faults::shown(&done.faults)));
    }
    let pages = right_pages(site, &done.types);
    if answered < pages {
        return Some(format!(
            "the backend answered {answered} requests, fewer than the {pages} pages that the drivers found right: pages were not \
             asked of it anew"
        ));
    }
    match server {
        Some(stats) if stats.pages < pages => Some(format!(
            "the server counts {} pages, fewer than the {pages} that the drivers found right",
            stats.pages
        )),
        _ => None,
    }
}

/// What a reader must know.
pub(super) fn flags(
    parameters: &Parameters,
    site: &SiteModel,
    done: &WebDone,
    backend: Option<&ServeReport>,
    wall_s: f64,
) -> Vec<Flag> {
    let all = total(&done.types);
    let flag = |kind: &str, detail: String| Flag { kind: kind.to_owned(), detail };
    let mut found = Vec::new();
    if all.validation_errors > 0 {
        let detail = format!(
            "{} of {} requests had a wrong answer or none: {}",
            all.validation_errors,
            all.requests,
            faults::shown(&done.faults)
        );
        found.push(flag("validation-errors", detail));
    }
    found.extend(mix(parameters, site, &done.types, all.requests).map(|detail| flag("mix", detail)));
    let few = done.types.iter().filter(|one| one.requests < parameters.least_requests);
    let few: Vec<String> = few.map(|one| format!("{} {}", one.requests, one.name)).collect();
    if !few.is_empty() {
        let detail = format!("fewer than {} requests of a type: {}", parameters.least_requests, few.join(", "));
        found.push(flag("few-requests", detail));
    }
    let limit = backend.and_then(|backend| backend_limit(parameters, site, backend, wall_s));
    found.extend(limit.map(|detail| flag(tare_model::flag::BACKEND_LIMIT, detail)));
    found
}

/// The type whose share is farthest beyond what is allowed, for people.
fn mix(parameters: &Parameters, site: &SiteModel, types: &[RequestType], requests: u64) -> Option<String> {
    let all = requests as f64;
    let off = types.iter().filter_map(|one| {
        let target = one.target?;
        let share = one.requests as f64 / all;
        let chance = CHANCE * (target * (1.0 - target) / all).sqrt();
        let beyond = (share - target).abs() - parameters.mix_deviation_max - chance;
        (beyond > 0.0).then_some((beyond, one, share, target, chance))
    });
    let (_, one, share, target, chance) = off.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!(
        "{:.2} % of requests were {}, the target is {:.2} %: farther than {:.2} points and {:.2} for chance. A session of \
         this site lasts at least {:.0} s on average, and all begin with the pages that come first: ramp-up, warm-up and steady state \
         of several times that mend it; a first look may do without",
        share * 100.0,
        one.name,
        target * 100.0,
        parameters.mix_deviation_max * 100.0,
        chance * 100.0,
        Stay::of(site).thinking_s
    ))
}

/// Why the backend could have been the limit, if it could.
fn backend_limit(parameters: &Parameters, site: &SiteModel, backend: &ServeReport, wall_s: f64) -> Option<String> {
    let delay_s = parameters.backend_delay.as_secs_f64();
    let most_s = site.pages.good_ns as f64 / 1e9 * BACKEND_TIME;
    if let Some(p99) = p99_s(&backend.service).filter(|p99| p99 - delay_s > most_s) {
        return Some(format!(
            "99 % of its answers took up to {:.1} ms beyond its delay, more than {:.1} ms ({} % of the bound for a good page)",
            (p99 - delay_s) * 1e3,
            most_s * 1e3,
            BACKEND_TIME * 100.0
        ));
    }
    let cores = backend.cpu_ns as f64 / 1e9 / wall_s;
    (wall_s > 0.0 && cores > BACKEND_CPU)
        .then(|| format!("it used {:.0} % of a CPU, more than {:.0} %", cores * 100.0, BACKEND_CPU * 100.0))
}

#[cfg(test)]
mod tests;
