//! The steps of the texts that Seedling follows, by their numbers there, and where each is found here.
//!
//! 000 "Bootstrap and Bootkube" (its timeline), 001 "Bootstrap" (the steps on the bootstrap node), 002 "The Bootstrap Process" (what
//! bootkube.service does), 003 "Dissecting bootkube.sh" (its fifteen stages).

use seedling_types::description::{Description, Kind, Text};

pub struct Seed {
    pub text: &'static str,
    pub number: u8,
    /// As the text calls it.
    pub title: &'static str,
    /// How it is done here.
    pub here: &'static str,
    pub see: &'static [&'static str],
}

impl Seed {
    pub fn describe(&self) -> Description {
        let Self { text, number, title, here, see } = self;
        let words = Text { what: here, see, ..Text::EMPTY };
        let slug: Vec<_> =
            title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let described = Description::new(Kind::Seed, format!("{text}.{number}"), &words)
            .also(slug.join("-").to_lowercase());
        described.fact("in the text", *title)
    }
}

#[rustfmt::skip] // A row is a line.
const fn seed(text: &'static str, number: u8, title: &'static str, here: &'static str, see: &'static [&'static str]) -> Seed {
    Seed { text, number, title, here, see }
}

#[rustfmt::skip]
pub const SEEDS: &[Seed] = &[
    seed("000", 1, "Bootstrap node boots with bootstrap.ign", "DHCP gives the machine its address and the URL of its Ignition config; Ignition writes /opt/openshift and the services, and systemd starts.", &["component.dhcp", "component.http", "file./opt/openshift"]),
    seed("000", 2, "Bootstrap starts a temporary etcd and API server as static pods", "etcd starts when etcd-bootstrap writes its pod, the API server when cb-bootstrap copies its pod into place.", &["stage.etcd-bootstrap", "stage.wait-for-etcd", "stage.cb-bootstrap"]),
    seed("000", 3, "Control plane nodes contact the Machine Config Server", "A master's pointer config has the server's address, its CA and the machine's own token.", &["stage.mco-bootstrap", "component.machine-config-server", "port.22623"]),
    seed("000", 4, "Control plane nodes start their own static pods", "Operators' installer pods write them on masters, by revision.", &["component.installer", "component.etcd-operator", "component.kube-apiserver-operator"]),
    seed("000", 5, "The temporary control plane schedules the production control plane", "The temporary scheduler and controllers run the operators on the masters.", &["stage.kube-scheduler-bootstrap", "stage.kube-controller-manager-bootstrap", "condition.masters-control-plane"]),
    seed("000", 6, "The Cluster Version Operator starts applying the release payload", "It begins as a static pod on the bootstrap node, and goes on from a master.", &["stage.cvo-bootstrap", "component.cluster-version-operator"]),
    seed("000", 7, "The bootstrap control plane shuts down and hands off", "cb-bootstrap waits, hands over and tears down; the etcd operator removes the last member.", &["stage.cb-bootstrap", "stage.wait-for-ceo", "component.progress"]),
    seed("001", 1, "Boots with bootstrap.ign", "As seed.000.1.", &["component.dhcp", "component.http"]),
    seed("001", 2, "kubelet starts", "It knows no API server: it only turns files into pods.", &["component.kubelet"]),
    seed("001", 3, "kubelet starts static pods", "None is baked into the Ignition config here: bootkube's stages write them.", &["file./etc/kubernetes/manifests", "stage.etcd-bootstrap"]),
    seed("001", 4, "etcd starts (single member)", "One member is the seed of the cluster.", &["stage.etcd-bootstrap", "stage.wait-for-etcd", "component.etcd"]),
    seed("001", 5, "kube-apiserver starts", "After etcd has a leader.", &["stage.kube-apiserver-bootstrap", "stage.cb-bootstrap", "condition.api-answers"]),
    seed("001", 6, "kube-controller-manager starts", "With the API server, from cb-bootstrap.", &["stage.kube-controller-manager-bootstrap", "component.kube-controller-manager"]),
    seed("001", 7, "kube-scheduler starts", "With the API server, from cb-bootstrap.", &["stage.kube-scheduler-bootstrap", "component.kube-scheduler"]),
    seed("001", 8, "bootkube.sh waits for healthy, applies cluster manifests", "cb-bootstrap creates every file of manifests/, again until each is there.", &["stage.cb-bootstrap", "condition.manifests-created"]),
    seed("001", 9, "Waits for masters to join", "The masters' requests for certificates are approved, and cb-bootstrap waits for their control plane.", &["component.approve-csr", "condition.masters-joined", "condition.masters-control-plane"]),
    seed("001", 11, "etcd scales to 3 members", "The etcd operator adds each master's member as a learner and lets it vote when it has caught up: 1, 4, and at the end 3.", &["component.etcd-operator", "condition.etcd-carried"]),
    seed("001", 12, "Control plane pivots to masters", "The load balancer leads to whoever is ready; the temporary control plane drains and stops.", &["stage.cb-bootstrap", "component.load-balancer"]),
    seed("001", 13, "Bootstrap complete", "ConfigMap kube-system/bootstrap says so, and the bootstrap node may be switched off.", &["component.progress", "condition.bootstrap-complete"]),
    seed("002", 1, "Waits for etcd to be healthy", "Stage 16 of the plan.", &["stage.wait-for-etcd", "condition.etcd-has-leader"]),
    seed("002", 2, "Starts the bootstrap control plane", "cb-bootstrap's first part.", &["stage.cb-bootstrap", "condition.api-answers"]),
    seed("002", 3, "Renders cluster manifests", "Stages 1 to 15, before anything but etcd and the machine-config server is started.", &["stage.1", "stage.api-bootstrap", "stage.mco-bootstrap", "command.render"]),
    seed("002", 4, "Waits for the production control plane", "cb-bootstrap waits for the masters' pods, then wait-for-ceo for etcd.", &["condition.masters-control-plane", "stage.wait-for-ceo"]),
    seed("002", 5, "Removes the bootstrap etcd member", "The etcd operator does, after bootkube has reported.", &["component.etcd-operator", "condition.bootstrap-member-removed"]),
    seed("002", 6, "Exits successfully", "bootkube.service complete; progress.service reports it.", &["component.bootkube", "component.progress", "condition.bootkube-done"]),
    seed("003", 1, "Copy OpenShift Manifests", "Stage openshift-manifests.", &["stage.openshift-manifests"]),
    seed("003", 2, "Extract Release Image Info", "release-image.service fetches the release by its digest before bootkube starts, and api-bootstrap takes the kinds from it.", &["component.release-image", "stage.api-bootstrap"]),
    seed("003", 3, "Render API Bootstrap", "The kinds come with api-bootstrap, the API server's pod with kube-apiserver-bootstrap.", &["stage.api-bootstrap", "stage.kube-apiserver-bootstrap"]),
    seed("003", 4, "Render Authentication API", "Recorded as not in the payload.", &["stage.auth-api-bootstrap"]),
    seed("003", 5, "Render Config Bootstrap", "Stage config-bootstrap.", &["stage.config-bootstrap"]),
    seed("003", 6, "Render CVO Bootstrap", "Stage cvo-bootstrap.", &["stage.cvo-bootstrap", "component.cluster-version-operator"]),
    seed("003", 7, "Render etcd Bootstrap", "Stage etcd-bootstrap; the kubelet starts etcd at once.", &["stage.etcd-bootstrap", "component.etcd"]),
    seed("003", 8, "Render kube-apiserver", "Stage kube-apiserver-bootstrap.", &["stage.kube-apiserver-bootstrap", "component.kube-apiserver"]),
    seed("003", 9, "Render kube-controller-manager", "Stage kube-controller-manager-bootstrap.", &["stage.kube-controller-manager-bootstrap", "component.kube-controller-manager"]),
    seed("003", 10, "Render kube-scheduler", "Stage kube-scheduler-bootstrap.", &["stage.kube-scheduler-bootstrap", "component.kube-scheduler"]),
    seed("003", 11, "Render Ingress Operator", "Recorded as not in the payload.", &["stage.ingress-operator-bootstrap"]),
    seed("003", 12, "Render MCO Bootstrap", "Stage mco-bootstrap; the machine-config server starts at once.", &["stage.mco-bootstrap", "component.machine-config-server"]),
    seed("003", 13, "Run cluster-bootstrap", "Stages wait-for-etcd and cb-bootstrap.", &["stage.wait-for-etcd", "stage.cb-bootstrap"]),
    seed("003", 14, "Restore CVO Overrides", "Stage cvo-overrides.", &["stage.cvo-overrides"]),
    seed("003", 15, "API Server Verification", "cb-bootstrap waits for the API on localhost; check-api-url and check-api-int-url ask through the load balancer.", &["condition.api-answers", "stage.check-api-url", "stage.check-api-int-url"]),
];
