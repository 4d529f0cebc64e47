# Boots, reaches and stops an emulated host. To be sourced; HOST_FOLDER is what build.sh printed, HOST_PLACE a folder for this boot.
#
# The emulated processor has AMD's virtualisation, so the host has a /dev/kvm that boots guests, 20 to 50 times slower than a real
# one. It reaches no network: what it needs is copied in by ssh, over a port of the loopback.

HOST_QEMU=${HOST_QEMU:-qemu-system-x86_64}

# Why this machine cannot emulate such a host; prints nothing when it can.
host_lack() {
    local program
    for program in "$HOST_QEMU" qemu-img ssh ssh-keygen mmdebstrap; do
        command -v "$program" >/dev/null || { echo "$program is not installed: make platforms"; return; }
    done
    [[ $(uname -m) == x86_64 ]] || { echo "the emulated processor is an x86-64 one, and this machine's is not"; return; }
    [[ $EUID -eq 0 ]] || { echo "building the host's disk needs root"; return; }
    "$HOST_QEMU" -cpu help | grep -qw svm || { echo "this QEMU does not emulate AMD's virtualisation (svm)"; return; }
}

# A free port of the loopback, chosen by the kernel.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# host_boot [WORDS FOR QEMU...]: boots with a disk that keeps nothing, and waits until it answers.
host_boot() {
    HOST_PORT=$(free_port)
    qemu-img create -q -f qcow2 -b "$HOST_FOLDER/disk.raw" -F raw "$HOST_PLACE/disk.qcow2"
    # In a session of its own, so that a Ctrl-C of the terminal comes to this script and not to the host.
    setsid "$HOST_QEMU" -name tarehost -accel tcg,thread=multi,tb-size=512 -cpu "${HOST_CPU:-EPYC,+svm,+npt}" -M q35 -smp 2 \
        -m "${HOST_MEMORY:-5G}" -nodefaults -no-user-config -display none -no-reboot \
        -kernel "$HOST_FOLDER/vmlinuz" -initrd "$HOST_FOLDER/initrd" \
        -append "root=/dev/vda rw console=ttyS0,115200 net.ifnames=0 mitigations=off quiet ${HOST_APPEND:-}" \
        -drive "file=$HOST_PLACE/disk.qcow2,if=virtio,cache=unsafe,format=qcow2" \
        -netdev "user,id=n,hostfwd=tcp:127.0.0.1:$HOST_PORT-:22,restrict=on" -device virtio-net-pci,netdev=n,romfile= \
        -device virtio-rng-pci -chardev "file,id=s,path=$HOST_PLACE/console.log" -serial chardev:s "$@" \
        >"$HOST_PLACE/qemu.log" 2>&1 </dev/null &
    HOST_PID=$!
    local began=$SECONDS
    until host_ssh root true 2>/dev/null; do
        if ! kill -0 "$HOST_PID" 2>/dev/null; then
            echo "the emulated host ended while it booted:" >&2
            tail -n 5 "$HOST_PLACE/qemu.log" "$HOST_PLACE/console.log" >&2
            return 1
        fi
        if ((SECONDS - began > ${HOST_BOOT_S:-300})); then
            echo "the emulated host did not answer within ${HOST_BOOT_S:-300} s; its console is $HOST_PLACE/console.log" >&2
            return 1
        fi
        sleep 1
    done
}

# The options that every connection to the host has. Its key is new with each boot's disk, and known to nobody.
host_ssh_options() {
    printf '%s\n' -i "$HOST_FOLDER/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
        -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=20
}

# host_ssh USER COMMAND: runs a line of shell there.
host_ssh() {
    local user=$1 options
    shift
    mapfile -t options < <(host_ssh_options)
    ssh "${options[@]}" -p "$HOST_PORT" "$user@127.0.0.1" "$@" </dev/null
}

# host_copy FILE... TARGET: copies files to a folder there, as root.
host_copy() {
    local options target=${!#}
    mapfile -t options < <(host_ssh_options)
    scp -q "${options[@]}" -P "$HOST_PORT" "${@:1:$#-1}" "root@127.0.0.1:$target"
}

# Ends the emulated host, if there is one.
host_stop() {
    [[ -z ${HOST_PID:-} ]] || kill -KILL "$HOST_PID" 2>/dev/null || true
    [[ -z ${HOST_PID:-} ]] || wait "$HOST_PID" 2>/dev/null || true
    HOST_PID=
}
