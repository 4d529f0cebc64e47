#!/usr/bin/env bash
# Copies what `make build` built to PREFIX (below DESTDIR, for packages), with manual pages, completions and studies.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix
target_dir=${CARGO_TARGET_DIR:-target}
tare=$target_dir/release/tare

install -d "$root/bin" "$root/share/man/man1" "$root/share/tare"
install -m 755 "$tare" "$root/bin/"
# tare looks for its agent beside itself; one of a package also in /usr/lib/tare, off the user's path.
agent_folder=${DESTDIR:-}${AGENT_FOLDER:-$prefix/bin}
install -D -m 755 "$target_dir/release/tare-agent" "$agent_folder/tare-agent"
"$tare" man "$root/share/man/man1"

install -d "$root/share/bash-completion/completions" "$root/share/zsh/site-functions" "$root/share/fish/vendor_completions.d"
"$tare" completions bash >"$root/share/bash-completion/completions/tare"
"$tare" completions zsh >"$root/share/zsh/site-functions/_tare"
"$tare" completions fish >"$root/share/fish/vendor_completions.d/tare.fish"

cp -R studies "$root/share/tare/"
install -D -m 644 LICENSE "$root/share/doc/tare/copyright"
install -m 644 CHANGELOG.md "$root/share/doc/tare/"
echo "installed tare to $root/bin"
