#!/usr/bin/env bash
# Network boot with real firmware: installs QEMU, iPXE, OVMF and TFTP clients if they are missing, fetches a kernel of Debian's, and runs the
# helper's tests with them. Everything happens in network namespaces of the tests.
set -euo pipefail

packages=()
need() { [ -e "$1" ] || command -v "$1" >/dev/null || packages+=("$2"); }
need qemu-system-x86_64 qemu-system-x86
need /usr/lib/ipxe/undionly.kpxe ipxe
need /usr/lib/ipxe/qemu/pxe-virtio.rom ipxe-qemu
need /usr/share/OVMF/OVMF_CODE_4M.fd ovmf
need /usr/lib/PXELINUX/pxelinux.0 pxelinux
need /usr/lib/syslinux/modules/bios/ldlinux.c32 syslinux-common
need tftp tftp-hpa
need atftp atftp
if [ ${#packages[@]} -gt 0 ]; then
  echo "Debian packages: ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

if [ -z "${SEEDLING_TEST_KERNEL:-}" ]; then
  cache=${SEEDLING_CACHE:-/var/cache/seedling}/test-kernel
  if [ ! -e "$cache/vmlinuz" ]; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
    (cd "$fetched" && apt-get download -qq "$package" && dpkg -x ./*.deb tree)
    mkdir -p "$cache"
    cp "$fetched"/tree/boot/vmlinuz-* "$cache/vmlinuz.partial"
    mv "$cache/vmlinuz.partial" "$cache/vmlinuz"
  fi
  export SEEDLING_TEST_KERNEL=$cache/vmlinuz
fi
cargo test --release --locked --workspace --test real_clients -- --ignored --nocapture --test-threads 1 "${@:-qemu::}"
