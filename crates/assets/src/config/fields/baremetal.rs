//! The table for `platform.baremetal`.

use super::{Field, Kind, STRINGS, Struct};

pub(super) static BAREMETAL: Struct = Struct {
    go: "baremetal.Platform",
    doc: "Machines with management controllers, and addresses for the API and the applications that move between them.",
    fields: &[
        Field::new("additionalNTPServers", STRINGS, "Time servers beside those of the network: addresses or names."),
        Field::text("apiVIP", "The old form of apiVIPs, with one address."),
        Field::new("apiVIPs", STRINGS, "The address at which the API answers, in a machine network; one more of the other family for dual stack.").required(),
        Field::new("bgpVIPConfig", Kind::Any, "Routers to which the addresses are announced by BGP. Needs the feature gate BGPBasedVIPManagement."),
        Field::text("bmcVerifyCA", "Certificates in PEM that the management controllers' own are checked against."),
        Field::text("bootstrapExternalStaticDNS", "The bootstrap machine's name server, where there is no DHCP."),
        Field::text("bootstrapExternalStaticGateway", "The bootstrap machine's gateway, where there is no DHCP."),
        Field::text("bootstrapExternalStaticIP", "The bootstrap machine's address, where there is no DHCP."),
        Field::text("bootstrapOSImage", "Another operating-system image for the bootstrap machine: a URL with its sha256."),
        Field::text("bootstrapProvisioningIP", "The bootstrap machine's address in the provisioning network.").default("the network's second address"),
        Field::text("clusterOSImage", "Another operating-system image for the machines: a URL with its sha256."),
        Field::text("clusterProvisioningIP", "The address of the provisioning services in the cluster.").default("the network's third address"),
        Field::new("defaultMachinePlatform", Kind::Struct(&MACHINE), "Settings for machine pools that have none of their own: {}"),
        Field::new("dnsRecordsType", Kind::Text("v1.DNSRecordsType"), "Who answers for the names of the API and the applications. External needs the feature gate OnPremDNSRecords.")
            .default("Internal").values(&["Internal", "External"]),
        Field::text("externalBridge", "The bridge through which the bootstrap machine reaches the others.").default("baremetal"),
        Field::text("externalMACAddress", "The bootstrap machine's MAC address on that bridge.").default("made from the cluster's domain"),
        Field::new("hosts", Kind::List("[]*baremetal.Host", &Kind::Struct(&HOST)), "The machines, as many as the pools have replicas.").required(),
        Field::text("ingressVIP", "The old form of ingressVIPs, with one address."),
        Field::new("ingressVIPs", STRINGS, "The address at which the applications answer, in a machine network; one more of the other family for dual stack.").required(),
        Field::text("libvirtURI", "The libvirt that runs the bootstrap machine.").default("qemu:///system"),
        Field::new("loadBalancer", Kind::Struct(&LOAD_BALANCER), "Who spreads requests over the machines."),
        Field::text("provisioningBridge", "The bridge to the provisioning network.").default("provisioning"),
        Field::new("provisioningDHCPExternal", Kind::Bool, "The old form of provisioningNetwork Unmanaged."),
        Field::text("provisioningDHCPRange", "The addresses that machines get while they are provisioned: first,last").default("the tenth to the last of the network"),
        Field::text("provisioningHostIP", "The old name of clusterProvisioningIP."),
        Field::text("provisioningMACAddress", "The bootstrap machine's MAC address in the provisioning network.").default("made from the cluster's domain"),
        Field::new("provisioningNetwork", Kind::Text("baremetal.ProvisioningNetwork"), "A network of its own for provisioning: with DHCP, without, or none at all.")
            .default("Managed").values(&["Managed", "Unmanaged", "Disabled"]),
        Field::new("provisioningNetworkCIDR", Kind::Cidr, "The provisioning network.").default("172.22.0.0/24"),
        Field::text("provisioningNetworkGateway", "The gateway of the provisioning network."),
        Field::text("provisioningNetworkInterface", "The network card by which the control-plane machines are in the provisioning network."),
    ],
};

static MACHINE: Struct = Struct { go: "baremetal.MachinePool", doc: "No settings.", fields: &[] };

static HOST: Struct = Struct {
    go: "baremetal.Host",
    doc: "A machine.",
    fields: &[
        Field::new("bmc", Kind::Struct(&BMC), "Its management controller.").required(),
        Field::text("bootMACAddress", "The MAC address of the card that it boots from.").required(),
        Field::new("bootMode", Kind::Text("baremetal.BootMode"), "How it boots.").default("UEFI").values(&["UEFI", "UEFISecureBoot", "legacy"]),
        Field::text("hardwareProfile", "A name for its kind of hardware.").default("default"),
        Field::text("name", "Its name.").required(),
        Field::new("networkConfig", Kind::Any, "Its network, as NMState has it."),
        Field::text("role", "What it is to be; without a role it fills the control plane first.").values(&["master", "arbiter", "worker"]),
        Field::new("rootDeviceHints", Kind::Struct(&ROOT_DEVICE_HINTS), "Which disk the operating system goes to. All that is said must be true of it."),
    ],
};
static BMC: Struct = Struct {
    go: "baremetal.BMC",
    doc: "A management controller.",
    fields: &[
        Field::text("address", "Its address, e.g. ipmi://192.168.111.1:6230 or redfish-virtualmedia://192.168.111.1/redfish/v1/Systems/1").required(),
        Field::new("disableCertificateVerification", Kind::Bool, "Whether any certificate of it is taken.").default("false"),
        Field::text("password", "The password for it.").required(),
        Field::text("username", "The user for it.").required(),
    ],
};
static ROOT_DEVICE_HINTS: Struct = Struct {
    go: "baremetal.RootDeviceHints",
    doc: "Which disk it is.",
    fields: &[
        Field::text("deviceName", "Its name: /dev/sda, or a path in /dev/disk/by-path/"),
        Field::text("hctl", "Its SCSI address, e.g. 0:0:0:0"),
        Field::new("minSizeGigabytes", Kind::Int("int"), "It has at least this size."),
        Field::text("model", "Its model, or a part of it."),
        Field::new("rotational", Kind::Bool, "Whether it turns."),
        Field::text("serialNumber", "Its serial number."),
        Field::text("vendor", "Its vendor, or a part of the name."),
        Field::text("wwn", "Its world-wide name."),
        Field::text("wwnVendorExtension", "The vendor's part of its world-wide name."),
        Field::text("wwnWithExtension", "Its world-wide name with the vendor's part."),
    ],
};
static LOAD_BALANCER: Struct = Struct {
    go: "v1.BareMetalPlatformLoadBalancer",
    doc: "Who spreads requests over the machines.",
    fields: &[Field::new("type", Kind::Text("v1.PlatformLoadBalancerType"), "The cluster itself, or a load balancer of yours; then the addresses may lie anywhere.").default("OpenShiftManagedDefault").values(&["OpenShiftManagedDefault", "UserManaged"])],
};
