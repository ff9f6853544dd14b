#!/usr/bin/env bash
# `seedling node power`, `boot` and `wake` against real counterparts: sushy-tools' Redfish emulator (from PyPI, into target/), with TLS and a password, and
# a listener for the packet that wakes. Everything in network namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

seedling=$PWD/target/x86_64-unknown-linux-gnu/release/seedling
venv=$PWD/target/sushy
scripts/need.sh /usr/share/python-wheels=python3-venv socat=socat htpasswd=apache2-utils openssl=openssl
if [ ! -x "$venv/bin/sushy-emulator" ]; then
  echo "from PyPI: sushy-tools"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q sushy-tools
fi

work=$(mktemp -d)
here=bare-metal-$$ there=bare-metal-$$-lan
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for space in $here $there; do [ ! -e /run/netns/$space ] || ip netns delete $space; done
  rm -rf "$work"
}
trap finish EXIT
passed=0
# is WHAT EXPECTED COMMAND…: its output, of both kinds, has these words.
is() {
  local what=$1 expected=$2 said
  shift 2
  said=$("$@" 2>&1) || true
  if ! grep -qF -- "$expected" <<<"$said"; then
    echo "FAILED: $what: $expected is not in: $said" >&2
    exit 1
  fi
  if grep -qF hush-hush <<<"$said"; then
    echo "FAILED: $what: the password is in: $said" >&2
    exit 1
  fi
  echo "ok: $what"
  passed=$((passed + 1))
}

ip netns add $here
ip netns add $there
ip -n $here link set lo up
ip link add name lan netns $here type veth peer name lan netns $there
ip -n $here address add 192.168.77.1/24 dev lan
ip -n $here link set lan up
ip -n $there address add 192.168.77.20/24 dev lan
ip -n $there link set lan up
run() { ip netns exec $here "$@"; }

cd "$work"
ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
{
  openssl req -x509 "${ec[@]}" -days 2 -subj '/CN=BMC CA' -keyout ca.key -out ca.pem
  openssl req "${ec[@]}" -subj /CN=bmc -keyout key.pem -out cert.csr
  openssl x509 -req -in cert.csr -CA ca.pem -CAkey ca.key -days 2 -out cert.pem -extfile <(echo subjectAltName=IP:127.0.0.1)
} 2>/dev/null
htpasswd -cbB htpasswd admin hush-hush 2>/dev/null
cat >emulator.conf <<CONF
SUSHY_EMULATOR_AUTH_FILE = '$work/htpasswd'
SUSHY_EMULATOR_STATE_DIR = '$work'
SUSHY_EMULATOR_FAKE_SYSTEMS = [{'uuid': 'one', 'name': 'one', 'power_state': 'Off', 'external_notifier': False, 'nics': []}]
CONF
ip netns exec $here "$venv/bin/sushy-emulator" --fake --config "$work/emulator.conf" -i 127.0.0.1 -p 8443 --ssl-certificate cert.pem --ssl-key key.pem \
  >emulator.log 2>&1 &
pids+=($!)
for _ in $(seq 100); do run curl -sk -o /dev/null https://127.0.0.1:8443/redfish/v1 && break; sleep 0.1; done

# file NAME PASSWORD VERIFY [SYSTEM]
file() {
  cat >"$1" <<YAML
hosts:
- name: worker-0
  bmc:
    address: redfish-virtualmedia://127.0.0.1:8443${4:-}
    username: admin
    password: $2
    disableCertificateVerification: $3
YAML
}
file good.yaml hush-hush true /redfish/v1/Systems/one
file only.yaml hush-hush true
file wrong.yaml hush-hush-not true /redfish/v1/Systems/one
file strict.yaml hush-hush false /redfish/v1/Systems/one
python3 - <<PY
import json
cert = open('ca.pem').read()
host = {'name': 'worker-0', 'bmc': {'address': 'redfish://127.0.0.1:8443/redfish/v1/Systems/one', 'username': 'admin', 'password': 'hush-hush'}}
json.dump({'platform': {'baremetal': {'hosts': [host], 'bmcVerifyCA': cert}}}, open('install-config.yaml', 'w'))
PY

power() { run "$seedling" node power worker-0 "$@"; }
boot() { run "$seedling" node boot worker-0 "$@"; }
asked() { run curl -sk -u admin:hush-hush "https://127.0.0.1:8443/redfish/v1/$1"; }
is 'a machine is off' 'power Off' power status --config good.yaml
is 'its only machine is found without a path' 'power Off' power status --config only.yaml
is 'a certificate is verified' 'its certificate is not trusted' power status --config strict.yaml
is 'bmcVerifyCA is believed' 'power Off' power status
is 'a wrong password is named' 'refuses its user or password' power status --config wrong.yaml
is 'an unknown machine is named' 'no host other: it has worker-0' run "$seedling" node power other on --config good.yaml
is 'a missing file is named' 'consumes install-config.yaml' power status --config nowhere.yaml
is 'it boots from the network once' 'boots from the network' boot pxe --config good.yaml
is 'the emulator has it' '"BootSourceOverrideTarget": "Pxe"' asked Systems/one
is 'it is switched on' 'worker-0 is on' power on --config good.yaml
is 'the emulator says so' '"PowerState": "On"' asked Systems/one
is 'twice is harmless' 'is on already' power on --config good.yaml
is 'it is cycled' 'worker-0 is on' power cycle --config good.yaml
is 'it is shut down' 'worker-0 is off' power off --config good.yaml
is 'without an ISO there is nothing to boot from' 'add --iso URL' boot cd --config good.yaml
head -c 65536 /dev/zero >live.iso
ip netns exec $here python3 -m http.server -b 127.0.0.1 8088 >http.log 2>&1 &
pids+=($!)
for _ in $(seq 100); do run curl -s -o /dev/null http://127.0.0.1:8088/ && break; sleep 0.1; done
is 'an ISO is put in' 'boots from its drive' boot cd --iso http://127.0.0.1:8088/live.iso --config good.yaml
is 'status names it' 'in its drive is http://127.0.0.1:8088/live.iso' power status --config good.yaml
is 'it is taken out' 'its drive is empty' boot disk --eject --config good.yaml
is 'the plug is pulled from what is off' 'is off already' power kill --config good.yaml

cat >hosts.yaml <<YAML
hosts:
- {name: bootstrap, role: bootstrap, mac: '52:54:00:00:00:10', address: 192.168.77.10}
- {name: master-0, role: master, mac: '52:54:00:00:00:11', address: 192.168.77.11}
- {name: worker-0, role: worker, mac: '52:54:00:00:00:21', address: 192.168.77.21}
YAML
ip netns exec $there socat -u UDP4-RECV:9 OPEN:woken,creat,append &
pids+=($!)
for _ in $(seq 100); do ip netns exec $there ss -lun | grep -q ':9 ' && break; sleep 0.1; done
is 'a packet wakes it' 'to 192.168.77.255' run "$seedling" node wake worker-0
for _ in $(seq 100); do [ -s woken ] && break; sleep 0.1; done
is 'the packet came' "ffffffffffff$(printf '525400000021%.0s' $(seq 16))" sh -c 'od -An -tx1 -v woken | tr -d " \n"'
sed -i s/192.168.77/192.168.78/ hosts.yaml
is 'a machine elsewhere is not woken' 'no card in the network of 192.168.78.21' run "$seedling" node wake worker-0
echo "$passed checks passed"
