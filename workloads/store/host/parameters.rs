//! Parameters of `store`.

use std::collections::BTreeMap;

use crate::store::spec::{StoreSize, StoreStatements};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::secret::SecretSource;
use tare_model::units::Rate;
use tare_model::{ByteSize, Span};

use super::url::Url;
use crate::Failure;
use crate::entry::read;
use crate::postgres::installation::EMBEDDED;
use crate::postgres::settings::{self, SettingValue};
use crate::secret;

/// Parameters of `store`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// Size of the database by the published scaling rule: sizes below 1GB scale from 10MB (20,000 customers, 1,000
    /// orders a month, 10,000 products), larger ones from 100GB (200 million, 10 million, 1 million).
    pub db_size: ByteSize,
    /// Seed of the rows: the same seed and size give the same database everywhere.
    pub seed: u64,
    /// Where the server's programs are, the same path on this host and in the guest, such as
    /// `/usr/lib/postgresql/15/bin`; `embedded`, the default: those that `make platforms` fetches, which guests with a
    /// root of their own are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<String>,
    /// A server that exists, `postgres://user:password@host:5432/database`; `{guest}` as the host stands for the guest's
    /// address; or, so that the study holds no password, where it is found: `{ from-env = "STORE_URL" }` or
    /// `{ from-file = "/path" }`. Nothing is started and no setting is changed: a schema `tare_store` is filled for each trial, and dropped
    /// after it. Without a password that of the environment variable `PGPASSWORD` is used, so that none stands in the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SecretSource>")]
    pub url: Option<SecretSource>,
    /// PostgreSQL's own settings, over the defaults of the published study (docs/reference/postgresql.md).
    #[schemars(with = "BTreeMap<String, Value>")]
    pub settings: BTreeMap<String, SettingValue>,
    /// `prepared`: each statement of an order is a round trip of its own; `functions`: each step of an order is.
    pub statements: StoreStatements,
    /// Share of the orders that are new customers', percent.
    pub new_customers: f64,
    /// Mean of the browses an order: their number is uniform on 1 to twice this less one.
    pub searches: u32,
    /// Mean of the rows a browse, likewise.
    pub search_batch: u32,
    /// Mean of the lines an order, likewise, and at most 10.
    pub line_items: u32,
    /// Each client starts at a moment uniform on 0 to this, in the warm-up.
    pub start_jitter: Span,
    /// Then clients start at this rate. Both are compressed into the warm-up where that is shorter.
    pub ramp_rate: Rate,
    /// What the verdict is about.
    pub verdict: VerdictOn,
    /// The server is killed (SIGKILL, with all its processes) this long into steady state and started again: its recovery
    /// is timed, and no order that was acknowledged may be lost. Absent: it is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_after: Option<Span>,
}

/// Which figure the verdict is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictOn {
    /// Orders a minute as published: those that were rolled back for want of stock are counted.
    #[default]
    OrdersPerMinute,
    /// Orders a minute that were committed.
    Goodput,
    /// Mean response time of an order.
    Mean,
    /// Its median.
    P50,
    /// Its 90th percentile.
    P90,
    /// Its 95th percentile.
    P95,
    /// Its 99th percentile.
    P99,
    /// Its 99.9th percentile.
    P999,
}

impl VerdictOn {
    /// Id of the metric.
    pub(super) const fn metric(self) -> &'static str {
        match self {
            Self::OrdersPerMinute => "orders_per_minute",
            Self::Goodput => "goodput_per_minute",
            Self::Mean => "response_time_mean_s",
            Self::P50 => "response_time_p50_s",
            Self::P90 => "response_time_p90_s",
            Self::P95 => "response_time_p95_s",
            Self::P99 => "response_time_p99_s",
            Self::P999 => "response_time_p999_s",
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            db_size: ByteSize(10_000_000),
            seed: 1,
            postgres: None,
            url: None,
            settings: BTreeMap::new(),
            statements: StoreStatements::Prepared,
            new_customers: 20.0,
            searches: 3,
            search_batch: 5,
            line_items: 5,
            start_jitter: Span::from_secs(10),
            ramp_rate: Rate(10.0),
            verdict: VerdictOn::OrdersPerMinute,
            kill_after: None,
        }
    }
}

impl Parameters {
    /// Rows that the store begins with.
    pub(super) fn size(&self) -> StoreSize {
        StoreSize::of(self.db_size)
    }

    /// The server that exists; `None` where one is started.
    ///
    /// # Errors
    /// When its address is not found, or is none.
    pub(super) fn server(&self) -> Result<Option<Url>, Failure> {
        let read = |source: &SecretSource| secret::resolve(source).and_then(|url| Url::read(url.reveal()));
        self.url.as_ref().map(read).transpose().map_err(|error| {
            let remedy = error.help.unwrap_or_else(|| "mend `url`".to_owned());
            Failure::new("find the address of the server (`url`)", error.message, remedy)
        })
    }
}

/// Least and largest database. Below, there are fewer than a thousand customers; above, the numbers of customers come near
/// what PostgreSQL's `integer` holds.
const DB_BYTES: (u64, u64) = (1_000_000, 1_000_000_000_000);
/// Largest mean of what an order has several of: nobody browses more, and it bounds what a driver prepares.
const MEAN_MAX: u32 = 1000;

/// The parameters with every default filled in, or what is wrong with them.
pub(super) fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let mut read: Parameters = read(parameters)?;
    if !(DB_BYTES.0..=DB_BYTES.1).contains(&read.db_size.0) {
        return Err(FieldError::new(&["db-size"], format!("{} is not between 1MB and 1TB", read.db_size))
            .help("the published sizes are 10MB, 1GB and 100GB; the published study used 4GB"));
    }
    if !(0.0..=100.0).contains(&read.new_customers) {
        return Err(FieldError::new(&["new-customers"], format!("{} is not between 0 and 100 %", read.new_customers)));
    }
    for (field, mean) in
        [("searches", read.searches), ("search-batch", read.search_batch), ("line-items", read.line_items)]
    {
        if !(1..=MEAN_MAX).contains(&mean) {
            return Err(FieldError::new(&[field], format!("a mean of {mean} is not between 1 and {MEAN_MAX}")));
        }
    }
    for (name, value) in &read.settings {
        settings::check(name, &value.0).map_err(|error| error.within(&["settings", name]))?;
    }
    if read.kill_after == Some(Span::ZERO) {
        return Err(FieldError::new(&["kill-after"], "0s would kill the server before anything was measured"));
    }
    match (&read.url, &read.postgres) {
        (None, None) => read.postgres = Some(EMBEDDED.to_owned()),
        (None, Some(place)) if place == EMBEDDED || place.starts_with('/') => {}
        (None, Some(place)) => {
            return Err(FieldError::new(
                &["postgres"],
                format!("`{place}` is neither `{EMBEDDED}` nor an absolute path"),
            )
            .help("write the directory that has postgres, initdb and pg_ctl: \"/usr/lib/postgresql/15/bin\""));
        }
        (Some(url), _) => with_url(&read, url)?,
    }
    Ok(read)
}

/// What cannot be together with a server that exists.
fn with_url(read: &Parameters, url: &SecretSource) -> Result<(), FieldError> {
    let looked = match url {
        SecretSource::Given(url) => Url::read(url).map(drop),
        SecretSource::Env(_) | SecretSource::File(_) => secret::look(url),
    };
    looked.map_err(|error| error.within(&["url"]))?;
    let other = "a server that exists (`url`) is neither started nor set up";
    if read.postgres.is_some() {
        return Err(FieldError::new(&["postgres"], other).help("leave `postgres` or `url` out"));
    }
    if !read.settings.is_empty() {
        return Err(FieldError::new(&["settings"], other).help("change its settings in its own configuration"));
    }
    if read.kill_after.is_some() {
        return Err(FieldError::new(&["kill-after"], "a server that exists (`url`) is not killed")
            .help("leave `kill-after` or `url` out"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_defaults_are_those_of_the_published_driver() {
        let read = checked(&json!({})).unwrap();
        assert_eq!((read.db_size.0, read.new_customers, read.searches), (10_000_000, 20.0, 3));
        assert_eq!((read.search_batch, read.line_items, read.ramp_rate.0), (5, 5, 10.0));
        assert_eq!((read.start_jitter, read.postgres.as_deref()), (Span::from_secs(10), Some("embedded")));
        assert_eq!(read.verdict.metric(), "orders_per_minute");
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let url = "postgres://u:p@{guest}/db";
        for (parameters, path) in [
            (json!({"db-size": "10kB"}), vec!["db-size"]),
            (json!({"db-size": "2TB"}), vec!["db-size"]),
            (json!({"new-customers": 101}), vec!["new-customers"]),
            (json!({"searches": 0}), vec!["searches"]),
            (json!({"line-items": 5000}), vec!["line-items"]),
            (json!({"postgres": "usr/bin"}), vec!["postgres"]),
            (json!({"settings": {"port": 5433}}), vec!["settings", "port"]),
            (json!({"settings": {"work mem": "1MB"}}), vec!["settings", "work mem"]),
            (json!({"settings": {"work_mem": [1]}}), vec!["settings", "work_mem"]),
            (json!({"kill-after": "0s"}), vec!["kill-after"]),
            (json!({"url": url, "postgres": "embedded"}), vec!["postgres"]),
            (json!({"url": url, "settings": {"work_mem": "1MB"}}), vec!["settings"]),
            (json!({"url": url, "kill-after": "1s"}), vec!["kill-after"]),
            (json!({"url": "postgres://u:p@h/db?sslmode=require"}), vec!["url"]),
            (json!({"ramp-rate": "0/s"}), vec!["ramp-rate"]),
            (json!({"verdict": "p42"}), vec!["verdict"]),
        ] {
            assert_eq!(checked(&parameters).unwrap_err().path, path, "{parameters}");
        }
    }

    #[test]
    fn settings_may_be_written_as_what_they_are() {
        let read = checked(&json!({"settings": {"fsync": false, "max_connections": 300, "work_mem": "8MB"}})).unwrap();
        let values: Vec<&str> = read.settings.values().map(|value| value.0.as_str()).collect();
        assert_eq!(values, ["off", "300", "8MB"]);
        let normal = serde_json::to_value(&read).unwrap();
        assert_eq!(normal["settings"]["fsync"], "off");
        assert_eq!(serde_json::to_value(checked(&normal).unwrap()).unwrap(), normal);
    }
}
