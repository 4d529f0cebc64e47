#!/usr/bin/env bash
# The web server of workloads/web/app against the container that it is made of: the same virtual machine and options, the same connectors,
# the same files; the peer has the container's servlet for files alone, all as it comes. And pages, which the peer has none of.
#
# wrk offers the load, on loopback, on a processor of its own. One round runs each contestant once, in an order that changes from
# round to round. Judged are requests a second of processor time (user and system, of the server's whole process): that is
# what a share of a processor can serve. ROUNDS (5), SECONDS_EACH (4), CONNECTIONS (32), JAVA_OPTIONS and BUNDLE are environment variables.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
ROUNDS=${ROUNDS:-5}
SECONDS_EACH=${SECONDS_EACH:-4}
CONNECTIONS=${CONNECTIONS:-32}
JAVA_OPTIONS=${JAVA_OPTIONS:--Xms256m -Xmx256m}
# shellcheck source=scripts/cache.sh
. scripts/cache.sh
BUNDLE=${BUNDLE:-$cache/bundle/web}
for program in wrk javac openssl taskset; do
    command -v "$program" >/dev/null || { echo "no $program; install wrk, a JDK, openssl and util-linux" >&2 && exit 1; }
done
[[ -x $BUNDLE/runtime/bin/java ]] || { echo "no server in $BUNDLE; scripts/bundle.sh web builds it" >&2 && exit 1; }

work=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap cleanup EXIT

# A free port of the loopback address.
port=$((20000 + RANDOM % 10000))
next_port() {
    port=$((port + 1))
    while (exec 7<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
}

data=$work/data
images=$data/files/banking/images/login
checks=$data/files/banking/checks/0000000001
mkdir -p "$images" "$checks" "$data/files/support/downloads/00000" "$work/classes"
head -c 5271 /dev/zero | tr '\0' x >"$images/00.gif"
# More than the peer's cache has room for (10 MiB), as there are at any number of sessions worth measuring.
head -c $((4000 * 10757)) /dev/zero | tr '\0' x | split --bytes=10757 --numeric-suffixes --suffix-length=4 - "$checks/"
cat >"$work/check.lua" <<'LUA'
function request() return wrk.format("GET", string.format("%s%04d", wrk.path, math.random(0, 3999))) end
LUA
head -c 1048576 /dev/zero | tr '\0' x >"$data/files/support/downloads/00000/2-0.bin"
find "$data" -type f -exec touch -d 2005-01-01T00:00:00Z {} +
embedded=/files/banking/images/login/00.gif
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13; do embedded+=,/files/banking/images/login/00.gif; done
printf 'banking\tlogin\tLog in\t1\t4000\tlogin\tuser,token\t%s\nbanking\taccount_summary\tAccounts\t2\t17000\tmember\tuser,token\t%s\nsupport\tfile\tFile\t6\t113300\topen\ttoken\t%s\n' \
    "$embedded" "$embedded" "$embedded" >"$data/pages.tsv"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout "$work/key" -out "$work/certificate" \
    -subj /CN=localhost 2>/dev/null
javac -cp "$BUNDLE/lib/*" -d "$work/classes" workloads/web/app/src/test/java/tare/web/{PlainContainer,QuickBackend}.java

# begin NAME COMMAND...: starts a program, and waits until it is ready; its number is in started.
begin() {
    local name=$1
    shift
    mkfifo "$work/$name.fifo"
    "$@" >"$work/$name.fifo" 2>"$work/$name.said" </dev/null &
    started=$!
    pids+=("$started")
    if [[ $(head -n 1 "$work/$name.fifo") != ready ]]; then
        echo "$name does not start: $(cat "$work/$name.said")" >&2
        exit 1
    fi
}
# Who is measured has the first processor; all else has the others.
measured() { begin "$1" taskset -c 0 "$BUNDLE/runtime/bin/java" "${@:2}"; }
others=1-$(($(nproc) - 1))
read -ra options <<<"$JAVA_OPTIONS"
next_port && backend=$port
begin backend taskset -c "$others" "$BUNDLE/runtime/bin/java" -cp "$work/classes" tare.web.QuickBackend "$backend"
next_port && plain=$port && next_port && secure=$port
measured tare "${options[@]}" -cp "$BUNDLE/lib/*" tare.web.Main --data "$data" --listen 127.0.0.1 --port "$plain" --tls-port "$secure" \
    --certificate "$work/certificate" --key "$work/key" --backend "127.0.0.1:$backend"
tare=$started
next_port && peer_plain=$port && next_port && peer_secure=$port
measured peer "${options[@]}" -cp "$work/classes:$BUNDLE/lib/*" tare.web.PlainContainer "$data" "$peer_plain" "$peer_secure" \
    "$work/certificate" "$work/key"
peer=$started

ticks=$(getconf CLK_TCK)
spent() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# A member's pages need the cookie of a login.
cookie=$(curl -si "http://127.0.0.1:$plain/banking/login?user=0000000001&token=0123456789abcdef" | sed -n 's/^Set-Cookie: \(SESSION=[^;]*\).*/\1/p')

# offer WHO ADDRESS SECONDS: prints requests a second, and those a second of processor time.
offer() {
    local before after said rate how=()
    [[ $2 != */ ]] || how=(-s "$work/check.lua")
    before=$(spent "$1")
    said=$(taskset -c "$others" wrk -t 1 -c "$CONNECTIONS" -d "${3}s" -H "Cookie: $cookie" "${how[@]}" "$2")
    after=$(spent "$1")
    if grep --quiet -e 'Non-2xx' -e 'Socket errors' <<<"$said" && [[ $said != *"Non-2xx or 3xx responses: 0"* ]]; then
        echo "$2 is not answered well: $said" >&2
        exit 1
    fi
    rate=$(awk '/requests in/ { print $1 }' <<<"$said")
    awk -v count="$rate" -v ticks=$((after - before)) -v per="$ticks" -v seconds="$3" 'BEGIN { printf "%.0f %.0f\n", count / seconds, count / (ticks / per) }'
}

member="banking/account_summary?user=0000000001&token=0123456789abcdef"
declare -A paths=(
    [image]=files/banking/images/login/00.gif
    [one]=files/banking/checks/0000000001/0000
    [check]=files/banking/checks/0000000001/
    [download]=files/support/downloads/00000/2-0.bin
)
KINDS=${KINDS:-image one check download}
both() { # KIND WAY URL_OF_TARE URL_OF_PEER TARE_FIRST SECONDS
    local who order="peer tare"
    ((!$5)) || order="tare peer"
    for who in $order; do
        case $who in
        tare) echo "$1 $2 tare $(offer "$tare" "$3/${paths[$1]}" "$6")" ;;
        peer) echo "$1 $2 peer $(offer "$peer" "$4/${paths[$1]}" "$6")" ;;
        esac
    done
}
round() {
    local kind
    for kind in $KINDS; do
        both "$kind" plain "http://127.0.0.1:$plain" "http://127.0.0.1:$peer_plain" $(($1 % 2)) "$2"
        [[ $kind == image ]] || continue
        both "$kind" TLS "https://127.0.0.1:$secure" "https://127.0.0.1:$peer_secure" $((($1 + 1) % 2)) "$2"
    done
    echo "page_17k plain tare $(offer "$tare" "http://127.0.0.1:$plain/$member" "$2")"
    echo "page_17k TLS tare $(offer "$tare" "https://127.0.0.1:$secure/$member" "$2")"
    echo "page_113k plain tare $(offer "$tare" "http://127.0.0.1:$plain/support/file?token=0123456789abcdef" "$2")"
}

# Until the compilers of both have done most of their work.
round 0 "$SECONDS_EACH" >/dev/null
for ((i = 1; i <= ROUNDS; i++)); do
    round "$i" "$SECONDS_EACH" | sed "s/^/$i /"
done >"$work/results"

awk '
    function median(text, n, parts, i, j, swap) {
        n = split(text, parts, " ")
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (parts[j] + 0 < parts[i] + 0) { swap = parts[i]; parts[i] = parts[j]; parts[j] = swap }
        return n % 2 ? parts[(n + 1) / 2] : (parts[n / 2] + parts[n / 2 + 1]) / 2
    }
    {
        what = $2 " " $3
        if (!(what in seen)) { seen[what] = 1; order[++kinds] = what }
        rate[what, $4] = rate[what, $4] " " $5
        cpu[what, $4] = cpu[what, $4] " " $6
        at[what, $4, $1] = $6
        if ($1 > rounds) rounds = $1
    }
    END {
        printf "%-16s %12s %14s %14s %12s\n", "what", "tare /s", "tare /CPU s", "peer /CPU s", "ratio"
        for (k = 1; k <= kinds; k++) {
            what = order[k]
            ratios = ""
            for (i = 1; i <= rounds; i++) if (at[what, "peer", i] > 0) ratios = ratios " " at[what, "tare", i] / at[what, "peer", i]
            printf "%-16s %12.0f %14.0f ", what, median(rate[what, "tare"]), median(cpu[what, "tare"])
            if (ratios == "") printf "%14s %12s\n", "-", "-"
            else printf "%14.0f %12.3f\n", median(cpu[what, "peer"]), median(ratios)
        }
    }' "$work/results"
