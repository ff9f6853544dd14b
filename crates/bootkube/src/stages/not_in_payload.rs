//! Stages of upstream whose component this payload does not have: their records say so.

macro_rules! not_in_payload {
    ($($module:ident: $name:literal, $component:literal, $why:literal, $upstream:literal, $see:expr;)+) => {$(
        pub(crate) mod $module {
            use crate::error::ensure;
            use crate::{Context, Outcome, Result};
            use seedling_steps::Stage;

            pub(crate) const STAGE: Stage = Stage {
                name: $name,
                done: Some($name),
                what: concat!("Renders nothing: ", $component, " is not in the payload. The record says so."),
                why: $why,
                reads: &["release.json"],
                writes: &[],
                check: "the release lists no such component",
                fails: &["`nothing renders … yet`: a release with this component needs a Seedling that renders it"],
                upstream: $upstream,
                see: $see,
            };

            pub(crate) async fn run(_: &Context) -> Result<Outcome> {
                Ok(Outcome::NotInPayload($component))
            }

            pub(crate) async fn check(c: &Context) -> Result<()> {
                let there = c.release.images.contains_key($component);
                ensure!(!there, "nothing renders {} yet", $component);
                Ok(())
            }
        }
    )+};
}

not_in_payload! {
    auth_api_bootstrap: "auth-api-bootstrap", "cluster-authentication-operator",
        "role binding restrictions belong to the authentication operator",
        "podman run … cluster-authentication-operator render --asset-output-dir=/assets/auth-api-bootstrap", &["seed.003.4"];
    ingress_operator_bootstrap: "ingress-operator-bootstrap", "cluster-ingress-operator",
        "the router's kinds must exist before its first object",
        "podman run … ingress-operator render --prefix=cluster-ingress- --output-dir=/assets/ingress-operator-manifests", &["seed.003.11"];
    node_tuning_bootstrap: "node-tuning-bootstrap", "cluster-node-tuning-operator",
        "performance profiles become machine configs before masters fetch theirs",
        "podman run … cluster-node-tuning-operator render --asset-input-dir=/assets/manifests …", &["stage.mco-bootstrap"];
    cco_bootstrap: "cco-bootstrap", "cloud-credential-operator", "cloud credentials are made for the operators that ask for them",
        "podman run … cloud-credential-operator render --manifests-dir=/assets/manifests …", &["component.cluster-version-operator"];
}
