# Run by root on a machine, or beside its disk (ROOT): writes what explains a failure, as a tar archive, to standard output.
# No command may hold the others up. Keys and Secrets are not read at all; whoever takes the archive looks for them again.
set -u
ROOT=${ROOT:-}
# Not in /tmp at first: a machine that still boots mounts it anew.
out=$(mktemp -d /run/seedling-gather.XXXXXX 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
m=$out/machine
mkdir -p "$m/journals" "$m/services" "$m/containers" "$m/network" "$m/checks" "$m/unit-status"

# Whoever waits for this sees that it goes on.
at() { echo "gathering: $*" >&2; }

journal() {
    if [ -n "$ROOT" ]; then
        timeout 10 journalctl --directory "$ROOT/var/log/journal" --no-pager -o short-precise "$@"
    else
        timeout 10 journalctl --no-pager -o short-precise "$@"
    fi
}
for unit in release-image bootkube approve-csr progress kubelet containerd crio chronyd sshd; do
    at "the journal of $unit"
    journal -u "$unit" 2>&1 | tail -n 30000 >"$m/journals/$unit.log"
    grep -q '^-- No entries --' "$m/journals/$unit.log" && rm "$m/journals/$unit.log"
done
at "the whole journal"
journal -p err 2>/dev/null | tail -n 3000 >"$m/journals/errors.log"
journal 2>/dev/null | tail -n 60000 | gzip -1 >"$m/journals/journal.log.gz"

for record in "$ROOT"/var/log/openshift/*.json; do
    # A record is an array; what the first boot found out is not one.
    case $(head -c 1 "$record" 2>/dev/null) in "[") cp "$record" "$m/services/" ;; "{") cp "$record" "$m/" ;; esac
done
cp "$ROOT/var/log/openshift/journal.jsonl" "$m/" 2>/dev/null
cp "$ROOT/var/log/ignition.log" "$m/" 2>/dev/null
cp "$ROOT/var/log/machine-config-server/audit.log" "$m/machine-config-server-audit.log" 2>/dev/null

# <namespace>_<pod>_<uid>/<container>/<attempt>.log; of containers that are gone, too.
find "$ROOT/var/log/pods" -name '*.log' -type f 2>/dev/null | while read -r log; do
    at "$log"
    attempt=$(basename "$log" .log) container=$(basename "$(dirname "$log")")
    pod=$(basename "$(dirname "$(dirname "$log")")")
    name=${pod#*_} uid=${pod##*_}
    tail -c 3000000 "$log" >"$m/containers/$container-${name%_*}-$(printf %.8s "$uid")-$attempt.log"
done
at "certificates"
ls -l "$ROOT/etc/kubernetes/manifests" >"$m/static-pods.txt" 2>&1
find "$ROOT/var/lib/kubelet/pki" "$ROOT/etc/kubernetes" "$ROOT/opt/openshift/tls" "$ROOT/etc/ssl/mcs" -name '*.crt' 2>/dev/null | head -n 120 |
    while read -r file; do
        openssl x509 -in "$file" -noout -subject -issuer -startdate -enddate 2>/dev/null | tr '\n' ' '
        echo "${file#"$ROOT"}"
    done >"$m/certificates.txt"

if [ -d "$ROOT/opt/openshift" ]; then
    at "rendered assets"
    (cd "$ROOT/opt/openshift" && find . -type f -size -1024k ! -path './auth/*' ! -path './tls/*' ! -path '*/.kube/*' \
        ! -iname '*secret*' ! -iname '*kubeconfig*' ! -name '*.key' ! -name '*.ign') | while read -r file; do
        grep -qE '^ *(- *)?"?kind"?: *"?Secret' "$ROOT/opt/openshift/$file" && continue
        to=$out/rendered-assets/openshift/$file
        mkdir -p "$(dirname "$to")" && cp "$ROOT/opt/openshift/$file" "$to"
    done
fi

if [ -z "$ROOT" ]; then
    at "units"
    timeout 5 systemctl --no-pager list-units --failed >"$m/failed-units.txt" 2>&1
    for unit in release-image bootkube approve-csr progress kubelet containerd; do
        timeout 5 systemctl --no-pager --full --lines=30 status "$unit.service" >"$m/unit-status/$unit.service.txt" 2>&1
    done
    at "the network"
    ip addr >"$m/network/ip-addr.txt" 2>&1
    ip route >"$m/network/ip-route.txt" 2>&1
    hostname >"$m/network/hostname.txt" 2>&1
    timeout 5 ss -tunap >"$m/network/netstat.txt" 2>&1
    cp /etc/resolv.conf "$m/network/" 2>/dev/null
    at "containers"
    timeout 8 crictl ps -a >"$m/containers/ps.txt" 2>&1
    timeout 8 crictl pods >"$m/containers/pods.txt" 2>&1
    timeout 8 crictl images --digests >"$m/containers/images.txt" 2>&1
    timeout 5 crictl ps -a -q 2>/dev/null | head -n 60 | while read -r id; do
        at "container $id"
        timeout 2 crictl inspect "$id" >"$m/containers/$id.inspect" 2>/dev/null || break
    done
    # Of services; without a password that may be in it.
    proxy=$({ timeout 5 systemctl show-environment; cat /etc/systemd/system.conf.d/*.conf; } 2>/dev/null | grep -ioE 'https?_proxy=[^ "]+' | head -n 1 | sed 's/^[^=]*=//; s#//[^/@]*@#//#')
    if [ -n "$proxy" ]; then
        echo "$proxy: $(timeout 5 curl -s -m 4 -o /dev/null -w '%{http_code} %{errormsg}' "$proxy" 2>&1)" >"$m/checks/proxy.txt"
    fi
    at "disk, clock and API"
    df -P -x overlay >"$m/checks/disk.txt" 2>&1
    date -u +%Y-%m-%dT%H:%M:%SZ >"$m/checks/clock.txt"
    # How long the disk below etcd takes for ten small writes that must be on it.
    if [ -d /var/lib/etcd ]; then
        LC_ALL=C timeout 8 dd if=/dev/zero of=/var/lib/etcd/.gather bs=2300 count=10 oflag=dsync >"$m/checks/sync.txt" 2>&1 ||
            echo "ten synchronous writes failed or took longer than 8 s" >>"$m/checks/sync.txt"
        rm -f /var/lib/etcd/.gather
    fi
    api=$(grep -rhoE --include='*kubeconfig*' --include='*.env' 'api-int\.[A-Za-z0-9.-]+' /etc/kubernetes /opt/openshift/auth /var/lib/kubelet/kubeconfig 2>/dev/null | head -n 1)
    if [ -n "$api" ]; then
        {
            echo "$api: $(timeout 5 getent ahostsv4 "$api" | awk '{print $1}' | sort -u | tr '\n' ' ')"
            public=api.${api#api-int.}
            echo "$public: $(timeout 5 getent ahostsv4 "$public" | awk '{print $1}' | sort -u | tr '\n' ' ')"
        } >"$m/checks/dns.txt" 2>&1
        for port in 6443/readyz 22623/healthz; do
            echo "https://$api:$port: $(timeout 5 curl -sk -m 4 -o /dev/null -w '%{http_code} %{errormsg}' "https://$api:$port" 2>&1)"
        done >"$m/checks/reach.txt"
    fi
fi
cd "$out" && tar -cf - .
