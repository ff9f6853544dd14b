#!/bin/sh
# Fuzzes what reads other people's bytes, each for some time (FUZZ_SECONDS, 60): install-configs and manifests, and every parser of the
# network. Some of them: `scripts/fuzz.sh dns http`. The flags are cargo-fuzz's; no nightly compiler is needed. Everything it makes is below
# target/fuzz: what it learnt, and an input that it broke on.
set -eu
cd "$(dirname "$0")/.."
scripts/need.sh c++=g++ # libFuzzer is C++
targets=${*:-dhcp dhcp6 dns http install_config manifests proxy tftp}
out=target/fuzz
triple=x86_64-unknown-linux-gnu
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
bins=
for target in $targets; do bins="$bins --bin $target"; done
# shellcheck disable=SC2086 # words
cargo build --manifest-path fuzz/Cargo.toml --locked --release --target-dir "$out" --target $triple $bins
for target in $targets; do
    corpus=$out/corpus/$target
    mkdir -p "$corpus"
    case $target in
    install_config) seeds=crates/assets/tests/data/*/install-config.yaml dictionary=install-config ;;
    manifests) seeds=crates/assets/tests/data/*/manifests/*.json dictionary=install-config ;;
    http) seeds= dictionary=http ;;
    *) seeds= dictionary= ;;
    esac
    for seed in $seeds; do
        cp "$seed" "$corpus/$(basename "$(dirname "$seed")")-$(basename "$seed")"
    done
    echo "fuzzing $target for ${FUZZ_SECONDS:-60} s"
    $out/$triple/release/$target -max_total_time="${FUZZ_SECONDS:-60}" -max_len=8192 -timeout=60 -artifact_prefix="$out/$target-" \
        -verbosity=0 -print_final_stats=1 ${dictionary:+-dict=fuzz/$dictionary.dict} "$corpus"
done
