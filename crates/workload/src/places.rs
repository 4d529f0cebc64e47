//! Places beside a guest for what serves it and is not measured.

use std::net::IpAddr;

use tare_model::guest::DataPlace;
use tare_wire::Link;

/// A place on the host for what a guest uses, with an address of its own on the lab's network, beside the drivers and not in any guest's
/// account.
#[derive(Clone, Copy, Debug)]
pub struct ServicesSite<'a> {
    /// Its agent.
    pub link: &'a Link,
    /// Its address, seen from guest and client, which it can also bind to.
    pub address: IpAddr,
    /// Where it finds the data that [`crate::Workload::data`] gave it; `None` where there are none.
    pub data: Option<&'a DataPlace>,
}

/// A place for what a guest asks the driver's side for, such as a simulated backend: beside its first driver, or on the host that the study names for
/// that.
#[derive(Clone, Copy, Debug)]
pub struct BackendSite<'a> {
    /// Its agent.
    pub link: &'a Link,
    /// Its address, seen from the guest; `None` where that is not known.
    pub address: Option<IpAddr>,
    /// The address that servers bind to there, mostly the same.
    pub listen: Option<IpAddr>,
    /// Id of the host; `None`: the controller's own.
    pub host: Option<&'a str>,
}
