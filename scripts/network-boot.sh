#!/usr/bin/env bash
# Network boot with real firmware: installs QEMU, iPXE, OVMF and TFTP clients if they are missing, fetches a kernel of Debian's, and runs the
# helper's tests with them. Everything happens in network namespaces of the tests.
set -euo pipefail

scripts/need.sh qemu-system-x86_64=qemu-system-x86 /usr/lib/ipxe/undionly.kpxe=ipxe /usr/lib/ipxe/qemu/pxe-virtio.rom=ipxe-qemu \
  /usr/share/OVMF/OVMF_CODE_4M.fd=ovmf /usr/lib/PXELINUX/pxelinux.0=pxelinux /usr/lib/syslinux/modules/bios/ldlinux.c32=syslinux-common \
  tftp=tftp-hpa atftp=atftp

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
