#!/usr/bin/env bash
# What `seedling helper export libvirt` writes, used as a reader uses it, with Debian's libvirtd: define.sh makes network, disks and machines; a
# worker is started with virsh, boots from the helper over the network, installs itself, and starts from its disk. libvirtd and all that it makes
# run in namespaces of their own and end with them. Machines are emulated, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

domain=ocp4.example.com
seedling=$PWD/target/x86_64-unknown-linux-gnu/release/seedling
if [ "${1:-}" != --inside ]; then
  scripts/need.sh /etc/libvirt/qemu.conf=libvirt-daemon-system virsh=libvirt-clients qemu-system-x86_64=qemu-system-x86 qemu-img=qemu-utils \
    /usr/lib/ipxe/qemu/pxe-virtio.rom=ipxe-qemu /usr/share/seabios/bios.bin=seabios mksquashfs=squashfs-tools /usr/lib/ipxe/undionly.kpxe=ipxe \
    /usr/lib/PXELINUX/pxelinux.0=pxelinux /usr/lib/syslinux/modules/bios/ldlinux.c32=syslinux-common grub-mkimage=grub-common \
    /usr/lib/grub/i386-pc=grub-pc-bin /usr/lib/grub/x86_64-efi=grub-efi-amd64-bin
  image=$("$seedling" image build)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # The inner one is PID 1 of its namespace: when it ends, so does everything that it started.
  image=$image work=$work unshare --net --mount --pid --fork --kill-child --mount-proc "$0" --inside
  exit
fi

passed=0
ok() { echo "ok: $1"; passed=$((passed + 1)); }
failed() {
  echo "FAILED: $1" >&2
  tail -n 20 "$work"/*.log /var/log/libvirt/qemu/*.log >&2 || true
  exit 1
}
# is WHAT COMMAND…: now.
is() { local what=$1; shift; if "$@"; then ok "$what"; else failed "$what"; fi; }
# becomes WHAT SECONDS COMMAND…: within that time.
becomes() {
  local what=$1 end=$((SECONDS + $2))
  shift 2
  until "$@"; do
    [ $SECONDS -lt $end ] || failed "$what"
    sleep 1
  done
  ok "$what"
}

ip link set lo up
mkdir "$work/etc"
cp -a /etc/libvirt/. "$work/etc/"
mount --bind "$work/etc" /etc/libvirt
for folder in /run /var/lib/libvirt /var/log/libvirt; do mount -t tmpfs tmpfs $folder; done
mkdir -p /var/lib/libvirt/{images,qemu,dnsmasq,boot,network}
# Root without a control group of its own runs the machines.
cat >>/etc/libvirt/qemu.conf <<'CONF'
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
security_driver = "none"
namespaces = []
CONF
printf 'auth_unix_ro = "none"\nauth_unix_rw = "none"\nlog_outputs = "3:file:%s/libvirtd.log"\n' "$work" >/etc/libvirt/libvirtd.conf
virtlogd --daemon
libvirtd --daemon
answers() { virsh version >/dev/null 2>&1; }
becomes "libvirtd runs" 30 answers

cd "$work"
mkdir cluster libvirt
cat >cluster/install-config.yaml <<'YAML'
apiVersion: v1
baseDomain: example.com
metadata: {name: ocp4}
controlPlane: {name: master, replicas: 3}
compute: [{name: worker, replicas: 1}]
networking: {machineNetwork: [{cidr: 192.168.77.0/24}]}
platform: {none: {}}
pullSecret: '{"auths":{"registry.example.com":{"auth":"dTpw"}}}'
YAML
cat >hosts.yaml <<'YAML'
hosts:
- {name: bootstrap, role: bootstrap, mac: '52:54:00:77:00:10', address: 192.168.77.10}
- {name: master-0, role: master, mac: '52:54:00:77:00:11', address: 192.168.77.11}
- {name: master-1, role: master, mac: '52:54:00:77:00:12', address: 192.168.77.12}
- {name: master-2, role: master, mac: '52:54:00:77:00:13', address: 192.168.77.13}
- {name: worker-0, role: worker, mac: '52:54:00:77:00:21', address: 192.168.77.21}
YAML
"$seedling" create ignition-configs --dir cluster --hosts hosts.yaml >create.log 2>&1
"$seedling" helper init --dir cluster --hosts hosts.yaml --domain $domain --network 192.168.77.0/24 --interface virbr-seed --address 192.168.77.1 \
  --image "$image" --output helper.yaml >init.log 2>&1
sed -i "s#/var/lib/seedling/helper#$work/state#" helper.yaml
"$seedling" helper export libvirt --config helper.yaml --dir libvirt >export.log 2>&1
cd libvirt
# Emulated, and smaller; the rest is as it was written.
sed -i "s/type='kvm'/type='qemu'/; s/ mode='host-passthrough'/ mode='maximum'/; s/<memory unit='GiB'>[0-9]*/<memory unit='GiB'>2/" ./*.xml
sh define.sh >"$work/define.log" 2>&1
network() { virsh net-list --autostart | grep -q " $domain *active *yes *yes"; }
counted() { [ "$(virsh list --all --name "$@" | grep -c .)" = "$machines" ]; }
is "the network runs, and comes back with its host" network
machines=5 is "every machine is defined" counted
machines=4 is "all but bootstrap come back with their host" counted --autostart

cd "$work"
"$seedling" helper run --config helper.yaml >helper.log 2>&1 &
listens() { ss -lnu | grep -q ':67 '; }
becomes "the helper listens on libvirt's bridge" 30 listens
virsh start worker-0.$domain >/dev/null
# How far it is, by the third column.
at() { "$seedling" helper status --config helper.yaml | grep -qE "^worker-0 +192\.168\.77\.21 +($1)  "; }
# Each of these is behind the one before it.
becomes "the worker got its address from the helper" 120 at "address|boot loader|script|kernel|initramfs|installed"
becomes "iPXE fetched kernel and initramfs" 300 at "initramfs|installed"
becomes "it installed itself to its disk" 900 at "installed|config|machine-config"
becomes "from its disk it ran Ignition, and asks for its machine config" 600 at machine-config
virsh destroy worker-0.$domain >/dev/null
is "virsh stopped it" test "$(virsh domstate worker-0.$domain | head -n 1)" = "shut off"
printf '\n%s passed, 0 failed\n' "$passed"
