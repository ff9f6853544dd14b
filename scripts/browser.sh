#!/usr/bin/env bash
# The live page in a real browser: installs Debian's Chromium if there is none, and runs crates/dashboard/tests/browser.
set -euo pipefail

scripts/need.sh chromium=chromium
cargo test --release --locked --workspace --test browser -- --ignored --nocapture --test-threads 1
