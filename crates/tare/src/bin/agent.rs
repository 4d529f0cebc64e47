//! `tare-agent`, as it ships. It is a program of this package, so that what it has in common with `tare` is compiled once:
//! cargo gives the libraries of one package the same features. scripts/build.sh links it statically.

fn main() -> std::process::ExitCode {
    tare_agent::program::main()
}
