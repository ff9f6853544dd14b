//! What kubelets and the approver must agree on about certificate signing requests.

/// Signs client certificates of kubelets.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signs serving certificates of kubelets.
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";
/// Annotation on a request that is left pending: why.
pub const REFUSED: &str = "machine-approver.seedling.internal/refused";
