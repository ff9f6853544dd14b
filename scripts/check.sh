#!/usr/bin/env bash
# Format, lints, and the dependency tree: no OpenSSL, no dead YAML, one crypto provider.
set -euo pipefail

cargo fmt --all --check
cargo clippy --release --locked --workspace --all-targets -- -D warnings
# Not among "all": `make unit` must not run it.
cargo clippy --release --locked --workspace --test e2e -- -D warnings

# A workspace of its own, with a lock file that nothing else looks at.
cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu --manifest-path fuzz/Cargo.toml >/dev/null

# Whatever features pull them in: what is linked, tested or run at build time.
tree=$(cargo tree --locked --workspace --edges normal,build,dev --prefix none --format '{p}')
for banned in openssl openssl-sys native-tls serde_yaml ring; do
  if grep -qE "^$banned v" <<<"$tree"; then
    echo "banned crate in the dependency tree: $banned (see deny.toml)" >&2
    cargo tree --locked --workspace --invert "$banned" >&2 || true
    exit 1
  fi
done
echo "dependency tree: no banned crate, one crypto provider (aws-lc-rs)"
