#!/usr/bin/env bash
# Puts the web server of jvm/web and a Java runtime of its own into tare's cache, so that a guest needs no Java:
# CACHE/payload/web/{lib/*.jar,runtime/bin/java}. Does nothing when neither sources nor JDK have changed.
#
# It needs Maven, which fetches its own plugins and the servlet container, and a JDK 17 or newer with its jmods. As root on
# Debian or Ubuntu it installs what is missing; anywhere else it prints the command and stops.
set -euo pipefail
script=$(readlink -f "${BASH_SOURCE[0]}")
cd "$(dirname "$script")/.."
# shellcheck disable=SC2034 # Used by what follows.
name=web module=web
# shellcheck source=scripts/jvm-lib.sh
. scripts/jvm-lib.sh

# The container's classes have listeners of java.beans, which is in java.desktop, and name types of java.instrument and java.security.jgss;
# jdk.crypto.ec is for certificates and the agreement on keys.
modules=java.base,java.desktop,java.instrument,java.logging,java.management,java.naming,java.security.jgss,jdk.crypto.ec,jdk.management

# fetch PORT PATH: asks the server for a page on its plain port.
fetch() {
    exec 8<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&8
    cat <&8
    exec 8>&-
}

# serve JAVA_OPTION...: starts the server on made-up data, and asks it for a page, a file and its state. It says with which
# ports it came up by its file descriptors alone, so a port is chosen here; one that is taken is tried another for.
serve() {
    local port pid version data=$work/data tls=()
    mkdir -p "$data/files/site/images"
    printf 'site\tpage\tTitle\t1\t2000\tlogin\tuser,token\t/files/site/images/0.gif\n' >"$data/pages.tsv"
    printf 'GIF89a' >"$data/files/site/images/0.gif"
    for _ in 1 2 3 4 5; do
        port=$((20000 + (RANDOM + $$) % 12000))
        # Without openssl some classes of TLS are not in the archive, and start a little later.
        if has openssl; then
            [[ -f $data/key ]] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
                -keyout "$data/key" -out "$data/certificate" -subj /CN=localhost 2>"$work/told"
            tls=(--tls-port $((port + 1)) --certificate "$data/certificate" --key "$data/key")
        fi
        mkfifo "$work/fifo"
        "$work/tree/runtime/bin/java" "$@" -cp "$work/tree/lib/*" tare.web.Main --data "$data" --listen 127.0.0.1 --port "$port" \
            --backend 127.0.0.1:9 "${tls[@]}" >"$work/fifo" 2>"$work/told" 9>&- </dev/null &
        pid=$!
        if [[ $(head -n 1 "$work/fifo") == ready ]]; then
            rm "$work/fifo"
            [[ $(fetch "$port" '/site/page?user=0000000001&token=0000000000000000') == *"502"* &&
                $(fetch "$port" /files/site/images/0.gif) == *GIF89a* &&
                $(fetch "$port" /tare/stats) == *'"backend_errors":1,'* ]] || return 1
            if has openssl; then
                for version in tls1_2 tls1_3; do
                    printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet "-$version" -connect "127.0.0.1:$((port + 1))" 2>>"$work/told" |
                        grep --quiet 'no such page' || return 1
                done
            fi
            kill "$pid"
            wait "$pid" || true
            return
        fi
        rm "$work/fifo"
        wait "$pid" || true
        grep --quiet 'cannot listen' "$work/told" || break
    done
    cat "$work/told"
    return 1
}

need_tools
find_place

if [[ ! -d $place ]]; then
    say "building the web server and its runtime with Java $jdk_version"
    mkdir -p "$work/tree/lib"
    build_module
    cp "$work/sources/jvm/web/target/tare-web.jar" "$work/sources/jvm/web/target/lib"/*.jar "$work/tree/lib/"
    link_runtime "$modules" --exclude-files='/java.desktop/lib/**'
    # Classes are shared through an archive of those that a run loads. An archive with those of the jars would be refused
    # wherever they lie elsewhere.
    or_tell "run the server" serve -Xshare:off -Xmx200m -XX:+UseSerialGC -XX:DumpLoadedClassList="$work/classes"
    grep -v -e 'tare/' -e 'org/apache/' -e 'jakarta/' "$work/classes" >"$work/shared"
    write_archive "$work/shared"
    for collector in Serial G1; do
        or_tell "use the archive of classes" serve -Xshare:on "-XX:+Use${collector}GC" -Xmx1550m
    done
fi
publish
say "the web server and its runtime are in $payload/web"
