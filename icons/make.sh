#!/bin/sh
# Renders steno.svg to every size that the bundles name.
set -eu
cd "$(dirname "$0")"
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
npx --yes @tauri-apps/cli@2.12.5 icon steno.svg --output "$all"
for file in 32x32.png 128x128.png 128x128@2x.png icon.png icon.ico icon.icns; do
  cp "$all/$file" "$file"
done
