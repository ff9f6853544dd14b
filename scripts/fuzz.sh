#!/bin/sh
# Fuzzes the reading of install-configs, or of manifests, or the helper's packets (FUZZ_TARGET=manifests, tftp or dhcp), for some time (FUZZ_SECONDS, 300). The flags are
# cargo-fuzz's; no nightly compiler is needed. Everything it makes is below target/fuzz: what it learnt, and an input that it broke on.
set -eu
cd "$(dirname "$0")/.."
command -v c++ >/dev/null || { echo "fuzzing needs a C++ compiler: apt-get install g++" >&2; exit 1; }
target=${FUZZ_TARGET:-install_config}
out=target/fuzz
corpus=$out/corpus/$target
mkdir -p "$corpus"
case $target in
install_config) seeds=crates/assets/tests/data/*/install-config.yaml ;;
manifests) seeds=crates/assets/tests/data/*/manifests/*.json ;;
*) seeds= ;;
esac
for seed in $seeds; do
    cp "$seed" "$corpus/$(basename "$(dirname "$seed")")-$(basename "$seed")"
done
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
exec cargo run --manifest-path fuzz/Cargo.toml --locked --release --target-dir "$out" --target x86_64-unknown-linux-gnu --bin "$target" -- \
    -max_total_time="${FUZZ_SECONDS:-300}" -max_len=8192 -timeout=60 -artifact_prefix="$out/" -dict=fuzz/install-config.dict "$corpus"
