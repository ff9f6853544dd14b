//! What makes a struct a kind of the API.

/// `metadata`, `spec` and `status`; `apiVersion` and `kind` are said when it is written, and not asked for when it is read.
macro_rules! kinds {
    (@version "") => { "v1" };
    (@version $group:tt) => { concat!($group, "/v1") };
    (@scope cluster) => { k8s_openapi::ClusterResourceScope };
    (@scope namespaced) => { k8s_openapi::NamespaceResourceScope };
    ($($(#[$doc:meta])* $name:ident = $kind:literal $plural:literal in $group:tt $scope:ident: $spec:ty, $status:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        pub struct $name {
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            #[serde(default)]
            pub spec: Option<$spec>,
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = $crate::kind::kinds!(@version $group);
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = "v1";
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = $crate::kind::kinds!(@scope $scope);
        }

        impl k8s_openapi::Metadata for $name {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }
            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::kind::serialize::<Self, _, _, _>(serializer, &self.metadata, &self.spec, &self.status)
            }
        }
    )+};
}
pub(crate) use kinds;

use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde::{Deserialize, Deserializer};

pub(crate) fn serialize<K: Resource, A: Serialize, B: Serialize, S: Serializer>(
    serializer: S,
    metadata: &ObjectMeta,
    spec: &Option<A>,
    status: &Option<B>,
) -> Result<S::Ok, S::Error> {
    let fields = 3 + usize::from(spec.is_some()) + usize::from(status.is_some());
    let mut object = serializer.serialize_struct(K::KIND, fields)?;
    object.serialize_field("apiVersion", K::API_VERSION)?;
    object.serialize_field("kind", K::KIND)?;
    object.serialize_field("metadata", metadata)?;
    if let Some(spec) = spec {
        object.serialize_field("spec", spec)?;
    }
    if let Some(status) = status {
        object.serialize_field("status", status)?;
    }
    object.end()
}

/// Null means the same as absent.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
