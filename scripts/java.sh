#!/usr/bin/env bash
# Puts the Java application of jvm/java and a Java runtime of its own into tare's cache, so that a guest needs no Java:
# CACHE/bundle/java/{tare-java.jar,runtime/bin/java}. Does nothing when neither sources nor JDK have changed.
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

# run JAVA_OPTION...: a short run of its own.
run() { "$work/tree/runtime/bin/java" "$@" -jar "$work/tree/tare-java.jar" run --groups 1 --warm-up 0s --measure 1s; }

need_tools
find_place

if [[ ! -d $place ]]; then
    say "building the Java application and its runtime with Java $jdk_version"
    mkdir "$work/tree"
    build_module
    cp "$work/sources/jvm/java/target/tare-java.jar" "$work/tree/"
    link_runtime java.base,java.xml,java.management,jdk.management
    share_classes tare/ run -Xmx1550m
fi
publish
say "the Java application and its runtime are in $bundle/java"
