# shellcheck shell=bash
# Functions of scripts/bundle.sh, which sets `name`, the workload: sourced, not run. Bash. Tested by scripts/test-jvm-lib.sh.
# shellcheck disable=SC2154 # A workload's bundle.sh sets title, modules, application_classes and trial_options.
#
# A bundle is the workload's application and a Java runtime of its own in tare's cache, as CACHE/bundle/NAME-HASH, with
# CACHE/bundle/NAME a link to the newest.

# shellcheck source=scripts/apt.sh
. "${BASH_SOURCE[0]%/*}/apt.sh"

say() { printf '%s: %s\n' "$name" "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# shellcheck source=scripts/cache.sh
. "${BASH_SOURCE[0]%/*}/cache.sh"
bundle=$cache/bundle

# Where the JDK is: prints nothing where none is, or one that has no jlink or nothing to link.
find_jdk() {
    local home=${JAVA_HOME:-}
    if [[ -z $home ]] && has javac; then
        home=$(readlink -f "$(command -v javac)")
        home=${home%/bin/javac}
    fi
    if [[ -x $home/bin/javac && -x $home/bin/jlink && -d $home/jmods && -r $home/release ]]; then
        printf '%s\n' "$home"
    fi
}

# Sets jdk and jdk_version. As root on Debian or Ubuntu it installs what is missing; anywhere else it prints the command and stops.
need_tools() {
    jdk=$(find_jdk)
    if [[ -n ${JAVA_HOME:-} && -z $jdk ]]; then
        say "JAVA_HOME=$JAVA_HOME is no JDK with jlink and jmods; unset it, or point it to one of Java 17 or newer"
        exit 1
    fi
    local missing=()
    has mvn || missing+=(maven)
    [[ -n $jdk ]] || missing+=(openjdk-17-jdk-headless)
    # jlink strips with it.
    has objcopy || missing+=(binutils)
    if [[ ${#missing[@]} -gt 0 ]]; then
        if [[ $EUID -ne 0 ]] || ! has apt-get; then
            say "run this once, then again what you ran: sudo apt-get install -y ${missing[*]}"
            exit 1
        fi
        # A newer release has only newer JDKs, which do as well.
        [[ -n $(apt-cache madison maven 2>/dev/null) ]] || apt_get update
        if [[ -z $(apt-cache madison openjdk-17-jdk-headless 2>/dev/null) ]]; then
            missing=("${missing[@]/openjdk-17-jdk-headless/default-jdk-headless}")
        fi
        say "installing ${missing[*]}"
        apt_get install -y --no-install-recommends "${missing[@]}"
        jdk=$(find_jdk)
    fi
    if [[ -z $jdk ]]; then
        say "the javac that is first in PATH belongs to no JDK with jlink and jmods; set JAVA_HOME to one of Java 17 or newer"
        exit 1
    fi
    jdk_version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$jdk/release")
    if ((${jdk_version%%.*} < 17)); then
        say "$jdk is Java $jdk_version, and 17 is needed: install openjdk-17-jdk-headless, or set JAVA_HOME to a newer one"
        exit 1
    fi
}

# Files that the application is built of, in order; names end with 0.
sources() {
    find jvm "workloads/$name/app" -type f \( -name pom.xml -o -name bundle.sh -o -path '*/src/main/*' \) -print0 | LC_ALL=C sort -z
}

# Sets place, and ends here where it is there already.
find_place() {
    local version
    version=$({
        sources | xargs -0 sha256sum
        sha256sum scripts/bundle.sh scripts/jvm-lib.sh
        cat "$jdk/release"
    } | sha256sum | cut -c1-16)
    place=$bundle/$name-$version
    ! is_there || exit 0
    # Guests run as other users, who must get there.
    umask 022
    mkdir -p "$bundle"
    # A second one waits, and then finds everything there.
    exec 9>"$bundle/.$name.lock"
    flock 9
    ! is_there || exit 0
    # What was begun by one that was killed.
    rm -rf "$bundle/.new-$name"-*
    work=$(mktemp -d "$bundle/.new-$name-XXXXXX")
    trap clear_up EXIT
}

# Ends what was started, and removes what was made: however the script ends, but by a signal that nobody can catch.
clear_up() {
    end_server
    if [[ $(type -t clear_up_more) == function ]]; then
        clear_up_more
    fi
    rm -rf "$work"
}

# Whether the newest is complete: it was moved to its place as a whole.
is_there() { [[ -x $place/runtime/bin/java && $(readlink "$bundle/$name") == "${place##*/}" ]]; }

# or_show WHAT COMMAND...: runs a command, and ends the script where it fails; its output, of both kinds, is shown only then.
or_show() {
    local what=$1
    shift
    if ! "$@" >"$work/said" 2>&1 </dev/null; then
        # Maven's launcher may colour, and end without a new line.
        { sed 's/\x1b\[[0-9;]*m//g' "$work/said" && echo; } >&2
        say "cannot $what"
        exit 1
    fi
}

# fetch PORT PATH: asks the server on that port for something.
fetch() {
    exec 8<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&8
    cat <&8
    exec 8>&-
}

# answers PORT PATH TEXT: whether that is in the answer, which is shown where it is not.
answers() {
    local answer
    answer=$(fetch "$1" "$2")
    if [[ $answer != *"$3"* ]]; then
        printf "%s is to be answered with '%s', and was with: %s\n" "$2" "$3" "${answer:0:500}"
        return 1
    fi
}

# Ends the server that is running, if one is.
end_server() {
    if [[ -n ${server:-} ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || true
        server=
    fi
}

# serving CHECK LAUNCH [WORD...]: starts the server with `LAUNCH PORT WORD...`, which sets the array command; calls
# `CHECK PORT` once it says that it is ready; and ends it, whatever came of that. Only its file descriptors show which port it
# listens on, so a port is chosen here; one that is taken is tried another for.
serving() {
    local check=$1 launch=$2 port code
    shift 2
    for _ in 1 2 3 4 5; do
        port=$((20000 + (RANDOM + $$) % 12000))
        "$launch" "$port" "$@"
        rm -f "$work/fifo"
        mkfifo "$work/fifo"
        # What holds the lock of this script must end with it, and nothing is to run on where this one is killed.
        timeout --kill-after=5 "${JVM_TIMEOUT_S:-300}" "${command[@]}" >"$work/fifo" 2>"$work/errors" 9>&- </dev/null &
        server=$!
        # A machine may warn on the same output before.
        if grep --quiet --line-regexp ready "$work/fifo"; then
            code=0
            "$check" "$port" || code=1
            end_server
            ((code == 0)) || cat "$work/errors"
            return "$code"
        fi
        end_server
        grep --quiet 'cannot listen' "$work/errors" || break
    done
    cat "$work/errors"
    echo "it did not say that it was ready"
    return 1
}

# Writes the archive of the classes that the application's trial loads. Those of its own jars (application_classes) are left out:
# an archive with classes of jars would be refused wherever those lie elsewhere. The trial then runs with the archive and with
# the options trial_options.
share_classes() {
    local collector
    or_show "run the application" trial -Xshare:off -Xmx200m -XX:+UseSerialGC -XX:DumpLoadedClassList="$work/classes"
    grep --invert-match --extended-regexp "$application_classes" "$work/classes" >"$work/shared"
    write_archive "$work/shared"
    for collector in Serial G1; do
        or_show "use the archive of classes" trial -Xshare:on "-XX:+Use${collector}GC" "${trial_options[@]}"
    done
}

# Puts the application's jars into $work/tree: its libraries beside it, in lib, where it has any. It is built in a copy: the
# sources stay clean, and no other build is disturbed. Maven reads the files of all modules.
build_application() {
    local copy=$work/sources built=$work/sources/workloads/$name/app/target
    mkdir -p "$work/tree" "$copy"
    sources | xargs -0 cp --parents --target-directory "$copy"
    cp --parents --target-directory "$copy" workloads/*/app/pom.xml
    or_show "build the application" env JAVA_HOME="$jdk" mvn --batch-mode --no-transfer-progress \
        --file "$copy/jvm/pom.xml" --projects ":tare-$name" --also-make -Dmaven.test.skip=true package
    if [[ -d $built/lib ]]; then
        mv "$built/lib" "$work/tree/"
        cp "$built/tare-$name.jar" "$work/tree/lib/"
    else
        cp "$built/tare-$name.jar" "$work/tree/"
    fi
}

# Makes $work/tree/runtime of the JDK's modules.
link_runtime() {
    # Not compressed: pages of the file are then those of memory, and shared by all that map it. Likewise the archive of
    # classes is mapped where it was written for; elsewhere, as newer JDKs do it by themselves, most of its pages
    # would be written to at start, and be each process's own. An option on the command line comes after these.
    # Nothing is drawn: java.desktop is there for its listeners.
    or_show "link the runtime" "$jdk/bin/jlink" --add-modules "$modules" \
        --strip-debug --no-header-files --no-man-pages --compress=0 --output "$work/tree/runtime" \
        --add-options="-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0" --exclude-files='/java.desktop/lib/**'
}

# write_archive CLASSES: the archive of classes of the runtime's own list, and of those in the file.
write_archive() {
    { cat "$work/tree/runtime/lib/classlist" "$1"; } | LC_ALL=C sort -u >"$work/all"
    # G1 alone writes objects into the archive; Serial and others use its classes.
    or_show "write the archive of classes" "$work/tree/runtime/bin/java" -Xshare:dump -XX:+UseG1GC \
        -XX:SharedClassListFile="$work/all"
}

# Moves $work/tree to its place, unless it is there, and makes the link point to it.
publish() {
    if [[ ! -d $place ]]; then
        chmod -R a+rX,go-w "$work/tree"
        mv --no-target-directory "$work/tree" "$place"
    fi
    local before disk of
    # A run that began with the one before goes on with it: its time is that of its end as the newest.
    if before=$(readlink "$bundle/$name") && [[ -d $bundle/$before ]]; then
        touch "$bundle/$before"
    fi
    ln -s "${place##*/}" "$work/link"
    mv --no-target-directory "$work/link" "$bundle/$name"
    # Earlier ones, unless a run of these days may still use them.
    find "$bundle" -maxdepth 1 -name "$name-*" -type d -mtime +7 ! -path "$place" -exec rm -rf {} +
    # tare keeps a disk for machines beside each, as NAME-VERSION-SIZE-ext4.raw.
    for disk in "$bundle/$name"-*-ext4.raw; do
        of=${disk%-ext4.raw}
        if [[ -f $disk && ! -d ${of%-*} ]]; then
            rm -f "$disk"
        fi
    done
}
