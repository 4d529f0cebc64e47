#!/usr/bin/env bash
# Pictures of reports, for a person to look at: scripts/screenshots.sh [RUN...], into target/screenshots.
#
# Without an argument these are the made-up findings of the tests (one of each kind of study) and the published reports; with
# run folders, these alone. Of each report: the whole page at 1280 and at 390 pixels, in light and in dark, and the printed pages.
# `index.html` and `listing.txt` there list them, with their printed pages and words.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-$PWD/target}"
out="$target/screenshots"

program=
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        program="$name"
        break
    fi
done
if [ -z "$program" ]; then
    echo "screenshots: no Chromium is installed; get it with your package manager (Debian: apt-get install chromium)" >&2
    exit 1
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

browser() {
    "$program" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
        --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile" "$@" 2>/dev/null
}

# A window is never narrower than 500 pixels, so each page lies in a frame of its own width.
height() { # FILE WIDTH
    sed 's#</body>#<script>onload=()=>parent.postMessage(document.documentElement.scrollHeight,"*")</script></body>#' "$1" >"$work/measured.html"
    echo "<iframe src=measured.html style='border:0;width:$2px;height:800px'></iframe><script>onmessage=own=>document.title=own.data</script>" >"$work/frame.html"
    browser --dump-dom "file://$work/frame.html" | sed -n 's#.*<title>\([0-9]*\)</title>.*#\1#p' | head -n 1
}

shoot() { # NAME FILE
    local width high scheme printed words
    cp "$2" "$work/page.html"
    for width in 1280 390; do
        high="$(height "$work/page.html" "$width")"
        echo "<body style='margin:0;background:#888'><iframe src=page.html style='border:0;display:block;width:${width}px;height:${high}px'></iframe>" >"$work/frame.html"
        for scheme in light dark; do
            browser --blink-settings=preferredColorScheme="$([ "$scheme" = dark ] && echo 0 || echo 1)" \
                --window-size="$((width < 500 ? 500 : width)),$high" --screenshot="$out/$1-$width-$scheme.png" "file://$work/frame.html" >/dev/null
        done
    done
    browser --no-pdf-header-footer --print-to-pdf="$out/$1.pdf" "file://$work/page.html" >/dev/null
    printed="$(grep -ac '/Type /Page$' "$out/$1.pdf")"
    words=unknown
    if command -v pdftoppm >/dev/null; then
        pdftoppm -r 70 -png "$out/$1.pdf" "$out/$1-print"
        words="$(pdftotext "$out/$1.pdf" - | wc -w)"
    fi
    echo "$1: $printed printed pages, $words words" | tee -a "$out/listing.txt"
}

if [ $# -gt 0 ]; then
    for run in "$@"; do
        shoot "$(basename "$run")" "$run/report.html"
    done
else
    cargo build --quiet --package tare-report --example demo --package tare --bin tare
    for name in findings platforms store density instances tiles serving one-arm; do
        "$target/debug/examples/demo" "$work/$name.html" "$name" >/dev/null
        shoot "$name" "$work/$name.html"
    done
    "$target/debug/tare" import --out "$work/published" >/dev/null
    for run in "$work"/published/*/; do
        "$target/debug/tare" report "$run" >/dev/null
        shoot "$(basename "$run")" "$run/report.html"
    done
fi

(
    cd "$out"
    echo '<!DOCTYPE html><meta charset="utf-8"><title>Reports</title><style>img{width:30%;vertical-align:top;border:1px solid #888}</style>'
    for picture in *.png; do
        echo "<a href=\"$picture\"><img src=\"$picture\" alt=\"$picture\"></a>"
    done
) >"$out/index.html"
echo "screenshots: $(find "$out" -name '*.png' | wc -l) pictures in $out; look at index.html"
