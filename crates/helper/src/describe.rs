//! The helper's servers in words.

use seedling_types::description::{Named, Text};

pub const COMPONENTS: &[Named] = &[
    Named {
        name: "helper",
        text: Text {
            what: "The servers machines boot from, in one process: DHCP, DNS, HTTP, registry, load balancer.",
            why: "A machine that is switched on knows nothing; all it learns, it learns here. On bare metal a site has these servers already.",
            reads: &["helper.yaml"],
            writes: &["helper-events.jsonl: who asked for what"],
            check: "seedling lab status says `helper ready`; seedling lab logs",
            fails: &["cannot listen: another DHCP or DNS server has the port on this network"],
            upstream: "dnsmasq or dhcpd and named, httpd, a registry and HAProxy, set up by hand",
            see: &[
                "component.dhcp",
                "component.dns",
                "component.http",
                "component.network-boot",
                "component.registry",
                "component.load-balancer",
                "command.helper run",
            ],
        },
    },
    Named {
        name: "dhcp",
        text: Text {
            what: "The helper's DHCP server: address, name, DNS server and the URL of the Ignition config, by MAC address.",
            why: "The inventory decides who a machine is; its MAC address is all that it brings.",
            reads: &["the inventory"],
            check: "seedling lab logs: discover, offer, request, ack of each machine",
            fails: &["a MAC that is not in hosts.yaml gets no answer; the log says so"],
            upstream: "the site's DHCP server",
            see: &["port.67", "port.547", "component.helper"],
            ..Text::EMPTY
        },
    },
    Named {
        name: "dns",
        text: Text {
            what: "The helper's DNS server: api, api-int, *.apps and every machine, forward and backward.",
            why: "Certificates name hosts, so every peer is asked by its name.",
            reads: &["the inventory"],
            check: "dig @HELPER api-int.CLUSTER",
            fails: &["SERVFAIL for other names: a lab has no way out"],
            upstream: "the site's DNS server",
            see: &["port.53", "component.helper", "stage.resolve-api-url"],
            ..Text::EMPTY
        },
    },
    Named {
        name: "http",
        text: Text {
            what: "The helper's files: each machine's Ignition config, once, and node software.",
            why: "An Ignition config holds secrets: only the machine's own address gets it, and only in its first boot.",
            reads: &["the asset directory", "the release"],
            check: "seedling lab logs: who fetched what",
            fails: &["403: the machine has had its config; seedling helper open MACHINE"],
            upstream: "a web server set up by hand",
            see: &["port.8080", "component.helper", "command.helper open"],
            ..Text::EMPTY
        },
    },
    Named {
        name: "network-boot",
        text: Text {
            what: "The helper's network boot: TFTP for firmware, a script by machine for iPXE, the boot image by HTTP, and reports of machines that install themselves.",
            why: "A machine with an empty disk needs nothing but its MAC address in the inventory; installed, it is told to boot from its disk.",
            reads: &["the boot image", "boots/MACHINE.json: whether it is to be installed"],
            writes: &["boots/MACHINE.json: installing, installed or failed, as the machine reports"],
            check: "seedling helper status: how far each machine's boot got",
            fails: &[
                "it installs again and again: its report never arrives; see its console",
                "it boots from its disk and you want it empty: seedling node reissue MACHINE",
            ],
            upstream: "tftpd, pxelinux and a web server, set up by hand, or matchbox",
            see: &["port.69", "port.67", "port.8080", "component.helper", "command.node reissue"],
        },
    },
    Named {
        name: "registry",
        text: Text {
            what: "The helper's registry: the release's images, read only, by digest.",
            why: "Machines need no way out, and never run a wrong byte.",
            reads: &["the release's OCI layout"],
            check: "curl http://HELPER:5000/v2/",
            fails: &["404: the digest is of another release"],
            upstream: "quay.io, or a mirror registry",
            see: &["port.5000", "component.helper", "component.release-image"],
            ..Text::EMPTY
        },
    },
    Named {
        name: "load-balancer",
        text: Text {
            what: "The helper's load balancer for 6443 and 22623: it leads to every control-plane node that is ready, bootstrap included until it leaves.",
            why: "api and api-int are one address for a set of servers that changes: one, then four, then three.",
            reads: &["each server's /readyz and /healthz"],
            check: "curl -k https://api.CLUSTER:6443/readyz; seedling lab logs shows who came and who went",
            fails: &[
                "connections are refused: no server is ready",
                "a balancer of your own that does not check /readyz sends clients to a server that is going away",
            ],
            upstream: "HAProxy, set up by hand, or a cloud's",
            see: &["port.6443", "port.22623", "component.kube-apiserver", "stage.check-api-url"],
            ..Text::EMPTY
        },
    },
];
