#!/usr/bin/env bash
# Starts of guests against the same by a plain shell script: one machine, four at once, sixteen containers at once.
# usage: bench/start.sh [one] [machines] [containers]
#
# By hand there are the same limits (control groups of CPU and memory), the same runtime or the same QEMU and its options, and no
# checks, so the ratio errs on the side of the script. The machine by hand boots the same kernel and initial file system with a
# static first process in place of the agent (bench/init.c). Nobody is polled for: each guest's `ready` is read as it is said. All
# that is mounted is mounted in a namespace of the bench's own.
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

# Names of namespaces are files: here they go with the bench, however it ends.
mkdir -p /run/netns
mount -t tmpfs none /run/netns
# The first of these makes /run/netns a shared mount, which several at once get wrong.
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

# limit NAME BYTES: puts the calling process under the limits that tare sets, of 2 CPUs and so much memory.
limit() {
    local controller
    for controller in cpu cpuacct memory; do
        mkdir -p "$groups/$controller/$1"
        # By its own number: the shell that runs this may be one of a subshell.
        [ "$controller" != cpu ] || echo 200000 >"$groups/cpu/$1/cpu.cfs_quota_us"
        [ "$controller" != memory ] || echo "$2" >"$groups/memory/$1/memory.limit_in_bytes"
        echo "$BASHPID" >"$groups/$controller/$1/cgroup.procs"
    done
}

# The same where there is version 2 alone.
limit_2() {
    mkdir -p "$groups/$1"
    echo "200000 100000" >"$groups/$1/cpu.max"
    echo "$2" >"$groups/$1/memory.max"
    echo "$BASHPID" >"$groups/$1/cgroup.procs"
}

# machine N: one machine by hand; prints `ready`.
machine() {
    local place=$work/m$1
    mkdir -p "$place"
    $limit "bench-$$-$1" $((768 << 20))
    mkfifo "$place/in"
    # Its standard input never ends.
    # shellcheck disable=SC2034
    exec {hold}<>"$place/in"
    ip tuntap add "tap$1" mode tap vnet_hdr
    ip link set "tap$1" master br0 up
    "$server" --socket-path="$place/fs" -o source=/,cache=always,sandbox=chroot,xattr --rlimit-nofile="$(ulimit -Hn)" -f >/dev/null 2>&1 &
    echo $! >>"$work/started"
    # A read from what never says anything waits without another process.
    until [ -S "$place/fs" ]; do read -rt 0.001 -u "$hold" || true; done
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
    $limit "bench-$$-$1" $((512 << 20))
    "$RUNTIME" --root "$work/runtime" run --bundle "$work/c$1" "bench-$$-$1"
}

# wait_ready COUNT: until so many have said that they are.
wait_ready() {
    local line ready=0
    while [ "$ready" -lt "$1" ]; do
        if ! read -rt 120 -u "$said" line || [ "$line" = failed ]; then
            echo "$ready of $1 are ready, and no more come: $(cat "$work/complaints")" >&2
            exit 1
        fi
        [[ $line != ready* ]] || ready=$((ready + 1))
    done
}

# by_hand KIND COUNT: seconds, in $took.
by_hand() {
    local began number jobs=()
    : >"$work/started"
    began=$EPOCHREALTIME
    for number in $(seq "$2"); do
        (trap '[ $? = 0 ] || echo failed' EXIT && "$1" "$number") 1>&"$said" 2>>"$work/complaints" &
        jobs+=($!)
    done
    wait_ready "$2"
    took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    [ "$1" != machine ] || wait "${jobs[@]}"
    xargs -r kill -9 <"$work/started" 2>/dev/null || true
    wait
    for number in $(seq "$2"); do
        ip link delete "tap$number" 2>/dev/null || true
        [ "$1" != container ] || ip netns delete "bench-c$number"
        discard "$work/m$number"
        discard "$work/c$number"
    done
    forget_groups
}

# The groups' last processes are a moment in going.
forget_groups() {
    local group tries
    for group in "$groups/bench-$$-"* "$groups"/*/"bench-$$-"*; do
        for tries in $(seq 100); do
            [ -d "$group" ] || break
            rmdir "$group" 2>/dev/null || sleep 0.02
        done
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

groups=/sys/fs/cgroup
limit=limit
[ ! -e "$groups/cgroup.controllers" ] || limit=limit_2
mkfifo "$work/said"
exec {said}<>"$work/said"
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
