//! Renders synthetic findings, to look at the report without a run:
//! `cargo run -p tare-report --example demo -- OUT.html`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::args().nth(1).ok_or("usage: demo OUT.html")?;
    let findings = fixture::findings();
    std::fs::write(&out, tare_report::html(&findings)?)?;
    std::fs::write(std::path::Path::new(&out).with_extension("md"), tare_report::markdown(&findings))?;
    std::io::stdout().write_all(tare_report::terminal(&findings, 110, false).as_bytes())?;
    Ok(())
}
