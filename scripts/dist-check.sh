#!/usr/bin/env bash
# What `make dist` made, tried as a user has it. Parts by name, all without one:
#   package   apt installs the .deb into an empty Debian; program, man pages, completions and unit are there and right
#   lab       in that Debian, in a network namespace without a way out: `release load`, `lab up`; a cluster within two minutes
#   twice     everything is made once more, from empty caches, and is the same byte for byte
# DIST_CHECK_RUST=1 compiles every crate again too (a quarter of an hour on two cores); otherwise only our own.
set -euo pipefail
cd "$(dirname "$0")/.."

dist=$PWD/target/dist
cache=${SEEDLING_CACHE:-/var/cache/seedling}
suite=${DIST_CHECK_SUITE:-bookworm}
lab=${DIST_CHECK_LAB:-dist-check}
limit=120
target=target/x86_64-unknown-linux-gnu/release
work=
say() { printf -- '-- %s\n' "$*"; }
die() { printf 'dist-check: %s\n' "$*" >&2; exit 1; }
clean() { [ -z "$work" ] || rm -rf --one-file-system "$work"; }
trap clean EXIT

# An empty Debian, kept in the cache; a copy of it in $work/root.
empty_root() {
  local kept=$cache/roots/dist-$suite
  if [ ! -d "$kept" ]; then
    say "an empty Debian $suite by debootstrap"
    rm -rf --one-file-system "$kept.making"
    mkdir -p "$cache/roots"
    debootstrap --variant=minbase --force-check-gpg --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$kept.making" >"$kept.log" 2>&1 || die "debootstrap failed: $kept.log"
    mv "$kept.making" "$kept"
  fi
  [ -n "$work" ] || work=$(mktemp -d "$cache/dist-check.XXXXXX")
  [ -d "$work/root" ] || cp -a "$kept" "$work/root"
  cp /etc/resolv.conf "$work/root/etc/resolv.conf"
}

# inside [--net] SCRIPT: in the root, with mounts and processes of its own, so that nothing stays however it ends; with --net also a
# network of its own, which has a loopback and no way out.
inside() {
  local net= status=0
  [ "$1" != --net ] || { net=--net; shift; }
  # The machine's own kernel settings are remembered for all labs of it: that file is shared.
  mkdir -p /run/seedling
  root=$work/root net=$net unshare $net --mount --pid --fork --kill-child --propagation private bash -euo pipefail -c '
    [ -z "$net" ] || ip link set lo up
    mount --bind "$root" "$root"
    cd "$root"
    mkdir -p old
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs tmpfs run
    mkdir run/seedling
    mount --bind /run/seedling run/seedling
    # Not chroot: what runs containers must be able to change its root again.
    pivot_root . old
    umount -l old
    exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$1"
  ' bash "$1" || status=$?
  rmdir /run/seedling 2>/dev/null || true
  return "$status"
}

package() {
  empty_root
  cp "$dist"/seedling_*_amd64.deb "$work/root/root/"
  say "apt-get install ./seedling_*.deb in an empty $suite"
  inside 'cd /root; apt-get -q update; apt-get -q -y install ./seedling_*.deb' >"$work/apt.log" 2>&1 \
    || { tail -n 20 "$work/apt.log"; die "apt could not install it"; }
  inside 'seedling version
    dpkg --verify seedling
    for program in cargo rustc go gcc debootstrap; do if command -v $program; then exit 1; fi; done
    bash -n /usr/share/bash-completion/completions/seedling
    (. /usr/share/bash-completion/completions/seedling; complete -p seedling) >/dev/null
    seedling completion zsh | cmp - /usr/share/zsh/vendor-completions/_seedling
    seedling completion fish | cmp - /usr/share/fish/vendor_completions.d/seedling.fish
    grep -q . /usr/share/doc/seedling/copyright' || die "the package is not as it should be"
  local page pages=0 complaints
  for page in "$work"/root/usr/share/man/man1/seedling*.1.gz; do
    pages=$((pages + 1))
    command -v man >/dev/null || continue
    complaints=$(man --warnings -l "$page" 2>&1 >/dev/null)
    [ -z "$complaints" ] || die "$page: $complaints"
  done
  [ -e "$work/root/usr/share/man/man1/seedling-lab-up.1.gz" ] || die "no page for lab up"
  if command -v systemd-analyze >/dev/null; then
    # Read by this machine's systemd, which has no such program: an empty Debian has no systemd.
    sed 's#/usr/bin/seedling#/bin/true#' "$work/root/usr/lib/systemd/system/seedling-helper.service" >"$work/seedling-helper.service"
    systemd-analyze --man=no verify "$work/seedling-helper.service" || die "the unit is wrong"
  fi
  say "installed: program, $pages man pages, completions for three shells, the helper's unit"
}

# In what package leaves: an empty Debian with the .deb, and nothing else of ours.
lab() {
  [ -n "$work" ] || package
  mkdir -p "$work/root/dist"
  cp "$dist"/SHA256SUMS "$dist"/seedling-payload-*.tar "$work/root/dist/"
  say "release load and lab up, without a network"
  inside --net "
    export SEEDLING_LAB=$lab
    trap 'seedling lab down' EXIT
    if timeout 5 bash -c 'exec 3<>/dev/tcp/deb.debian.org/80' 2>/dev/null; then echo 'there is a way out' >&2; exit 1; fi
    SECONDS=0
    seedling release load /dist/seedling-payload-*.tar
    echo \"-- loaded after \$SECONDS s\"
    seedling lab up
    echo \$SECONDS >/root/seconds
    seedling kubectl get nodes,clusteroperators
  " || die "no cluster without a network"
  local took; took=$(cat "$work/root/root/seconds")
  say "from the archive to a cluster in $took s"
  [ "$took" -le "$limit" ] || die "that is more than $limit s"
}

# The first result stays where it is; the second is made with caches of its own.
twice() {
  local again=$cache/dist-again
  rm -rf --one-file-system "$again"
  mkdir -p "$again/node-image" "$again/go"
  # What was downloaded may stay: it is checked by its sums. What was made of it may not.
  [ ! -d "$cache/node-image/debs" ] || cp -al "$cache/node-image/debs" "$again/node-image/debs"
  for toolchain in "$cache"/go/go1.*; do [ ! -d "$toolchain" ] || cp -al "$toolchain" "$again/go/"; done
  # Into a target directory of its own. Unless everything is asked for, it begins with the dependencies as they were compiled.
  if [ -z "${DIST_CHECK_RUST:-}" ]; then
    say "compiling our own crates again"
    cp -al target "$again/target"
    # Named, because without it cargo cleans only what is compiled for this machine.
    CARGO_TARGET_DIR=$again/target cargo clean --quiet --release --locked --target x86_64-unknown-linux-gnu $(own_crates)
  else
    say "compiling everything again"
  fi
  CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$again/target \
    cargo build --release --locked --workspace --bin seedling 2>&1 | tee "$again/cargo.log"
  grep -q 'Compiling seedling ' "$again/cargo.log" || die "cargo has not compiled it again"
  cmp "$again/$target/seedling" "$target/seedling" || die "the program is another one"
  say "linking the payload, making the node image and packing again"
  SEEDLING_CACHE=$again $again/$target/seedling release build --out "$again/release"
  SEEDLING_CACHE=$again SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) \
    $again/$target/seedling dist --release "$again/release" --out "$again/dist"
  diff "$dist/SHA256SUMS" "$again/dist/SHA256SUMS" || die "made twice, and not the same"
  say "made twice, the same:"
  cat "$dist/SHA256SUMS"
  rm -rf --one-file-system "$again"
}

own_crates() {
  cargo metadata --format-version 1 --no-deps --locked | tr '{' '\n' | sed -n 's/^"name":"\(seedling[^"]*\)","version.*/-p \1/p'
}

[ $# -gt 0 ] || set -- package lab twice
for part in "$@"; do
  case $part in
  package | lab | twice) "$part" ;;
  *) die "no such part: $part (package, lab, twice)" ;;
  esac
done
