//! Renders synthetic findings, to look at the report without a run: `cargo run -p tare-report --example demo -- OUT.html`,
//! with `platforms` behind it those of more arms, with `store` those of order entry, with `density` those of guests that are added, with `serving` those of web serving, with `instances` those of several instances in one guest, with `tiles` those of guests that are added by tiles, with `published` those that others
//! published, with the path of a `findings.json` those.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::args()
        .nth(1)
        .ok_or("usage: demo OUT.html [findings | platforms | store | density | instances | tiles | serving | one-arm | published | FINDINGS.json]")?;
    let findings = match std::env::args().nth(2).as_deref() {
        None | Some("findings") => fixture::findings(),
        Some("platforms") => fixture::platforms(),
        Some("store") => fixture::unsafe_store(),
        Some("density") => fixture::density(),
        Some("instances") => fixture::instances(),
        Some("tiles") => fixture::tiles(),
        Some("serving") => fixture::serving(),
        Some("one-arm") => fixture::one_block_of_one_arm(),
        Some("published") => fixture::published(),
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
    };
    std::fs::write(&out, tare_report::html(&findings)?)?;
    std::fs::write(std::path::Path::new(&out).with_extension("md"), tare_report::markdown(&findings))?;
    std::io::stdout().write_all(tare_report::terminal(&findings, 110, false).as_bytes())?;
    Ok(())
}
