#!/usr/bin/env bash
# Runs tare on ordinary hosts, each emulated whole: systemd, control groups of version 2, AppArmor, KVM.
#
#   scripts/test-host.sh                     Debian 12 and 13, every platform in one study, users, upgrade and removal
#   scripts/test-host.sh bookworm|trixie     one of the two
#   scripts/test-host.sh --short             Debian 12: install, doctor, a container, a machine by KVM, kill -9; some minutes
#   scripts/test-host.sh pair                Debian 12 twice: guests on one, load from the other, over links between the two
#   scripts/test-host.sh arm64               Debian 12 on arm64: the one program that is built here for it, doctor, the quickstart
#
# TARE_TEST_HOST_ONLY="conform|user" leaves out the checks that have none of these words in their names.
# The hosts' disks are built once, into the cache (1 GB each). Where this machine cannot emulate a host, the tests
# print why and count as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

suites=(bookworm trixie)
arm64=
tests=(every_arm a_function)
for word in "$@"; do
    case $word in
    --short) suites=(bookworm) tests=(the_package_installs) ;;
    bookworm | trixie) suites=("$word") ;;
    pair) suites=(bookworm) tests=(pair::) ;;
    arm64) arm64=yes ;;
    *) echo "test-host: unknown word '$word': --short, bookworm, trixie, pair or arm64" >&2 && exit 2 ;;
    esac
done

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
if [[ $EUID -ne 0 ]] || ! command -v mmdebstrap >/dev/null; then
    echo "SKIPPED: building a host's disk needs root and mmdebstrap (make platforms)"
    exit
fi
[[ -x $target_dir/release/tare ]] || { echo "test-host: $target_dir/release/tare is not there: run make build" >&2 && exit 1; }
export CARGO_TERM_COLOR=never
if [[ -n $arm64 ]]; then
    for program in qemu-system-aarch64 qemu-aarch64-static arch-test; do
        command -v "$program" >/dev/null && continue
        echo "SKIPPED: an arm64 host needs $program (apt-get install qemu-system-arm qemu-user-static arch-test)"
        exit
    done
    export TARGET_ARCH=aarch64
    scripts/setup.sh dist
    TARE_TEST_HOST_PROGRAM=$(scripts/dist.sh aarch64 | tail -n1)/tare-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)-linux-aarch64
    TARE_TEST_HOST_ARM64_DISK=$(scripts/test-host-disk.sh bookworm arm64)
    export TARE_TEST_HOST_PROGRAM TARE_TEST_HOST_ARM64_DISK
    exec cargo test --workspace --test ordinary_hosts --locked -- --ignored --nocapture one_program
fi
TARE_TEST_HOST_PACKAGE=$(realpath "$(scripts/deb.sh)")
export TARE_TEST_HOST_PACKAGE
if runsc=$(command -v runsc); then export TARE_TEST_HOST_RUNSC=$runsc; fi
if [[ ${tests[0]} == every_arm ]]; then
    # The same program as `make test` runs; what the linker left for a debugger is of no use there.
    program=$(cargo test --workspace --test platform-tests --locked --no-run 2>&1 |
        sed -nE 's/^ *Executable tests\/.* \((.*)\)$/\1/p')
    copies=$target_dir/test-host
    mkdir -p "$copies"
    TARE_TEST_HOST_CONFORMANCE=$copies/platform-tests
    strip -o "$TARE_TEST_HOST_CONFORMANCE" "$program"
    export TARE_TEST_HOST_CONFORMANCE
    TARE_TEST_HOST_QEMU_8=$(scripts/test-host-qemu.sh)
    image=$("$target_dir/release/tare" image build debian --suite bookworm)
    TARE_TEST_HOST_IMAGE=$copies/image.tar
    tar --sparse -C "$(dirname "$image")" -cf "$TARE_TEST_HOST_IMAGE" "$(basename "$image")" "$(basename "$image" .raw).json"
    export TARE_TEST_HOST_QEMU_8 TARE_TEST_HOST_IMAGE
fi

failed=0
for suite in "${suites[@]}"; do
    TARE_TEST_HOST_DISK=$(scripts/test-host-disk.sh "$suite")
    export TARE_TEST_HOST_DISK
    cargo test --workspace --test ordinary_hosts --locked -- --ignored --nocapture --test-threads 1 "${tests[@]}" || failed=1
done
exit "$failed"
