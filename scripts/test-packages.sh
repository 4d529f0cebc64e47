#!/usr/bin/env bash
# Tests the packages of scripts/deb.sh and scripts/rpm.sh, made of what `make build` built. `make test-host` installs the Debian one for real.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

# needs PROGRAM NAME...: whether the program is here; counts those tests as ignored otherwise.
needs() {
    local program=$1
    shift
    command -v "$program" >/dev/null && return
    ignores "there is no $program" "$@"
    return 1
}

is_clean() {
    lintian --allow-root --fail-on error,warning "$(scripts/deb.sh)"
}

# Into a root of its own: only the files and rpm's own records are looked at.
goes_without_a_trace() {
    local root=$work/root package
    package=$(scripts/rpm.sh)
    mkdir "$root"
    rpm --root "$root" --install --nodeps --ignorearch "$package"
    "$root/usr/bin/tare" --version
    "$root/usr/lib/tare/tare-agent" --version
    [[ -s $root/usr/share/man/man1/tare-run.1.gz && -s $root/usr/share/licenses/tare/LICENSE ]]
    rpm --root "$root" --erase tare
    [[ -z $(find "$root" -name '*tare*') ]]
}

if needs dpkg-deb the_same_tree_makes_the_same_debian_package; then
    holds the_same_tree_makes_the_same_debian_package equal_twice scripts/deb.sh
    if needs lintian the_debian_package_keeps_to_the_policy; then
        holds the_debian_package_keeps_to_the_policy is_clean
    fi
fi
if needs rpmbuild the_same_tree_makes_the_same_rpm an_rpm_is_installed_and_removed_without_a_trace; then
    holds the_same_tree_makes_the_same_rpm equal_twice scripts/rpm.sh
    holds an_rpm_is_installed_and_removed_without_a_trace goes_without_a_trace
fi

close
