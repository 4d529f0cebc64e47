//! The agent of this crate's own tests. `tare-agent`, as it ships, is a program of the package `tare`.

fn main() -> std::process::ExitCode {
    tare_agent::program::main()
}
