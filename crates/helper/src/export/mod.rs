//! `seedling helper export`: what helper.yaml says, as configurations of the programs that a site has already. In: the config. Out: files,
//! by name. Pure, but for the name of the image's root file system and which Ignition file is a machine's.
//!
//! The registry is nobody's: machines pull the release from the helper, or from a mirror of the site's.

mod dhcp;
mod dns;
mod http;
mod kea;
mod libvirt;
mod menus;
mod proxy;

use crate::boot::script::Boot;
use crate::{HelperError, boot};
use seedling_types::{HelperConfig, Host};

/// Of which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Haproxy,
    Dnsmasq,
    Bind,
    Dhcpd,
    Kea,
    Nginx,
    Pxelinux,
    Matchbox,
    Libvirt,
}

impl Program {
    pub const ALL: [Program; 9] = [
        Program::Haproxy,
        Program::Dnsmasq,
        Program::Bind,
        Program::Dhcpd,
        Program::Kea,
        Program::Nginx,
        Program::Pxelinux,
        Program::Matchbox,
        Program::Libvirt,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Program::Haproxy => "haproxy",
            Program::Dnsmasq => "dnsmasq",
            Program::Bind => "bind",
            Program::Dhcpd => "dhcpd",
            Program::Kea => "kea",
            Program::Nginx => "nginx",
            Program::Pxelinux => "pxelinux",
            Program::Matchbox => "matchbox",
            Program::Libvirt => "libvirt",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.as_str() == name)
    }
}

/// The name is relative, and may have folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    pub name: String,
    pub content: String,
}

fn file(name: impl Into<String>, content: String) -> Exported {
    Exported { name: name.into(), content }
}

pub fn export(program: Program, config: &HelperConfig) -> Result<Vec<Exported>, HelperError> {
    let needs_boot = matches!(program, Program::Pxelinux | Program::Matchbox);
    if needs_boot && config.boot.is_none() {
        return Err(HelperError::NoBoot);
    }
    let Some(here) = config.v4().filter(|_| config.v6().is_none()) else { return Err(HelperError::OnlyIpv4) };
    Ok(match program {
        Program::Haproxy => vec![file("haproxy.cfg", proxy::haproxy(config))],
        Program::Dnsmasq => vec![file("dnsmasq.conf", dhcp::dnsmasq(config, &here))],
        Program::Bind => dns::bind(config, &here),
        Program::Dhcpd => vec![file("dhcpd.conf", dhcp::dhcpd(config, &here))],
        Program::Kea => vec![file("kea-dhcp4.conf", kea::kea(config, &here))],
        Program::Nginx => http::nginx(config),
        Program::Pxelinux => menus::pxelinux(config),
        Program::Matchbox => menus::matchbox(config),
        Program::Libvirt => libvirt::libvirt(config),
    })
}

/// What stands above each file, after the sign for comments.
fn head(sign: &str, program: Program) -> String {
    format!(
        "{sign} Made by `seedling helper export {}` from helper.yaml. Make it again when machines come or go.\n",
        program.as_str()
    )
}

/// Machines that boot over the network.
fn boots(config: &HelperConfig) -> impl Iterator<Item = Boot<'_>> {
    config.inventory.hosts.iter().filter_map(|host| {
        let boot = config.boot_of(&host.name)?;
        Some(Boot { config, boot, host, rootfs: boot::rootfs(boot) })
    })
}

fn lease_seconds(config: &HelperConfig) -> u32 {
    config.lease_seconds.unwrap_or(crate::dhcp::LEASE_SECONDS)
}

/// The script that iPXE fetches.
fn script_url(config: &HelperConfig, host: &Host) -> String {
    format!("http://{}:{}/boot/ipxe/{}", config.address, seedling_types::ports::HELPER_HTTP, host.mac)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
