# shellcheck shell=bash
# How the scripts call apt: to be sourced.

# apt_get WORD...: as apt-get, with nobody to ask; what it prints goes to standard error. Another apt may be at work, as on
# every cloud machine in its first minutes: it is waited for, APT_WAIT_S seconds (default: ten minutes).
#
# apt itself waits for the locks of dpkg alone (DPkg::Lock::Timeout), and says nothing meanwhile.
apt_get() {
    local said code waiting='' deadline=$((SECONDS + ${APT_WAIT_S:-600}))
    said=$(mktemp)
    while :; do
        code=0
        LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >"$said" 2>&1 || code=$?
        ((code != 0)) && grep -q 'Could not get lock' "$said" && ((SECONDS < deadline)) || break
        [[ -n $waiting ]] || echo "apt: another apt is at work on this machine; waiting until it is done" >&2
        waiting=yes
        sleep 1
    done
    # Of a success only the warnings are worth a line.
    if ((code != 0)); then cat "$said" >&2; else grep '^W:' "$said" >&2 || true; fi
    rm -f "$said"
    return "$code"
}
