//! libvirt's network and machines: a network in which the helper alone gives addresses, a machine for each host of the inventory with
//! its MAC address and an empty disk, and the commands that define them.

use super::{Exported, Program, file, head};
use seedling_types::{HelperConfig, Host, Role};
use std::fmt::Write;

/// GiB of memory, processors, GiB of disk: a little more than the least.
fn size(role: Role) -> (u32, u32, u32) {
    match role {
        Role::Bootstrap => (4, 2, 20),
        Role::Master => (8, 4, 40),
        Role::Worker => (4, 2, 40),
    }
}

pub(super) fn libvirt(config: &HelperConfig) -> Vec<Exported> {
    let machines = config.inventory.hosts.iter();
    let machines = machines.map(|host| file(format!("{}.xml", host.name), machine(config, host)));
    let mut files: Vec<_> = machines.collect();
    files.push(file("network.xml", network(config)));
    files.push(file("define.sh", define(config)));
    files
}

fn comment() -> String {
    format!("<!--{}-->\n", head("", Program::Libvirt).trim_end())
}

/// Without libvirt's own DHCP and DNS: two servers that answer are worse than none.
fn network(config: &HelperConfig) -> String {
    format!(
        "{}<network>
  <name>{}</name>
  <bridge name='{}' stp='off' delay='0'/>
  <dns enable='no'/>
  <ip address='{}' prefix='{}'/>
</network>
",
        comment(),
        config.cluster_domain.0,
        config.interface,
        config.address,
        config.network.prefix_len()
    )
}

/// From the network first: the helper sends a machine that is installed to its disk.
fn machine(config: &HelperConfig, host: &Host) -> String {
    let (memory, processors, _) = size(host.role);
    format!(
        "{comment}<domain type='kvm'>
  <name>{name}</name>
  <memory unit='GiB'>{memory}</memory>
  <vcpu>{processors}</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <boot dev='network'/>
    <boot dev='hd'/>
  </os>
  <features>
    <acpi/>
  </features>
  <cpu mode='host-passthrough'/>
  <on_reboot>restart</on_reboot>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='{disk}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <interface type='network'>
      <mac address='{mac}'/>
      <source network='{network}'/>
      <model type='virtio'/>
    </interface>
    <serial type='pty'/>
    <console type='pty'/>
    <rng model='virtio'>
      <backend model='random'>/dev/urandom</backend>
    </rng>
  </devices>
</domain>
",
        comment = comment(),
        name = config.cluster_domain.host(&host.name),
        disk = disk(config, host),
        mac = host.mac,
        network = config.cluster_domain.0,
    )
}

fn disk(config: &HelperConfig, host: &Host) -> String {
    format!("/var/lib/libvirt/images/{}.qcow2", config.cluster_domain.host(&host.name))
}

/// The bootstrap machine is for once: it does not come back with the host.
fn define(config: &HelperConfig) -> String {
    let network = &config.cluster_domain.0;
    let mut text = format!(
        "#!/bin/sh\n{}# Run it in this directory, once. Then start the helper, and the machines: bootstrap, masters, workers.\nset -eu\n\
         virsh net-define network.xml\nvirsh net-autostart {network}\nvirsh net-start {network}\n",
        head("#", Program::Libvirt)
    );
    for host in &config.inventory.hosts {
        let (name, disk, (_, _, gib)) =
            (config.cluster_domain.host(&host.name), disk(config, host), size(host.role));
        let _ = writeln!(text, "qemu-img create -f qcow2 {disk} {gib}G\nvirsh define {}.xml", host.name);
        if host.role != Role::Bootstrap {
            let _ = writeln!(text, "virsh autostart {name}");
        }
    }
    for role in [Role::Bootstrap, Role::Master, Role::Worker] {
        for host in config.inventory.role(role) {
            let _ = writeln!(text, "# virsh start {}", config.cluster_domain.host(&host.name));
        }
    }
    text
}
