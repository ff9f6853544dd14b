#!/bin/sh
# Made by `seedling helper export libvirt` from helper.yaml. Make it again when machines come or go.
# Run it in this directory, once. Then start the helper, and the machines: bootstrap, masters, workers.
set -eu
virsh net-define network.xml
virsh net-autostart ocp4.example.com
virsh net-start ocp4.example.com
qemu-img create -f qcow2 /var/lib/libvirt/images/bootstrap.ocp4.example.com.qcow2 20G
virsh define bootstrap.xml
qemu-img create -f qcow2 /var/lib/libvirt/images/master-0.ocp4.example.com.qcow2 40G
virsh define master-0.xml
virsh autostart master-0.ocp4.example.com
qemu-img create -f qcow2 /var/lib/libvirt/images/master-1.ocp4.example.com.qcow2 40G
virsh define master-1.xml
virsh autostart master-1.ocp4.example.com
qemu-img create -f qcow2 /var/lib/libvirt/images/master-2.ocp4.example.com.qcow2 40G
virsh define master-2.xml
virsh autostart master-2.ocp4.example.com
qemu-img create -f qcow2 /var/lib/libvirt/images/worker-0.ocp4.example.com.qcow2 40G
virsh define worker-0.xml
virsh autostart worker-0.ocp4.example.com
# virsh start bootstrap.ocp4.example.com
# virsh start master-0.ocp4.example.com
# virsh start master-1.ocp4.example.com
# virsh start master-2.ocp4.example.com
# virsh start worker-0.ocp4.example.com
