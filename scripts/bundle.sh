#!/usr/bin/env bash
# Puts the Java application of a workload and a Java runtime of its own into tare's cache, so that a guest needs no Java:
#
#   scripts/bundle.sh java|web|social
#
# The application lies in workloads/NAME/app. Its bundle.sh there says what the runtime consists of and how the application is
# tried. Does nothing when neither sources nor JDK have changed.
#
# It needs Maven, which fetches its plugins and the libraries, and a JDK 17 or newer with its jmods. As root on Debian or Ubuntu
# it installs what is missing; anywhere else it prints the command and stops.
# shellcheck disable=SC2154 # The workload's bundle.sh sets title.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
name=${1:-}
if [[ $# != 1 || ! -f workloads/$name/app/bundle.sh ]]; then
    echo "usage: scripts/bundle.sh NAME, where workloads/NAME/app has a bundle.sh: java, web or social" >&2
    exit 2
fi
# shellcheck source=scripts/jvm-lib.sh
. scripts/jvm-lib.sh
# Sets title, modules, application_classes and trial_options, and defines trial; may define prepare and clear_up_more.
# shellcheck source=/dev/null
. "workloads/$name/app/bundle.sh"

need_tools
find_place
if [[ ! -d $place ]]; then
    say "building the $title and its runtime with Java $jdk_version"
    build_application
    link_runtime
    if [[ $(type -t prepare) == function ]]; then
        prepare
    fi
    share_classes
fi
publish
say "the $title and its runtime are in $bundle/$name"
