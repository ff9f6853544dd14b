#!/usr/bin/env bash
# The world outside of a lab, for `make e2e E2E=mirrors`: a registry with TLS of a private CA and a password, in a network of its own, and a
# proxy with a password that alone reaches it. Nothing of it is in the machine's own network.
#   outside.sh packages DIR              Debian's registry, proxy and skopeo, if they are missing; nothing of them is started
#   outside.sh certificates DIR          the CAs and certificates
#   outside.sh up DIR LAB OCI IMAGE…     namespaces, registry and proxy for lab LAB; the registry has OCI's images
#   outside.sh down DIR LAB              ends and removes it all
set -euo pipefail

dir=$2
lab=${3:-}
names=(mirror.corp.example other.corp.example)
user=puller password='s3cret-of-puller'
proxy=192.168.100.250 registry=10.77.0.2

packages() {
  "$(dirname "$0")/../../scripts/need.sh" docker-registry=docker-registry tinyproxy=tinyproxy skopeo=skopeo
}

certificates() {
  mkdir -p "$dir"
  cd "$dir"
  for ca in corp stranger; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$ca CA" -keyout "$ca-ca.key" -out "$ca-ca.crt" \
      -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$ca" -keyout "$ca.key" -out "$ca.csr"
    openssl x509 -req -in "$ca.csr" -CA "$ca-ca.crt" -CAkey "$ca-ca.key" -days 30 -out "$ca.crt" \
      -extfile <(printf 'subjectAltName=DNS:%s,DNS:%s\n' "${names[@]}")
  done 2>/dev/null
}

# start NAMESPACE NAME COMMAND…: its process id is kept, so that only it is ended.
start() {
  local namespace=$1 name=$2
  shift 2
  setsid ip netns exec "$namespace" "$@" >"$dir/$name.log" 2>&1 </dev/null &
  echo $! >"$dir/$name.pid"
}

answers() {
  for _ in $(seq 100); do
    ip netns exec "$1" curl -s -o /dev/null -k "$2" && return
    sleep 0.1
  done
  echo "$2 does not answer:" >&2
  cat "$dir"/*.log >&2
  exit 1
}

up() {
  cd "$dir"
  for space in "$lab-proxy" "$lab-registry"; do
    ip netns add "$space"
    ip -n "$space" link set lo up
    mkdir -p "/etc/netns/$space"
    printf '127.0.0.1 localhost\n%s %s %s\n' "$registry" "${names[@]}" >"/etc/netns/$space/hosts"
    echo 'nameserver 127.0.0.1' >"/etc/netns/$space/resolv.conf" # nobody answers
  done
  ip link add name v-proxy netns "seedling-$lab" type veth peer name eth0 netns "$lab-proxy"
  ip -n "seedling-$lab" link set v-proxy master br0 up
  ip -n "$lab-proxy" address add "$proxy/24" dev eth0
  ip -n "$lab-proxy" link set eth0 up
  ip link add name eth1 netns "$lab-proxy" type veth peer name eth0 netns "$lab-registry"
  ip -n "$lab-proxy" address add 10.77.0.1/24 dev eth1
  ip -n "$lab-proxy" link set eth1 up
  ip -n "$lab-registry" address add "$registry/24" dev eth0
  ip -n "$lab-registry" link set eth0 up

  perl -e 'print "$ARGV[0]:", crypt($ARGV[1], q($2y$05$abcdefghijklmnopqrstuu)), "\n"' "$user" "$password" >htpasswd
  local port=5000
  for ca in corp stranger; do
    cat >"$ca.yml" <<YAML
version: 0.1
log: {level: info, formatter: json, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $dir/images}}
http: {addr: '$registry:$port', tls: {certificate: $dir/$ca.crt, key: $dir/$ca.key}}
auth: {htpasswd: {realm: corp, path: $dir/htpasswd}}
YAML
    start "$lab-registry" "$ca" docker-registry serve "$dir/$ca.yml"
    port=$((port + 1))
  done
  cat >tinyproxy.conf <<CONF
Port 3128
Listen $proxy
Timeout 600
MaxClients 200
LogLevel Connect
BasicAuth guest letmeout
ConnectPort 443
ConnectPort 5000
ConnectPort 5001
CONF
  start "$lab-proxy" proxy tinyproxy -d -c "$dir/tinyproxy.conf"
  answers "$lab-registry" "https://$registry:5000/v2/"
  answers "$lab-registry" "https://$registry:5001/v2/"
  answers "$lab-proxy" "http://$proxy:3128/"
  mkdir -p trust
  cp corp-ca.crt trust/ca.crt
  local oci=$4
  shift 4
  for image in "$@"; do
    ip netns exec "$lab-registry" skopeo copy --quiet --preserve-digests --dest-cert-dir trust --dest-creds "$user:$password" \
      "oci:$oci:$image" "docker://mirror.corp.example:5000/copies/of-seedling/$image:mirrored"
  done
}

down() {
  for pid in "$dir"/*.pid; do
    [ -e "$pid" ] || continue
    kill "$(cat "$pid")" 2>/dev/null || true
    rm -f "$pid"
  done
  for space in "$lab-proxy" "$lab-registry"; do
    [ ! -e "/run/netns/$space" ] || ip netns delete "$space"
    rm -rf "/etc/netns/$space"
  done
  rmdir /etc/netns 2>/dev/null || true
}

case $1 in
  packages) packages ;;
  certificates) certificates ;;
  up) up "$@" ;;
  down) down ;;
  *) exit 2 ;;
esac
