# shellcheck shell=bash
# shellcheck disable=SC2034 # What is set here is used by those that source it.
# What scripts/deb.sh, scripts/rpm.sh and scripts/dist.sh have in common: sourced, not run.

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
# The same tree makes the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# lay_out ROOT: what `make build` built, as a package holds it.
lay_out() {
    DESTDIR=$1 PREFIX=/usr AGENT_FOLDER=/usr/lib/tare scripts/install.sh >/dev/null
    find "$1/usr/share/man" -type f -exec gzip -9n {} +
    strip --strip-unneeded "$1/usr/bin/tare" "$1/usr/lib/tare/tare-agent"
}
