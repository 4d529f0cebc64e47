# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # Read and set by scripts/bundle.sh, which sources this.
# The bundle of the web server: CACHE/bundle/web/{lib/*.jar,runtime/bin/java}.

title="web server"
# The container's classes have listeners of java.beans, which is in java.desktop, and name types of java.instrument and java.security.jgss;
# jdk.crypto.ec is for certificates and the agreement on keys.
modules=java.base,java.desktop,java.instrument,java.logging,java.management,java.naming,java.security.jgss,jdk.crypto.ec,jdk.management
application_classes='tare/|org/apache/|jakarta/'
trial_options=(-Xmx1550m)

# Made-up data, and a certificate where there is openssl: without it some classes of TLS are not in the archive, and start a
# little later.
make_data() {
    data=$work/data
    mkdir -p "$data/files/site/images"
    printf 'site\tpage\tTitle\t1\t2000\tlogin\tuser,token\t/files/site/images/0.gif\n' >"$data/pages.tsv"
    printf 'GIF89a' >"$data/files/site/images/0.gif"
    if has openssl; then
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout "$data/key" \
            -out "$data/certificate" -subj /CN=localhost
    fi
}

prepare() { or_show "make data" make_data; }

# launch PORT JAVA_OPTION...: how the server is started.
launch() {
    local port=$1
    shift
    command=("$work/tree/runtime/bin/java" "$@" -cp "$work/tree/lib/*" tare.web.Main --data "$data" --listen 127.0.0.1 --port "$port"
        --backend 127.0.0.1:9)
    if has openssl; then
        command+=(--tls-port $((port + 1)) --certificate "$data/certificate" --key "$data/key")
    fi
}

# check PORT: whether every request there, and with TLS, is answered as it should be.
check() {
    local version
    answers "$1" '/site/page?user=0000000001&token=0000000000000000' ' 502 ' &&
        answers "$1" /files/site/images/0.gif GIF89a &&
        answers "$1" /tare/stats '"backend_errors":1,' || return 1
    if has openssl; then
        for version in tls1_2 tls1_3; do
            if ! printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet "-$version" -connect "127.0.0.1:$(($1 + 1))" 2>&1 |
                tee "$work/tls" | grep --quiet 'no such page'; then
                cat "$work/tls"
                return 1
            fi
        done
    fi
}

# trial JAVA_OPTION...: starts it, and asks it for a page, a file and its state.
trial() { serving check launch "$@"; }
