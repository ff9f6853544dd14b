#!/usr/bin/env bash
# What `seedling helper export` writes, read by the programs it is for: installs them from Debian if they are missing (without starting them), and
# runs the helper's tests with them.
set -euo pipefail

packages=()
need() { command -v "$1" >/dev/null || packages+=("$2"); }
export PATH=$PATH:/usr/sbin:/sbin
need haproxy haproxy
need dnsmasq dnsmasq-base
need named-checkconf bind9-utils
need dhcpd isc-dhcp-server
need kea-dhcp4 kea-dhcp4-server
need nginx nginx-light
need virt-xml-validate libvirt-clients
need xmllint libxml2-utils
if [ ${#packages[@]} -gt 0 ]; then
  echo "Debian packages: ${packages[*]}"
  # None of these servers may start here: what is tested is the reading of files.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' > $policy
    chmod +x $policy
    trap 'rm -f $policy' EXIT
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
cargo test --release --locked --workspace --test real_clients -- --ignored --nocapture export::
