#!/usr/bin/env bash
# Real machines in QEMU: installs what they need of Debian if it is missing, and runs the tests that boot them (crates/image/tests).
# `scripts/qemu.sh packages` only installs.
set -euo pipefail

packages=(qemu-system-x86 qemu-utils ovmf ipxe-qemu ipxe pxelinux syslinux-common squashfs-tools grub-common grub-pc-bin
  grub-efi-amd64-bin dosfstools mtools fdisk xorriso openssh-client debootstrap e2fsprogs)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
[ "${1:-}" != packages ] || exit 0
cargo test --release --locked --workspace --test qemu -- --ignored --nocapture --test-threads 1
