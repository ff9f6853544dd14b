#!/usr/bin/env bash
# The live page in a real browser: installs Debian's Chromium if there is none, fetches axe-core, which tells what keeps people from using a
# page, and runs crates/dashboard/tests/browser.
set -euo pipefail

axe=4.14.0

scripts/need.sh chromium=chromium npm=npm
if ! grep -qs "\"version\": \"$axe\"" target/axe/node_modules/axe-core/package.json; then
  npm install --prefix target/axe --no-save --no-audit --no-fund --ignore-scripts "axe-core@$axe"
fi
cargo test --release --locked --workspace --test browser -- --ignored --nocapture --test-threads 1
