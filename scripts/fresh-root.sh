#!/usr/bin/env bash
# Shows that a Debian with only git, make and Rust is enough: in an empty root made by debootstrap it runs scripts/setup.sh, and every build
# script of every dependency, since those are what needs the system's programs and headers. Passes at once when nothing it depends on
# has changed since it was last green.
#
#   fresh-root.sh [SUITE ...]            the check (default: bookworm trixie)
#   fresh-root.sh --today                the check, of one of the two: another every day
#   fresh-root.sh --whole SUITE          the whole of `make lab` there, from nothing, in namespaces of its own; says how long it took
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${SEEDLING_CACHE:-/var/cache/seedling}/fresh-root
whole=
[ "${1:-}" = --whole ] && { whole=1; shift; }
suites=("$@")
if [ "${1:-}" = --today ]; then
  both=(bookworm trixie)
  suites=("${both[$(($(date +%s) / 86400 % 2))]}")
fi
[ "${#suites[@]}" -gt 0 ] || suites=(bookworm trixie)
mkdir -p "$cache"

inputs=(Cargo.lock Cargo.toml rust-toolchain.toml .cargo/config.toml scripts/setup.sh scripts/fresh-root.sh crates/*/Cargo.toml crates/*/build.rs
  tests/Cargo.toml)
digest=$(for file in "${inputs[@]}"; do [ -f "$file" ] && sha256sum "$file"; done | sha256sum | cut -d' ' -f1)

# The root as Debian gives it, made once; every run writes into a layer of its own.
base() {
  local suite=$1
  [ -d "$cache/$suite" ] && return
  echo "fresh root: making an empty $suite (once, about a minute)"
  local made; made=$(mktemp -d "$cache/.making-XXXXXX")
  debootstrap --variant=minbase --force-check-gpg --include=git,make --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$made" >"$cache/debootstrap.log" 2>&1 ||
    { tail -n 5 "$cache/debootstrap.log" >&2; rm -rf "$made"; exit 1; }
  rm -rf "$made"/var/cache/apt/archives/*.deb
  chmod 755 "$made"
  mv "$made" "$cache/$suite"
}

# What the inner shell gets besides the root: the toolchain, this machine's way to the network, the sources.
run() {
  local suite=$1 script=$2
  local work; work=$(mktemp -d "$cache/.run-XXXXXX")
  mkdir -p "$work"/{upper,overlay,root,cache,state,go}
  local status=0
  suite=$suite work=$work base=$cache/$suite script=$script source=$PWD whole=$whole \
    sysroot=$(rustc --print sysroot) registry=${CARGO_HOME:-$HOME/.cargo}/registry \
    unshare --mount --pid --fork --kill-child --propagation private bash -euo pipefail -c '
      mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/overlay" "$work/root"
      cd "$work/root"
      mkdir -p opt/rust opt/cargo/registry seedling root/go var/cache/seedling var/lib/seedling old
      mount --bind -o ro "$sysroot" opt/rust
      # A check compiles what is here already; a first run fetches everything itself.
      if [ -z "$whole" ] && [ -d "$registry" ]; then mount --bind "$registry" opt/cargo/registry; fi
      mount --bind "$work/go" root/go
      mount --bind "$work/cache" var/cache/seedling
      mount --bind "$work/state" var/lib/seedling
      cp /etc/resolv.conf etc/resolv.conf
      mkdir -p usr/local/share/ca-certificates
      find /usr/local/share/ca-certificates -name "*.crt" -exec cp {} usr/local/share/ca-certificates/ \;
      git -c safe.directory="*" -C "$source" ls-files -z | (cd "$source" && xargs -0 cp --parents -t "$work/root/seedling")
      mount -t proc proc proc
      mount --rbind /sys sys
      mount --rbind /dev dev
      mount -t tmpfs tmpfs run
      mount -t tmpfs tmpfs tmp
      # Not chroot: what runs containers must be able to change its root again.
      pivot_root . old
      umount -l old
      exec env -i HOME=/root PATH=/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 CARGO_HOME=/opt/cargo CARGO_NET_RETRY=10 \
        SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt bash -euo pipefail -c "cd /seedling; $script"
    ' || status=$?
  rm -rf --one-file-system "$work" 2>/dev/null || { chmod -R u+w "$work"; rm -rf --one-file-system "$work"; }
  return "$status"
}

# Checking runs every build script and links those and all macros; what is only translated to machine code needs nothing of the system.
check='scripts/setup.sh
  CARGO_TARGET_DIR=/var/cache/seedling/target cargo check --quiet --locked --workspace'

for suite in "${suites[@]}"; do
  base "$suite"
  start=$SECONDS
  if [ -n "$whole" ]; then
    run "$suite" 'make lab; target/x86_64-unknown-linux-gnu/release/seedling kubectl get nodes; target/x86_64-unknown-linux-gnu/release/seedling lab down'
    echo "fresh root: \`make lab\` on $suite from nothing took $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s"
  elif [ "$(cat "$cache/$suite.green" 2>/dev/null)" = "$digest" ]; then
    echo "fresh root: $suite was green with the same inputs"
  else
    echo "fresh root: setting up $suite"
    run "$suite" "$check"
    echo "$digest" >"$cache/$suite.green"
    echo "fresh root: $suite sets up and compiles ($((SECONDS - start)) s)"
  fi
done
