#!/usr/bin/env bash
# What QEMU machines of a lab need of this one: installs the Debian packages that are missing. `make lab` does without.
set -euo pipefail

packages=(debootstrap dosfstools e2fsprogs ipxe ipxe-qemu openssh-client ovmf pxelinux qemu-system-x86 squashfs-tools syslinux-common)
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
