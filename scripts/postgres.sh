#!/usr/bin/env bash
# Puts PostgreSQL for guests into tare's cache: the binaries that zonky.io publishes through Maven Central, unpacked for
# guests that see this host and packed for those that do not. Does nothing when the pinned version is there.
#
# It needs Maven, which fetches, unzip and xz. As root on Debian or Ubuntu it installs what is missing; anywhere else it prints
# the command and stops.
set -euo pipefail
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"

# The one place where the version is pinned, with the SHA-256 of each machine's artifact.
version=18.6.0
case $(uname -m) in
x86_64)
    machine=amd64
    sum=008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1
    ;;
aarch64)
    machine=arm64v8
    sum=5f54e016723afa6213925a8acb939bac52944b1d348f65c7a20f0cd2928c31be
    ;;
*) machine='' sum='' ;;
esac

say() { printf 'postgres: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# shellcheck source=scripts/cache.sh
. "$(dirname "$0")/cache.sh"
# PostgreSQL itself has no third number.
place=$cache/bundle/postgresql-${version%.0}

if [[ -x $place/bin/postgres && -f $place.tar.gz ]]; then
    exit 0
fi

if [[ -z $machine ]]; then
    say "there are no binaries for $(uname -m); name an installation in the study: postgres = \"/usr/lib/postgresql/15/bin\""
    exit 1
fi
artifact=embedded-postgres-binaries-linux-$machine

missing=()
has mvn || missing+=(maven)
has unzip || missing+=(unzip)
has xz || missing+=(xz-utils)
if [[ ${#missing[@]} -gt 0 ]]; then
    if [[ $EUID -ne 0 ]] || ! has apt-get; then
        say "run this once, then again what you ran: sudo apt-get install -y ${missing[*]}"
        exit 1
    fi
    say "installing ${missing[*]}"
    [[ -n $(apt-cache madison maven 2>/dev/null) ]] || apt_get update
    apt_get install -y --no-install-recommends "${missing[@]}"
fi

# The server runs as nobody, who must get there.
umask 022
mkdir -p "$cache/bundle"
work=$(mktemp -d "$cache/bundle/.new-XXXXXX")
trap 'rm -rf "$work"' EXIT

say "fetching PostgreSQL ${version%.0} for guests through Maven"
# Maven tells what went wrong on standard output.
if ! (cd "$work" && mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:copy \
    -Dartifact="io.zonky.test.postgres:$artifact:$version:jar" -DoutputDirectory="$work") >"$work/said" 2>&1; then
    cat "$work/said" >&2
    say "cannot fetch $artifact $version; name an installation in the study instead: postgres = \"/usr/lib/postgresql/15/bin\""
    exit 1
fi
jar=$work/$artifact-$version.jar
if ! sha256sum --check --status <<<"$sum  $jar"; then
    say "what was fetched is not what is pinned: SHA-256 of $artifact-$version.jar is $(sha256sum "$jar" | cut -d' ' -f1),"
    say "and should be $sum; remove it from Maven's repository (~/.m2/repository/io/zonky) and run this again"
    exit 1
fi
unzip -q "$jar" '*.txz' -d "$work"
mkdir "$work/tree"
tar -xJf "$work"/*.txz -C "$work/tree"
# Libraries to link programs with are of no use to a server.
rm -rf "$work/tree/lib/pkgconfig" "$work/tree"/lib/*.a
chmod -R a+rX,go-w "$work/tree"
if ! said=$("$work/tree/bin/postgres" --version 2>&1); then
    say "what was fetched does not run on this machine: $said"
    exit 1
fi
tar -czf "$work/packed" --owner=0 --group=0 --numeric-owner --sort=name -C "$work/tree" .
mv "$work/packed" "$place.tar.gz"
chmod 644 "$place.tar.gz"
# The directory comes last: who sees it finds the packed one too.
rm -rf "$place"
mv "$work/tree" "$place"
chmod 755 "$place"
say "$said is in $place"
