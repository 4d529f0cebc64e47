#!/usr/bin/env bash
# Puts the Java application of jvm/java and a Java runtime of its own into tare's cache, so that a guest needs no Java:
# CACHE/payload/java/{tare-java.jar,runtime/bin/java}. Does nothing when neither sources nor JDK have changed.
#
# It needs Maven, which fetches its own plugins, and a JDK 17 or newer with its jmods. As root on Debian or Ubuntu it
# installs what is missing; anywhere else it prints the command and stops.
set -euo pipefail
script=$(readlink -f "${BASH_SOURCE[0]}")
cd "$(dirname "$script")/.."
# shellcheck disable=SC2034 # Used by what follows.
name=java module=java
# shellcheck source=scripts/jvm-lib.sh
. scripts/jvm-lib.sh

need_tools
find_place

if [[ ! -d $place ]]; then
    say "building the Java application and its runtime with Java $jdk_version"
    mkdir "$work/tree"
    build_module
    cp "$work/sources/jvm/java/target/tare-java.jar" "$work/tree/"
    link_runtime java.base,java.xml,java.management,jdk.management
    java=$work/tree/runtime/bin/java
    # Classes are shared through an archive of those that a run of the application loads; its own are few, and an archive
    # that had them would be refused wherever the jar lies elsewhere.
    or_tell "run the application" "$java" -Xshare:off -Xmx200m -XX:+UseSerialGC -XX:DumpLoadedClassList="$work/classes" \
        -jar "$work/tree/tare-java.jar" run --groups 1 --warm-up 0s --measure 1s
    grep -v 'tare/' "$work/classes" >"$work/shared"
    write_archive "$work/shared"
    for collector in Serial G1; do
        or_tell "use the archive of classes" "$java" -Xshare:on "-XX:+Use${collector}GC" -Xmx1550m \
            -jar "$work/tree/tare-java.jar" --help
    done
fi
publish
say "the Java application and its runtime are in $payload/java"
