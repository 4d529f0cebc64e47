# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # Read and set by scripts/bundle.sh, which sources this.
# The bundle of the Java application: CACHE/bundle/java/{tare-java.jar,runtime/bin/java}.

title="Java application"
modules=java.base,java.xml,java.management,jdk.management
application_classes=tare/
trial_options=(-Xmx1550m)

# trial JAVA_OPTION...: a short run.
trial() { "$work/tree/runtime/bin/java" "$@" -jar "$work/tree/tare-java.jar" run --groups 1 --warm-up 0s --measure 1s; }
