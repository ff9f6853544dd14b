#!/bin/sh
# Writes the node OS of this live medium to a disk, with the config that bootkube left, and starts from it.
set -eu
disk=$1
coreos-installer install --copy-network --ignition-file /opt/openshift/master.ign "$disk"
touch /opt/openshift/.install-to-disk.done
systemctl reboot
