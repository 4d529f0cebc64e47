# shellcheck shell=bash
# shellcheck disable=SC2034 # What is set here is used by those that source it.
# For which architecture tare is built as static programs, and with what: sourced, not run. TARGET_ARCH names one; without it, it
# is this machine's.

machine=$(uname -m)
arch=${TARGET_ARCH:-$machine}
target=$arch-unknown-linux-musl
# Set where the programs are for another machine than this one; its name is then as Debian has it.
foreign=
if [[ $arch != "$machine" ]]; then
    case $arch in
    x86_64) foreign=amd64 ;;
    aarch64) foreign=arm64 ;;
    *) echo "TARGET_ARCH: unknown architecture '$arch': x86_64 or aarch64" >&2 && exit 2 ;;
    esac
    OBJCOPY=$arch-linux-gnu-objcopy
fi
# The headers of musl for that machine, which scripts/setup.sh unpacks.
headers=${XDG_CACHE_HOME:-$HOME/.cache}/tare/musl-$arch

# use_musl: from here on cargo compiles C for the target against musl, and links for it.
use_musl() {
    local name=${target//-/_} compiler=musl-gcc flags
    if [[ -n $foreign ]]; then
        compiler=$arch-linux-gnu-gcc
        # Its own headers, then musl's, and none of glibc's. Atomic operations are written out: what they would call is glibc's.
        flags="-nostdinc -isystem $("$compiler" -print-file-name=include) -isystem $headers/usr/include/$arch-linux-musl"
        [[ $arch != aarch64 ]] || flags+=" -mno-outline-atomics"
        export "CFLAGS_$name=$flags" "AR_$name=$arch-linux-gnu-ar" "CARGO_TARGET_${name^^}_LINKER=$compiler"
    fi
    export "CC_$name=$compiler"
}
