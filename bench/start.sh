#!/usr/bin/env bash
# Starts of guests against the same by a plain shell script: one machine, four at once, sixteen containers at once.
# usage: bench/start.sh [one] [machines] [containers]
#
# By hand there are no control groups and no checks, so the ratio errs on the side of the script. The machine by hand boots the
# same kernel and initial file system with a static first process in place of the agent (bench/init.c).
ROUNDS=${ROUNDS:-9}
bench=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$bench/../target}
DRIVER=${DRIVER:-$target/release/examples/start_many}
TARE_AGENT=${TARE_AGENT:-$target/release/tare-agent}
export DRIVER TARE_AGENT
if [ ! -x "$DRIVER" ] || [ ! -x "$TARE_AGENT" ]; then
    echo "build first: cargo build --release -p tare-platform --example start_many; make build" >&2
    exit 1
fi
. "$bench/lib.sh"
RUNTIME=${RUNTIME:-runc}

# The script's network: a bridge as the lab's.
ip link add br0 type bridge
ip link set br0 up

# The first of these makes /run/netns a mount, which several at once get wrong.
ip netns add bench-first
ip netns delete bench-first

# The file server keeps a lock there that it never removes: here it goes with the namespace.
mkdir -p /run/virtiofsd
mount -t tmpfs none /run/virtiofsd

fileserver() {
    local place
    for place in virtiofsd /usr/libexec/virtiofsd /usr/lib/qemu/virtiofsd; do
        command -v "$place" && return
    done
    echo "no virtiofsd" >&2
    exit 1
}

# machine N: one machine by hand; prints `ready`.
machine() {
    local place=$work/m$1
    mkdir -p "$place"
    mkfifo "$place/in"
    # Its standard input never ends.
    # shellcheck disable=SC2034
    exec {hold}<>"$place/in"
    ip tuntap add "tap$1" mode tap vnet_hdr
    ip link set "tap$1" master br0 up
    "$server" --socket-path="$place/fs" -o source=/,cache=always,sandbox=chroot,xattr --rlimit-nofile="$(ulimit -Hn)" -f >/dev/null 2>&1 &
    echo $! >>"$work/started"
    until [ -S "$place/fs" ]; do sleep 0.005; done
    qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -accel tcg,thread=multi,tb-size=64 -cpu max \
        -smp 2,sockets=1,cores=2,threads=1 -M q35,memory-backend=ram -m 512M -object memory-backend-memfd,id=ram,size=512M,share=on \
        -chardev file,id=console,path="$place/console" -serial chardev:console -chardev stdio,id=agent,signal=off -device virtio-serial-pci \
        -device virtserialport,chardev=agent,name=org.tare.agent.0 -netdev tap,id=net,ifname="tap$1",script=no,downscript=no \
        -device virtio-net-pci,netdev=net -chardev socket,id=share,path="$place/fs" -device vhost-user-fs-pci,chardev=share,tag=hostroot \
        -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 panic=-1 mitigations=off tsc=reliable random.trust_cpu=on" \
        <"$place/in" &
    echo $! >>"$work/started"
}

# bundle N: what the runtime by hand runs, over an overlay of the host's root.
bundle() {
    local place=$work/c$1
    mkdir -p "$place/rootfs" "$place/layers"
    mount -t tmpfs none "$place/layers"
    mkdir "$place/layers/upper" "$place/layers/work"
    mount -t overlay none -o "lowerdir=/,upperdir=$place/layers/upper,workdir=$place/layers/work" "$place/rootfs"
    ip netns add "bench-c$1"
    ip link add "p$1" type veth peer name eth0 netns "bench-c$1"
    ip link set "p$1" master br0 up
    ip -n "bench-c$1" address add "198.19.0.$(($1 + 1))/16" dev eth0
    ip -n "bench-c$1" link set eth0 up
    (cd "$place" && "$RUNTIME" spec)
    sed -e 's/"terminal": true/"terminal": false/' -e 's/"sh"$/"echo", "ready"/' -e 's/"readonly": true/"readonly": false/' \
        -e "s#\"type\": \"network\"#\"type\": \"network\", \"path\": \"/run/netns/bench-c$1\"#" "$place/config.json" >"$place/new"
    mv "$place/new" "$place/config.json"
}

container() {
    bundle "$1"
    "$RUNTIME" --root "$work/runtime" run --bundle "$work/c$1" "bench-$$-$1"
}

# wait_ready COUNT FILE: until so many have said that they are.
wait_ready() {
    local tries
    for tries in $(seq 24000); do
        [ "$(grep -c '^ready' "$2")" -lt "$1" ] || return 0
        sleep 0.005
    done
    echo "not ready after $tries tries: $(cat "$2" "$work/complaints")" >&2
    exit 1
}

# by_hand KIND COUNT: seconds, in $took.
by_hand() {
    local began number
    : >"$work/said"
    : >"$work/started"
    began=$EPOCHREALTIME
    for number in $(seq "$2"); do
        "$1" "$number" >>"$work/said" 2>>"$work/complaints" &
    done
    wait_ready "$2" "$work/said"
    took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    xargs -r kill -9 <"$work/started" 2>/dev/null || true
    wait
    for number in $(seq "$2"); do
        ip link delete "tap$number" 2>/dev/null || true
        if [ "$1" = container ]; then
            umount "$work/c$number/rootfs" "$work/c$number/layers"
            ip netns delete "bench-c$number"
        fi
        rm -rf "$work/m$number" "$work/c$number"
    done
}

# contest TITLE GOAL KIND COUNT PLATFORM [OPTIONS]
contest() {
    local round who
    : >"$results"
    for round in $(seq "$ROUNDS"); do
        # Who goes first changes from round to round.
        for who in $( ((round % 2)) && echo hand tare || echo tare hand); do
            if [ "$who" = hand ]; then by_hand "$3" "$4"; else took=$("$DRIVER" "$5" "$4" "${6:-{\}}"); fi
            echo "$who $round $took" >>"$results"
        done
    done
    awk -v title="$1" -v goal="$2" '
        function median(list, n,    i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        { took[$1, $2] = $3; if ($2 > n) n = $2 }
        END {
            for (r = 1; r <= n; r++) { a[r] = took["hand", r]; b[r] = took["tare", r]; c[r] = b[r] / a[r] }
            printf "%s: by hand %.3f s, tare %.3f s, ratio %.3f (goal: at most %s), %d rounds\n", title, median(a, n), median(b, n), median(c, n), goal, n
        }' "$results"
}

server=$(fileserver)
read -r kernel initrd <<<"$("$DRIVER" boot)"
mkdir "$work/hand"
gcc -static -O2 -o "$work/hand/init" "$bench/init.c"
strip "$work/hand/init"
# A later archive's files replace those of an earlier one: the rest is the same.
{ cat "$initrd" && (cd "$work/hand" && echo init | cpio -o -H newc --quiet); } >"$work/initrd"

[[ $# -gt 0 ]] || set -- one machines containers
for contest in "$@"; do
    case $contest in
        one) contest "one emulated machine" 1.1 machine 1 qemu '{"accel": "tcg"}' ;;
        machines) contest "4 emulated machines at once" 1.2 machine 4 qemu '{"accel": "tcg"}' ;;
        containers) contest "16 containers at once" 1.2 container 16 oci "{\"runtime\": \"$RUNTIME\"}" ;;
        *) echo "no such contest: $contest" >&2 && exit 2 ;;
    esac
done
