//! master.ign and worker.ign: nothing but where the real config is and whom to trust.

use crate::CreateError;
use seedling_ignition::{Config, Ignition, Redirect, Resource, Security, Tls, data_url};
use seedling_types::ports;
use serde_json::{Value, json};

pub fn pointer(host: &str, pool: &str, root_ca: &str) -> Config {
    let resource = |source: String| Resource { source: Some(source), ..Resource::default() };
    let config = format!("https://{host}:{}/config/{pool}", ports::MCS);
    Config {
        ignition: Ignition {
            config: Some(Redirect { merge: vec![resource(config)], replace: None }),
            security: Some(Security {
                tls: Tls { certificate_authorities: vec![resource(data_url(root_ca.as_bytes()))] },
            }),
            ..Ignition::default()
        },
        ..Config::default()
    }
}

pub fn parse(file: &str, text: &str) -> Result<Value, CreateError> {
    let failed = |e: serde_json::Error| {
        let why = if e.is_eof() { "unexpected end of JSON input".into() } else { e.to_string() };
        CreateError::Unmarshal { file: file.into(), why }
    };
    serde_json::from_str(text).map_err(failed)
}

/// What a user added to a pointer config, without the pointer itself: a machine that follows it would come back to it.
pub fn additions(file: &str, given: &str, made: &str) -> Result<Option<Value>, CreateError> {
    let (mut given, made) = (parse(file, given)?, parse(file, made)?);
    if given == made {
        return Ok(None);
    }
    for list in ["/ignition/config/merge", "/ignition/security/tls/certificateAuthorities"] {
        let own = made.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(items) = given.pointer_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| !own.contains(item));
        }
    }
    prune(&mut given);
    given["ignition"]["version"] = made["ignition"]["version"].clone();
    Ok((given != json!({ "ignition": { "version": made["ignition"]["version"] } })).then_some(given))
}

/// Takes away what is empty.
fn prune(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(prune);
        members.retain(|_, v| {
            !(v.as_object().is_some_and(|o| o.is_empty()) || v.as_array().is_some_and(Vec::is_empty))
        });
    }
}
