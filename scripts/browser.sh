#!/usr/bin/env bash
# The live page in a real browser: installs Debian's Chromium if there is none, and runs crates/dashboard/tests/browser.
set -euo pipefail

if ! command -v chromium >/dev/null; then
  echo "Debian package: chromium"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
cargo test --release --locked --workspace --test browser -- --ignored --nocapture --test-threads 1
