#!/usr/bin/env bash
# Installs the Debian packages of programs or files that are missing: `scripts/need.sh haproxy=haproxy /usr/lib/ipxe/undionly.kpxe=ipxe`.
# Servers among them are not started: whoever needs them starts them, in a network of its own.
set -euo pipefail

export PATH=$PATH:/usr/sbin:/sbin
packages=()
for pair in "$@"; do
  [ -e "${pair%%=*}" ] || command -v "${pair%%=*}" >/dev/null || packages+=("${pair#*=}")
done
[ ${#packages[@]} -gt 0 ] || exit 0
echo "Debian packages: ${packages[*]}"
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' > $policy
  chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
