#!/usr/bin/env bash
# Says whether this machine can run Seedling, and installs the Debian packages that are missing. Rust is the one prerequisite.
set -euo pipefail

packages=(bind9-dnsutils busybox-static ca-certificates conntrack curl debian-archive-keyring debootstrap e2fsprogs gcc
  ignition iproute2 iptables libc6-dev libprotobuf-dev libseccomp-dev make nftables openssl pkg-config procps protobuf-compiler runc tmux util-linux)
problems=()

[ "$(id -u)" = 0 ] || problems+=("not root: it makes namespaces, mounts and machines; run it as root")
if ! grep -qsE '^(ID|ID_LIKE)=.*(debian|ubuntu)' /etc/os-release; then
  problems+=("not Debian or Ubuntu: packages are installed with apt-get")
fi
[ "$(uname -m)" = x86_64 ] || problems+=("$(uname -m): the payload is built for x86_64")
memory=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
[ "$memory" -ge 6 ] || problems+=("${memory} GiB of memory free: a bring-up needs 6")
# Built once, a payload and what it was built from take half of that: only tests and machines still need room.
cache=${SEEDLING_CACHE:-/var/cache/seedling}
need=20
[ ! -e "$cache/release/release.json" ] || need=10
disk=$(df --output=avail -B1G . | tail -n 1 | tr -d ' ')
[ "$disk" -ge "$need" ] || problems+=("${disk} GiB of disk free: payload, caches and machines need $need")
command -v cargo >/dev/null || problems+=("no cargo: install Rust from https://rustup.rs")

if [ "${#problems[@]}" -gt 0 ]; then
  echo "This machine cannot run Seedling yet:" >&2
  printf '  - %s\n' "${problems[@]}" >&2
  exit 1
fi

command -v go >/dev/null || packages+=(golang-go)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "1 of 4, Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
