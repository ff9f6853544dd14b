//! The kinds of the API that Seedling reads or writes, and one way to ask an object for a condition.
//!
//! Kubernetes' own kinds are k8s-openapi's, except for the large ones (`core.rs`). Those and OpenShift's kinds have only the fields that
//! Seedling reads or writes. Only fields that are set are applied, so that others keep theirs.

#[rustfmt::skip] // A field is a line, as in Go.
pub mod condition;
#[rustfmt::skip]
pub mod config;
#[rustfmt::skip]
pub mod core;
mod kind;
pub mod machine_configuration;
#[rustfmt::skip]
pub mod operator;

pub use self::core::{DaemonSet, Node, Pod};
pub use condition::{Condition, Conditions, now};
pub use config::{ClusterOperator, ClusterVersion, Dns, FeatureGate, Infrastructure, Network, Scheduler};
pub use k8s_openapi::ByteString;
pub use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
pub use k8s_openapi::api::coordination::v1::Lease;
pub use k8s_openapi::api::core::v1::{ConfigMap, Event, ObjectReference, Secret};
pub use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
pub use machine_configuration::{ControllerConfig, MachineConfig, MachineConfigPool};
pub use operator::{Etcd, KubeApiServer, KubeControllerManager, KubeScheduler, StaticPodOperator};

use k8s_openapi::api::core::v1::EventSource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::collections::BTreeMap;

pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

pub fn named_in(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.into()), ..named(name) }
}

pub fn config_map(namespace: &str, name: &str, data: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap { metadata: named_in(namespace, name), data: Some(data), ..ConfigMap::default() }
}

/// It happened once, just now. `kind`: Normal or Warning.
pub fn event(
    metadata: ObjectMeta,
    about: ObjectReference,
    component: &str,
    kind: &str,
    message: &str,
) -> Event {
    let now = Some(Time(k8s_openapi::jiff::Timestamp::now()));
    Event {
        metadata,
        involved_object: about,
        source: Some(EventSource { component: Some(component.into()), host: None }),
        type_: Some(kind.into()),
        message: Some(message.into()),
        first_timestamp: now.clone(),
        last_timestamp: now,
        count: Some(1),
        ..Event::default()
    }
}

/// What an object says of itself, without the `Option`s around it.
pub trait Meta {
    fn meta(&self) -> &ObjectMeta;

    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }
    fn generation(&self) -> Option<i64> {
        self.meta().generation
    }
}

impl<K: k8s_openapi::Metadata<Ty = ObjectMeta>> Meta for K {
    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }
}

/// Files in an object.
pub trait Files {
    /// As text; one that is no text is not there.
    fn file(&self, key: &str) -> Option<&str>;
    /// All that are text.
    fn files(&self) -> BTreeMap<String, String>;
}

impl Files for ConfigMap {
    fn file(&self, key: &str) -> Option<&str> {
        self.data.as_ref()?.get(key).map(String::as_str)
    }
    fn files(&self) -> BTreeMap<String, String> {
        self.data.clone().unwrap_or_default()
    }
}

impl Files for Secret {
    fn file(&self, key: &str) -> Option<&str> {
        str::from_utf8(&self.data.as_ref()?.get(key)?.0).ok()
    }
    fn files(&self) -> BTreeMap<String, String> {
        let files = self.data.iter().flatten();
        files
            .filter_map(|(key, bytes)| Some((key.clone(), String::from_utf8(bytes.0.clone()).ok()?)))
            .collect()
    }
}

/// In base64, as the API has it: what is applied as `stringData` does not leave again.
pub fn secret<'a>(
    namespace: &str,
    name: &str,
    kind: &str,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Secret {
    let bytes = |(key, text): (&str, &str)| (key.to_string(), ByteString(text.as_bytes().to_vec()));
    Secret {
        metadata: named_in(namespace, name),
        type_: Some(kind.into()),
        data: Some(files.into_iter().map(bytes).collect()),
        ..Secret::default()
    }
}
