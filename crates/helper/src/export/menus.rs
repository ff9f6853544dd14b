//! PXELINUX's menus, and matchbox's groups and profiles.

use super::{Exported, boots, file};
use crate::boot::script::{INITRAMFS, KERNEL, dashes};
use seedling_types::boot::Next;
use seedling_types::{HelperConfig, ports};
use serde_json::json;

pub(super) fn pxelinux(config: &HelperConfig) -> Vec<Exported> {
    boots(config)
        .map(|boot| file(format!("pxelinux.cfg/01-{}", dashes(&boot.host.mac)), boot.menu(Next::Install)))
        .collect()
}

pub(super) fn matchbox(config: &HelperConfig) -> Vec<Exported> {
    let base = format!("http://{}:{}/boot", config.address, ports::HELPER_HTTP);
    boots(config)
        .flat_map(|boot| {
            let name = &boot.host.name;
            let group =
                json!({"id": name, "name": name, "profile": name, "selector": {"mac": boot.host.mac}});
            let mut arguments = vec![format!("initrd={INITRAMFS}")];
            arguments.extend(boot.arguments());
            let profile = json!({"id": name, "name": name, "boot": {
                "kernel": format!("{base}/{KERNEL}"),
                "initrd": [format!("--name {INITRAMFS} {base}/{INITRAMFS}")],
                "args": arguments,
            }});
            [
                file(format!("groups/{name}.json"), format!("{group:#}\n")),
                file(format!("profiles/{name}.json"), format!("{profile:#}\n")),
            ]
        })
        .collect()
}
