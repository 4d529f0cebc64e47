//! `[lab]`.

use tare_model::study::{Arm, Attach, LabSpec, Placement, Wire};
use tare_model::units::Span;

use super::Context;
use crate::cpus;
use crate::file;
use crate::language::shape::Or;
use crate::language::table::Field;

const DEFAULT: LabSpec = LabSpec {
    mtu: 1500,
    offloads: true,
    link_rate: None,
    wire: None,
    congestion_control: None,
    placement: Placement::Separate,
    sample_interval: Span::from_millis(200),
};

/// The lab, with its defaults.
pub(super) fn lab(lab: Option<&file::Lab<'_>>) -> LabSpec {
    let Some(lab) = lab else { return DEFAULT };
    LabSpec {
        mtu: lab.mtu.or(DEFAULT.mtu),
        offloads: lab.offloads.or(DEFAULT.offloads),
        link_rate: lab.link_rate.value,
        wire: wire(lab),
        congestion_control: lab.congestion_control.value.map(str::to_owned),
        placement: placement(&lab.placement).unwrap_or(DEFAULT.placement),
        sample_interval: lab.sample_interval.or(DEFAULT.sample_interval),
    }
}

/// Addresses of a lab that are no guest's: those of the driver here, and of programs beside the bridge.
const NO_GUESTS: u32 = 2;
/// Most addresses of a lab on a wire: each is asked for by a frame to everybody on that network.
const MOST_ADDRESSES: u32 = 1024;

fn wire(lab: &file::Lab<'_>) -> Option<Wire> {
    let table = lab.wire.value.as_ref()?;
    let (interface, addresses) = (table.interface.value?, table.addresses.value?);
    if addresses.count() <= NO_GUESTS {
        let what = format!(
            "has {} addresses, and the driver of this host and programs beside the bridge take {NO_GUESTS}",
            addresses.count()
        );
        table.addresses.wrong(&what, "name a longer range: one more for each guest that stands at a time");
    }
    if addresses.count() > MOST_ADDRESSES {
        let what = format!("has {} addresses, and {MOST_ADDRESSES} are the most that are asked for", addresses.count());
        table.addresses.wrong(&what, "name a shorter range: two, and one for each guest that stands at a time");
    }
    let attach = table.attach.or(Attach::Bridge);
    if attach != Attach::Bridge {
        let no_bridge = "cannot be had where guests are attached to the card directly";
        if lab.link_rate.value.is_some() {
            lab.link_rate.wrong(
                &format!("{no_bridge}: it bounds a link of the lab's bridge"),
                "leave it out; the card has a rate of its own",
            );
        }
        if lab.offloads.value == Some(false) {
            lab.offloads.wrong(
                &format!("{no_bridge}: a link over a card always segments"),
                "leave it out, or write `attach = \"bridge\"` in `wire`",
            );
        }
    }
    Some(Wire {
        interface: interface.to_owned(),
        addresses: Some(addresses),
        attach,
        cuts_off_host: table.cuts_off_host.or(false),
    })
}

/// Arms whose guests cannot be attached to the card as the study asks.
pub(super) fn attaching(file: &file::Study<'_>, context: &Context<'_>, lab: &LabSpec, arms: &[Arm]) {
    let Some(table) = file.lab.value.as_ref().and_then(|lab| lab.wire.value.as_ref()) else { return };
    let catalog = context.catalog;
    for arm in arms.iter().filter(|arm| arm.replica_of.is_none() && !arm.platform.is_empty()) {
        if catalog.reaches_outside(&arm.platform, &arm.options) {
            continue;
        }
        if let Some(refusal) = catalog.attach_refusal(&arm.platform, &arm.options, lab.attach()) {
            let what = format!("cannot be had with the arm `{}`: {}", arm.id, refusal.reason);
            table.attach.wrong(&what, refusal.remedy);
        }
    }
}

fn placement(field: &Field<'_, Or<Placement, file::Listed<'_>>>) -> Option<Placement> {
    let listed = match field.value.as_ref()? {
        Or::Plain(placement) => return Some(placement.clone()),
        Or::Table(listed) => listed,
    };
    let (client_cpus, guest_cpus) = listed.client_cpus.value.clone().zip(listed.guest_cpus.value.clone())?;
    let shared: Vec<u32> = client_cpus.iter().copied().filter(|cpu| guest_cpus.contains(cpu)).collect();
    if !shared.is_empty() {
        let what = format!("gives CPU {} to the driver and to the guests", cpus::list(&shared));
        field.wrong(&what, "give each CPU to one side; to share one on purpose write `placement = \"same-cpu\"`");
    }
    Some(Placement::Explicit { client_cpus, guest_cpus })
}
