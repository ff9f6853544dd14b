//! The table for everything but `platform.baremetal`.

use super::baremetal::BAREMETAL;
use super::{Field, Kind, STRING, STRINGS, Struct};

pub(crate) static INSTALL_CONFIG: Struct = Struct {
    go: "types.InstallConfig",
    doc: "What a cluster is to be: its name, machines, networks and secrets.",
    fields: &[
        Field::text("additionalTrustBundle", "Certificates in PEM that the nodes are to trust beside those of their operating system, e.g. of a proxy or a mirror registry."),
        Field::new("additionalTrustBundlePolicy", Kind::Text("types.PolicyType"), "Whether Proxy cluster names additionalTrustBundle as trustedCA: with a proxy only, or always. Nodes trust it in any case.")
            .default("Proxyonly").values(&["Proxyonly", "Always"]),
        Field::text("apiVersion", "The version of this format.").required().values(&["v1", "v1beta3", "v1beta4"]),
        Field::new("arbiter", POOL, "A small machine that votes in etcd and carries no control plane, beside two control-plane machines."),
        Field::text("baseDomain", "The DNS domain below which the cluster's name lives: the API answers at api.<metadata.name>.<baseDomain>.").required(),
        Field::new("bootstrapInPlace", Kind::Struct(&BOOTSTRAP_IN_PLACE), "A single machine that boots the cluster by itself, without a bootstrap machine."),
        Field::new("capabilities", Kind::Struct(&CAPABILITIES), "Which optional parts of the payload are installed. All, if this is left out."),
        Field::new("compute", Kind::List("[]types.MachinePool", &POOL), "The machines that carry workloads: one pool named worker.").default("one pool of 3"),
        Field::new("controlPlane", POOL, "The machines that carry the control plane. The name is always master.").default("3 replicas"),
        Field::new("cpuPartitioningMode", Kind::Text("types.CPUPartitioningMode"), "Whether the nodes are set up so that the platform can be bound to CPUs of its own. Cannot be changed later.")
            .default("None").values(&["None", "AllNodes"]),
        Field::new("credentialsMode", Kind::Text("types.CredentialsMode"), "How a cloud's credentials are handed out. Not for the platforms none and baremetal."),
        Field::new("featureGates", STRINGS, "Single features to switch on or off, each as Name=true or Name=false. Needs featureSet CustomNoUpgrade."),
        Field::new("featureSet", Kind::Text("v1.FeatureSet"), "A set of features beyond the default. Every one of them rules updates out for good.")
            .values(&["", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade"]),
        Field::new("fips", Kind::Bool, "Whether the cluster's machines run in FIPS mode.").default("false"),
        Field::new("imageContentSources", Kind::List("[]types.ImageContentSource", &Kind::Struct(&CONTENT_SOURCE)), "The old name of imageDigestSources, without sourcePolicy."),
        Field::new("imageDigestSources", Kind::List("[]types.ImageDigestSource", &Kind::Struct(&DIGEST_SOURCE)), "Mirrors that hold the same images under other names. Images are looked for by digest."),
        Field::text("kind", "May be InstallConfig; not looked at."),
        Field::new("metadata", Kind::Struct(&METADATA), "The cluster's name, as in every Kubernetes object.").required(),
        Field::new("networking", Kind::Struct(&NETWORKING), "The networks of machines, pods and services."),
        Field::new("operatorPublishingStrategy", Kind::Struct(&OPERATOR_PUBLISHING), "For publish Mixed: what of the cluster is public."),
        Field::new("osImageStream", Kind::Text("types.OSImageStream"), "The line of operating-system images that the nodes follow.").default("rhel-10 (rhel-9 before version 5)"),
        Field::new("pki", Kind::Struct(&PKI), "The keys of the cluster's signers. Needs the feature gate ConfigurablePKI."),
        Field::new("platform", Kind::Struct(&PLATFORM), "What the machines stand on: exactly one of the names below.").required(),
        Field::new("proxy", Kind::Struct(&PROXY), "The proxy through which the cluster reaches the outside."),
        Field::new("publish", Kind::Text("types.PublishingStrategy"), "Who can reach the API and the applications. Everyone, on machines that you own.")
            .default("External").values(&["External", "Internal", "Mixed"]),
        Field::text("pullSecret", "Credentials for image registries, as one line of JSON: {\"auths\":{\"registry.example.com\":{\"auth\":\"…\"}}}").required(),
        Field::text("sshKey", "Public keys, one a line, with which the user core can log in on every machine."),
    ],
};

const POOL: Kind = Kind::Struct(&MACHINE_POOL);

static METADATA: Struct = Struct {
    go: "v1.ObjectMeta",
    doc: "The metadata of a Kubernetes object. Only the name means something here.",
    fields: &[
        Field::new("annotations", Kind::Map("map[string]string", &STRING), "Kept, not looked at."),
        Field::new("creationTimestamp", Kind::Any, "Kept, not looked at."),
        Field::new("deletionGracePeriodSeconds", Kind::Int("int64"), "Kept, not looked at."),
        Field::new("deletionTimestamp", Kind::Any, "Kept, not looked at."),
        Field::new("finalizers", STRINGS, "Kept, not looked at."),
        Field::text("generateName", "Kept, not looked at."),
        Field::new("generation", Kind::Int("int64"), "Kept, not looked at."),
        Field::new("labels", Kind::Map("map[string]string", &STRING), "Kept, not looked at."),
        Field::new("managedFields", Kind::Any, "Kept, not looked at."),
        Field::text("name", "The cluster's name: lower-case letters, digits and '-', at most 54 characters. With baseDomain it makes the cluster's domain.").required(),
        Field::text("namespace", "Kept, not looked at."),
        Field::new("ownerReferences", Kind::Any, "Kept, not looked at."),
        Field::text("resourceVersion", "Kept, not looked at."),
        Field::text("selfLink", "Kept, not looked at."),
        Field::new("uid", Kind::Text("types.UID"), "Kept, not looked at."),
    ],
};

static MACHINE_POOL: Struct = Struct {
    go: "types.MachinePool",
    doc: "Machines of one kind.",
    fields: &[
        Field::new("architecture", Kind::Text("types.Architecture"), "The machines' instruction set. The release decides which one works.")
            .default("amd64").values(&["amd64", "arm64", "ppc64le", "s390x"]),
        Field::new("diskSetup", Kind::List("[]types.Disk", &Kind::Struct(&DISK)), "What further disks of the machines are for. Needs the feature gate MultiDiskSetup."),
        Field::new("fencing", Kind::Struct(&FENCING), "For two control-plane machines without an arbiter: how one switches the other off."),
        Field::new("hyperthreading", Kind::Text("types.HyperthreadingMode"), "Whether the machines run several threads on a core.")
            .default("Enabled").values(&["Enabled", "Disabled"]),
        Field::text("name", "master, arbiter or worker; the first two are set whatever is written.").required(),
        Field::new("platform", Kind::Struct(&POOL_PLATFORM), "Settings of the machines that only their platform knows. Empty on none."),
        Field::new("replicas", Kind::Int("int64"), "How many machines. 3 control-plane machines survive the loss of one.").default("3"),
    ],
};

static DISK: Struct = Struct {
    go: "types.Disk",
    doc: "One further disk.",
    fields: &[
        Field::new("etcd", ETCD_DISK, "The disk that holds etcd's data."),
        Field::new("swap", SWAP_DISK, "The disk that is swapped to."),
        Field::new("type", Kind::Text("types.DiskType"), "What the disk is for.").required().values(&["etcd", "swap", "user-defined"]),
        Field::new("userDefined", USER_DISK, "A disk mounted where you say."),
    ],
};
const ETCD_DISK: Kind = Kind::Struct(&Struct { go: "types.DiskEtcd", doc: WHICH, fields: &[DISK_ID] });
const SWAP_DISK: Kind = Kind::Struct(&Struct { go: "types.DiskSwap", doc: WHICH, fields: &[DISK_ID] });
const USER_DISK: Kind = Kind::Struct(&Struct {
    go: "types.DiskUserDefined",
    doc: WHICH,
    fields: &[Field::text("mountPath", "Where the disk is mounted."), DISK_ID],
});
const WHICH: &str = "Which disk it is.";
const DISK_ID: Field =
    Field::text("platformDiskID", "The disk's name on the platform, at most 12 characters.").required();

static FENCING: Struct = Struct {
    go: "types.Fencing",
    doc: "How control-plane machines switch each other off.",
    fields: &[Field::new("credentials", Kind::List("[]*types.Credential", &Kind::Struct(&FENCING_CREDENTIAL)), "One entry a control-plane machine.")],
};
static FENCING_CREDENTIAL: Struct = Struct {
    go: "types.Credential",
    doc: "The management controller of a machine.",
    fields: &[
        Field::text("address", "Its Redfish address, e.g. redfish+https://192.168.1.1/redfish/v1/Systems/1").required(),
        Field::new("certificateVerification", Kind::Text("types.CertificateVerificationPolicy"), "Whether its certificate is checked.")
            .default("Enabled").values(&["Enabled", "Disabled"]),
        Field::text("hostName", "The machine's host name. This or macAddress is needed."),
        Field::text("macAddress", "The machine's MAC address. This or hostName is needed."),
        Field::text("password", "The password for it.").required(),
        Field::text("username", "The user for it.").required(),
    ],
};

static POOL_PLATFORM: Struct = Struct {
    go: "types.MachinePoolPlatform",
    doc: "Settings of a pool's machines on one platform.",
    fields: &[
        elsewhere("aws"), elsewhere("azure"),
        Field::new("baremetal", Kind::Struct(&EMPTY_POOL), "There are no settings for machines on bare metal: {}"),
        elsewhere("gcp"), elsewhere("ibmcloud"), elsewhere("nutanix"), elsewhere("openstack"), elsewhere("ovirt"), elsewhere("powervc"), elsewhere("powervs"), elsewhere("vsphere"),
    ],
};
static EMPTY_POOL: Struct = Struct { go: "baremetal.MachinePool", doc: "No settings.", fields: &[] };

static PLATFORM: Struct = Struct {
    go: "types.Platform",
    doc: "What the machines stand on. Seedling installs on none and baremetal.",
    fields: &[
        elsewhere("aws"), elsewhere("azure"),
        Field::new("baremetal", Kind::Struct(&BAREMETAL), "Machines with management controllers, and addresses that move between them."),
        elsewhere("external"), elsewhere("gcp"), elsewhere("ibmcloud"),
        Field::new("none", Kind::Struct(&NONE), "Machines that you switch on and connect yourself: {}"),
        elsewhere("nutanix"), elsewhere("openstack"), elsewhere("ovirt"), elsewhere("powervc"), elsewhere("powervs"), elsewhere("vsphere"),
    ],
};
static NONE: Struct = Struct { go: "none.Platform", doc: "There is nothing to set.", fields: &[] };

const fn elsewhere(name: &'static str) -> Field {
    Field::new(name, Kind::Any, "Seedling does not install there.")}

static NETWORKING: Struct = Struct {
    go: "types.Networking",
    doc: "The networks of machines, pods and services. No two may overlap. With two service networks, one IPv4 and one IPv6, the cluster is dual-stack and every list needs both.",
    fields: &[
        Field::new("clusterNetwork", CLUSTER_NETWORKS, "Addresses for pods.").default("10.128.0.0/14, hostPrefix 23"),
        Field::new("clusterNetworkMTU", Kind::Int("uint32"), "The pod network's MTU. On AWS only."),
        Field::new("clusterNetworks", CLUSTER_NETWORKS, "The old name of clusterNetwork."),
        Field::new("machineCIDR", Kind::Cidr, "The old form of machineNetwork, with one network."),
        Field::new("machineNetwork", Kind::List("[]types.MachineNetworkEntry", &Kind::Struct(&MACHINE_NETWORK)), "Addresses of the machines.").default("10.0.0.0/16"),
        Field::new("networkObservability", Kind::Struct(&NETWORK_OBSERVABILITY), "Whether the flows in the network are watched."),
        Field::text("networkType", "Who makes the pod network.").default("OVNKubernetes"),
        Field::new("ovnKubernetesConfig", Kind::Struct(&OVN_KUBERNETES), "Settings of OVN-Kubernetes."),
        Field::new("serviceCIDR", Kind::Cidr, "The old form of serviceNetwork, with one network."),
        Field::new("serviceNetwork", Kind::List("[]ipnet.IPNet", &Kind::Cidr), "Addresses for Services: one network, or two for dual stack. IPv4 at least /12, IPv6 /112.").default("172.30.0.0/16"),
        Field::text("type", "The old name of networkType."),
    ],
};
const CLUSTER_NETWORKS: Kind = Kind::List("[]types.ClusterNetworkEntry", &Kind::Struct(&CLUSTER_NETWORK));

static MACHINE_NETWORK: Struct = Struct {
    go: "types.MachineNetworkEntry",
    doc: "A network of machines.",
    fields: &[Field::new("cidr", Kind::Cidr, "The network.").required()],
};
static CLUSTER_NETWORK: Struct = Struct {
    go: "types.ClusterNetworkEntry",
    doc: "A network of pods, of which each node gets a part.",
    fields: &[
        Field::new("cidr", Kind::Cidr, "The network.").required(),
        Field::new("hostPrefix", Kind::Int("int32"), "The size of a node's part: 23 is 510 addresses. 64 for IPv6.").default("23"),
        Field::new("hostSubnetLength", Kind::Int("int32"), "The old form of hostPrefix: the bits that are left for a node's pods."),
    ],
};
static NETWORK_OBSERVABILITY: Struct = Struct {
    go: "types.NetworkObservability",
    doc: "Whether the flows in the network are watched.",
    fields: &[Field::text("installationPolicy", "Whether the operator for it is installed.").values(&["InstallAndEnable", "NoAction"])],
};
static OVN_KUBERNETES: Struct = Struct {
    go: "types.OVNKubernetesConfig",
    doc: "Settings of OVN-Kubernetes.",
    fields: &[Field::new("ipv4", Kind::Struct(&OVN_IPV4), "Settings for IPv4.")],
};
static OVN_IPV4: Struct = Struct {
    go: "types.IPv4OVNKubernetesConfig",
    doc: "Settings of OVN-Kubernetes for IPv4.",
    fields: &[Field::new("internalJoinSubnet", Kind::Cidr, "A network that OVN-Kubernetes uses inside, where its own is taken. It needs an address for every node that can be.").default("100.64.0.0/16")],
};

static PROXY: Struct = Struct {
    go: "types.Proxy",
    doc: "A proxy; httpProxy, httpsProxy or both.",
    fields: &[
        Field::text("httpProxy", "Where HTTP requests go: http://[user:password@]host:port"),
        Field::text("httpsProxy", "Where HTTPS requests go: http:// or https://[user:password@]host:port"),
        Field::text("noProxy", "What is reached without it: domains (.example.com for all below), addresses and networks, with commas and no spaces; or *"),
    ],
};

static CONTENT_SOURCE: Struct = Struct {
    go: "types.ImageContentSource",
    doc: "A repository and its mirrors.",
    fields: &[MIRRORS, SOURCE],
};
static DIGEST_SOURCE: Struct = Struct {
    go: "types.ImageDigestSource",
    doc: "A repository and its mirrors.",
    fields: &[
        MIRRORS,
        SOURCE,
        Field::new("sourcePolicy", Kind::Text("v1.MirrorSourcePolicy"), "Whether the source is asked where the mirrors fail.")
            .default("AllowContactingSource").values(&["NeverContactSource", "AllowContactingSource"]),
    ],
};
const MIRRORS: Field =
    Field::new("mirrors", STRINGS, "Repositories with the same images, tried in this order.");
const SOURCE: Field =
    Field::text("source", "The repository as pull specifications name it, without tag or digest.").required();

static OPERATOR_PUBLISHING: Struct = Struct {
    go: "types.OperatorPublishingStrategy",
    doc: "What of the cluster is public.",
    fields: &[
        Field::text("apiserver", "Who can reach the API.").default("External").values(&["External", "Internal"]),
        Field::text("ingress", "Who can reach the applications.").default("External").values(&["External", "Internal"]),
    ],
};

static BOOTSTRAP_IN_PLACE: Struct = Struct {
    go: "types.BootstrapInPlace",
    doc: "A single machine that boots the cluster by itself.",
    fields: &[Field::text("installationDisk", "The disk that the operating system is written to, e.g. /dev/sda").required()],
};

static CAPABILITIES: Struct = Struct {
    go: "types.Capabilities",
    doc: "Which optional parts of the payload are installed.",
    fields: &[
        Field::new("additionalEnabledCapabilities", Kind::List("[]v1.ClusterVersionCapability", &Kind::Text("v1.ClusterVersionCapability")), "Parts beyond the baseline. Ingress must be among them or in the baseline."),
        Field::new("baselineCapabilitySet", Kind::Text("v1.ClusterVersionCapabilitySet"), "The parts that a version had, all (vCurrent), or none.")
            .required().values(&["None", "v4.11", "v4.12", "v4.13", "v4.14", "v4.15", "v4.16", "v4.17", "v4.18", "vCurrent"]),
    ],
};

static PKI: Struct = Struct {
    go: "types.PKIConfig",
    doc: "The keys of the cluster's certificates.",
    fields: &[Field::new("signerCertificates", Kind::Struct(&SIGNERS), "The certificates that sign others.").required()],
};
static SIGNERS: Struct = Struct {
    go: "types.CertificateConfig",
    doc: "The certificates that sign others.",
    fields: &[Field::new("key", Kind::Struct(&KEY), "The kind of key they have.").required()],
};
static KEY: Struct = Struct {
    go: "v1alpha1.KeyConfig",
    doc: "A kind of key.",
    fields: &[
        Field::new("algorithm", Kind::Text("v1alpha1.KeyAlgorithm"), "The algorithm.").required().values(&["RSA", "ECDSA"]),
        Field::new("ecdsa", Kind::Struct(&ECDSA), "For ECDSA."),
        Field::new("rsa", Kind::Struct(&RSA), "For RSA."),
    ],
};
static ECDSA: Struct = Struct {
    go: "v1alpha1.ECDSAKeyConfig",
    doc: "An ECDSA key.",
    fields: &[Field::new("curve", Kind::Text("v1alpha1.ECDSACurve"), "The curve.").required().values(&["P256", "P384", "P521"])],
};
static RSA: Struct = Struct {
    go: "v1alpha1.RSAKeyConfig",
    doc: "An RSA key.",
    fields: &[Field::new("keySize", Kind::Int("int32"), "Its size in bits: 2048 to 8192 in steps of 1024.").required()],
};
