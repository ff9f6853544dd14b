#!/usr/bin/env bash
# `make test`: stops at the first failure; prints how many tests passed.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
step() { printf '\n== %s ==\n' "$1"; shift; "$@" 2>&1 | tee -a "$log"; }

step "setup" scripts/setup.sh
step "format, lints, dependencies" scripts/check.sh
step "a fresh machine, Debian 12 or 13 by date" scripts/fresh-root.sh --today
step "unit and integration tests" make --no-print-directory unit
step "the live page in a browser" make --no-print-directory browser
step "payload" make --no-print-directory release
step "real components without a lab" make --no-print-directory components
step "end to end" make --no-print-directory e2e E2E="pulled seeded"
# Lost majorities and chaos, conformance, the package, ended certificates, workers: all of them would take hours.
step "one of the other parts, another every day" make --no-print-directory test-all PARTS=--today

passed=$(awk '/^test result: ok\./ {n += $4} END {print n + 0}' "$log")
printf '\n%s tests passed\n' "$passed"
[ "$passed" -gt 0 ]
