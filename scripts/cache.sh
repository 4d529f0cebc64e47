# shellcheck shell=bash
# shellcheck disable=SC2034 # Used by those that source it.
# Sets cache to the folder of tare's cache, as tare itself chooses it: sourced, not run.

if [[ -n ${TARE_CACHE:-} ]]; then
    cache=$TARE_CACHE
elif [[ $EUID -eq 0 ]]; then
    cache=/var/cache/tare
else
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/tare
fi
