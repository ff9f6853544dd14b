#!/usr/bin/env bash
# What `seedling helper export` writes, read by the programs it is for.
set -euo pipefail

scripts/need.sh haproxy=haproxy dnsmasq=dnsmasq-base named-checkconf=bind9-utils dhcpd=isc-dhcp-server kea-dhcp4=kea-dhcp4-server \
  nginx=nginx-light virt-xml-validate=libvirt-clients xmllint=libxml2-utils
export PATH=$PATH:/usr/sbin:/sbin
cargo test --release --locked --workspace --test real_clients -- --ignored --nocapture export::
