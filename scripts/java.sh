#!/usr/bin/env bash
# Puts the Java application of jvm/ and a Java runtime of its own into tare's cache, so that a guest needs no Java:
# CACHE/payload/java/{tare-java.jar,runtime/bin/java}. Does nothing when neither sources nor JDK have changed.
#
# It needs Maven, which fetches its own plugins, and a JDK 17 or newer with its jmods. As root on Debian or Ubuntu it
# installs what is missing; anywhere else it prints the command and stops.
set -euo pipefail
script=$(readlink -f "${BASH_SOURCE[0]}")
cd "$(dirname "$script")/.."

say() { printf 'java: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# As tare itself chooses it.
if [[ -n ${TARE_CACHE:-} ]]; then
    cache=$TARE_CACHE
elif [[ $EUID -eq 0 ]]; then
    cache=/var/cache/tare
else
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/tare
fi

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

jdk=$(find_jdk)
if [[ -n ${JAVA_HOME:-} && -z $jdk ]]; then
    say "JAVA_HOME=$JAVA_HOME is no JDK with jlink and jmods; unset it, or point it to one of Java 17 or newer"
    exit 1
fi
missing=()
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
    [[ -n $(apt-cache madison maven 2>/dev/null) ]] || apt-get update -qq >&2
    if [[ -z $(apt-cache madison openjdk-17-jdk-headless 2>/dev/null) ]]; then
        missing=("${missing[@]/openjdk-17-jdk-headless/default-jdk-headless}")
    fi
    say "installing ${missing[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
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

# Sources that go into the jar, what builds them, and the JDK that the runtime is made of.
sources() { find jvm -type f \( -name pom.xml -o -path 'jvm/*/src/main/*' \) -print0 | LC_ALL=C sort -z; }
version=$({
    sources | xargs -0 sha256sum
    sha256sum <"$script"
    cat "$jdk/release"
} | sha256sum | cut -c1-16)
payload=$cache/payload
place=$payload/java-$version

is_there() { [[ -x $place/runtime/bin/java && -f $place/tare-java.jar && $(readlink "$payload/java") == "java-$version" ]]; }
if is_there; then
    exit 0
fi

# Guests run as other users, who must get there.
umask 022
mkdir -p "$payload"
# A second one waits, and then finds everything there.
exec 9>"$payload/.java.lock"
flock 9
if is_there; then
    exit 0
fi
# What was begun by one that was killed.
rm -rf "$payload"/.new-java-*
work=$(mktemp -d "$payload/.new-java-XXXXXX")
trap 'rm -rf "$work"' EXIT

# or_tell WHAT COMMAND...: shows what a command said only if it failed; these tell it on either output.
or_tell() {
    local what=$1
    shift
    if ! "$@" >"$work/said" 2>&1 </dev/null; then
        # Maven's launcher may colour, and end without a new line.
        { sed 's/\x1b\[[0-9;]*m//g' "$work/said" && echo; } >&2
        say "cannot $what"
        exit 1
    fi
}

if [[ ! -d $place ]]; then
    say "building the Java application and its runtime with Java $jdk_version"
    mkdir "$work/sources" "$work/tree"
    # Built in a copy: the sources stay clean, and nobody else builds there.
    sources | xargs -0 cp --parents --target-directory "$work/sources"
    or_tell "build the jar" env JAVA_HOME="$jdk" \
        mvn --batch-mode --no-transfer-progress --file "$work/sources/jvm/pom.xml" -Dmaven.test.skip=true package
    cp "$work/sources/jvm/java/target/tare-java.jar" "$work/tree/"
    # Not compressed: pages of the file are then those of memory, and shared by all that map it. Likewise the archive of
    # classes is mapped where it was written for; elsewhere, as newer JDKs do it by themselves, most of its pages
    # would be written to at start, and be each process's own. An option on the command line comes after these.
    or_tell "link the runtime" "$jdk/bin/jlink" --add-modules java.base,java.xml,java.management,jdk.management \
        --strip-debug --no-header-files --no-man-pages --compress=0 --output "$work/tree/runtime" \
        --add-options="-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
    java=$work/tree/runtime/bin/java
    # Classes are shared through an archive of those that a run of the application loads; its own are few, and an archive
    # that had them would be refused wherever the jar lies elsewhere.
    or_tell "run the application" "$java" -Xshare:off -Xmx200m -XX:+UseSerialGC -XX:DumpLoadedClassList="$work/classes" \
        -jar "$work/tree/tare-java.jar" run --groups 1 --warm-up 0s --measure 1s
    { cat "$work/tree/runtime/lib/classlist" && grep -v 'tare/' "$work/classes"; } | LC_ALL=C sort -u >"$work/all"
    # G1 alone writes objects into the archive; Serial and others use its classes.
    or_tell "write the archive of classes" "$java" -Xshare:dump -XX:+UseG1GC -XX:SharedClassListFile="$work/all"
    for collector in Serial G1; do
        or_tell "use the archive of classes" "$java" -Xshare:on "-XX:+Use${collector}GC" -Xmx1550m \
            -jar "$work/tree/tare-java.jar" --help
    done
    chmod -R a+rX,go-w "$work/tree"
    mv --no-target-directory "$work/tree" "$place"
fi
# A run that began with the one before goes on with it: its time is that of its end as the newest.
if before=$(readlink "$payload/java") && [[ -d $payload/$before ]]; then
    touch "$payload/$before"
fi
ln -s "java-$version" "$work/link"
mv --no-target-directory "$work/link" "$payload/java"
# Earlier ones, unless a run of these days may still use them.
find "$payload" -maxdepth 1 -name 'java-*' -type d -mtime +7 ! -name "java-$version" -exec rm -rf {} +
# tare keeps a disk for machines beside each, as java-VERSION-SIZE-ext4.raw.
for disk in "$payload"/java-*-ext4.raw; do
    of=${disk%-ext4.raw}
    if [[ -f $disk && ! -d ${of%-*} ]]; then
        rm -f "$disk"
    fi
done
say "the Java application and its runtime are in $payload/java"
