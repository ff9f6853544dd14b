#!/bin/sh
# What `gather bootstrap` calls over SSH: packs journals, records and manifests of this node into one archive, and names it.
# installer-gather.sh [--id ID] [MASTER...]   (masters are reached by their own agent, not from here)
set -u
id=$(date -u +%Y%m%d%H%M%S)
if [ "${1:-}" = --id ]; then
    id=$2
    shift 2
fi
bundle=/tmp/log-bundle-$id
to=$bundle/bootstrap
mkdir -p "$to/journals" "$to/services" "$to/containers"
for unit in release-image containerd kubelet bootkube approve-csr progress; do
    journalctl --boot --no-pager --output=short-precise -u "$unit" >"$to/journals/$unit.log"
done
cp /var/log/openshift/*.json "$to/services/" 2>/dev/null
systemctl --no-pager list-units --failed >"$bundle/failed-units.txt"
crictl ps --all --quiet 2>/dev/null | while read -r container; do
    crictl logs "$container" >"$to/containers/$container.log" 2>&1
    crictl inspect "$container" >"$to/containers/$container.inspect" 2>&1
done
mkdir -p "$bundle/rendered-assets/openshift"
# Everything but keys and what else is secret.
for part in manifests openshift bootstrap-manifests; do
    for file in /opt/openshift/$part/*; do
        grep -q '^kind: Secret' "$file" 2>/dev/null && continue
        mkdir -p "$bundle/rendered-assets/openshift/$part"
        cp "$file" "$bundle/rendered-assets/openshift/$part/" 2>/dev/null
    done
done
mkdir -p /home/core
tar -czf "/home/core/log-bundle-$id.tar.gz" -C /tmp "log-bundle-$id" && rm -rf "$bundle"
chown core: "/home/core/log-bundle-$id.tar.gz" 2>/dev/null
echo "Log bundle written to ~/log-bundle-$id.tar.gz"
