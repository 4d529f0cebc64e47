# shellcheck shell=bash
# choose_target: where .ci/run builds. It sets CARGO_TARGET_DIR, unless that is set.
#
# It is a cache, ~/.cache/tare/target/KEY, so that a new clone compiles the workspace's own crates and nothing else. The key
# stands for all that dependencies are compiled from: the lock file, the profiles and the compiler. The two that were used
# last are kept. To clear the cache, remove ~/.cache/tare/target.

# A cache that is larger is cleared: builds with other features add to it.
TARGET_LIMIT_MB=8000

choose_target() {
    [[ -z ${CARGO_TARGET_DIR:-} ]] || return 0
    export CARGO_TARGET_DIR=$PWD/target
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/tare/target key folder
    key=$({ cat Cargo.lock && sed -n '/^\[profile/,$p' Cargo.toml && rustc -vV; } | sha256sum | cut -c1-16)
    folder=$cache/$key
    mkdir -p "$folder" && exec 9>>"$folder.lock" || return 0
    # Held as long as this shell lives. What it starts does not inherit it: a process that a test left behind would hold it, too.
    if ! flock --nonblock 9; then
        echo "ci: another run builds in $folder: this one builds in $CARGO_TARGET_DIR"
        exec 9>&-
        return 0
    fi
    CARGO_TARGET_DIR=$folder
    echo "ci: builds in $folder"
    touch "$folder"
    sweep_targets "$cache"
    if (($(du -sm "$folder" | cut -f1) > TARGET_LIMIT_MB)); then
        find "$folder" -mindepth 1 -delete
    elif [[ -e $folder/clone && $(<"$folder/clone") != "$PWD" ]]; then
        forget_own_crates "$folder" || find "$folder" -mindepth 1 -delete
    fi
    printf '%s\n' "$PWD" >"$folder/clone"
    rm -f "$folder/test.summary"
}

# Removes what another clone built of the workspace's crates: its paths are others, so cargo would never use it again. By the
# names of the files: cargo clean leaves most of them.
forget_own_crates() {
    local profile name names crate
    names=$(cargo metadata --format-version 1 --no-deps --offline |
        grep -oE '"kind":\["(lib|bin|test)"\],"crate_types":\["[a-z-]+"\],"name":"[^"]+"' | cut -d'"' -f12 | sort -u)
    [[ -n $names ]] || return
    for profile in "$1"/{debug,release,agent} "$1"/*-linux-*/*; do
        rm -rf "$profile"/{examples,incremental}
        for name in $names; do
            crate=${name//-/_}
            rm -rf "$profile"/{.fingerprint,build}/"$name"-* "$profile"/deps/{,lib}"$crate"-* "${profile:?}/$name"{,.d}
        done
    done
}

# Removes the caches of other keys, except for the one that was used last, and for those that a run holds.
sweep_targets() {
    local folder kept=0
    while IFS= read -r folder; do
        if ((kept < 2)); then
            kept=$((kept + 1))
        else
            # The lock file stays: another run may be waiting for it.
            flock --nonblock "$folder.lock" rm -rf "$folder"
        fi
    done < <(find "$1" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort --reverse --numeric-sort | cut -d' ' -f2-)
}
