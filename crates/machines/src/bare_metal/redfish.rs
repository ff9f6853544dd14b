//! A management controller that speaks Redfish (DMTF DSP0266): power, what to boot from once, and an ISO as a disc.

use super::Controller;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use thiserror::Error;

/// Controllers are slow, and some answer only when the machine has done what it was told.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug, Error)]
pub enum RedfishError {
    #[error("{server}: {why}; is this its address, and does this machine reach it?")]
    Unreachable { server: String, why: String },
    #[error(
        "{server}: its certificate is not trusted ({why}): put its CA into bmcVerifyCA, or set bmc.disableCertificateVerification"
    )]
    Untrusted { server: String, why: String },
    #[error("{server} refuses its user or password: bmc.username and bmc.password of the host")]
    Credentials { server: String },
    #[error("{method} {url}: {status}: {message}")]
    Refused { method: Method, url: String, status: StatusCode, message: String },
    #[error("{0}")]
    Lacks(String),
    #[error("bmcVerifyCA: {0}")]
    Authority(String),
}

type Result<T> = std::result::Result<T, RedfishError>;

/// What the machine does next time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootOnce {
    Network,
    Disk,
    Disc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    On,
    /// As by the power button.
    Off,
    /// As by pulling the plug.
    Kill,
    /// Off and on again.
    Cycle,
}

impl BootOnce {
    fn target(self) -> &'static str {
        match self {
            Self::Network => "Pxe",
            Self::Disk => "Hdd",
            Self::Disc => "Cd",
        }
    }
}

impl Reset {
    /// The best first.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::On => &["On", "ForceOn"],
            Self::Off => &["GracefulShutdown", "PushPowerButton"],
            Self::Kill => &["ForceOff"],
            Self::Cycle => &["PowerCycle", "ForceRestart"],
        }
    }

    /// The first that the controller knows; it need not say which those are.
    fn kind(self, allowed: &Value) -> Option<&'static str> {
        let allowed: Option<Vec<_>> =
            allowed.as_array().map(|a| a.iter().filter_map(Value::as_str).collect());
        let known = |kind: &&&str| allowed.as_ref().is_none_or(|allowed| allowed.contains(*kind));
        self.kinds().iter().find(known).copied()
    }
}

/// One machine of a controller.
pub struct Redfish {
    controller: Controller,
    http: reqwest::Client,
    system: String,
}

impl Redfish {
    /// Asks at once, so that a wrong address or password is said before anything is done.
    pub async fn open(controller: Controller) -> Result<Self> {
        let mut http = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN);
        if controller.unverified {
            http = http.tls_danger_accept_invalid_certs(true);
        } else if let Some(pem) = &controller.authority {
            let authorities = reqwest::Certificate::from_pem_bundle(pem.as_bytes());
            http = http.tls_certs_only(authorities.map_err(|e| RedfishError::Authority(e.to_string()))?);
        }
        let http = http.build().map_err(|e| unreachable(&controller, &e))?;
        let mut open = Self { system: controller.system.clone(), controller, http };
        if open.system.is_empty() {
            open.system = open.only("/redfish/v1/Systems").await?;
        }
        open.get(&open.system).await?;
        Ok(open)
    }

    /// `On`, `Off`, `PoweringOn`, ….
    pub async fn power(&self) -> Result<String> {
        Ok(self.get(&self.system).await?["PowerState"].as_str().unwrap_or("Unknown").into())
    }

    /// What it boots from next, if not as usual.
    pub async fn boots_once(&self) -> Result<Option<String>> {
        let boot = self.get(&self.system).await?["Boot"].clone();
        let once = boot["BootSourceOverrideEnabled"] == "Once";
        Ok(boot["BootSourceOverrideTarget"]
            .as_str()
            .filter(|target| once && *target != "None")
            .map(String::from))
    }

    pub async fn reset(&self, reset: Reset) -> Result<()> {
        let system = self.get(&self.system).await?;
        let action = &system["Actions"]["#ComputerSystem.Reset"];
        let target = action["target"].as_str().map(String::from);
        let target = target.unwrap_or_else(|| format!("{}/Actions/ComputerSystem.Reset", self.system));
        let allowed = &action["ResetType@Redfish.AllowableValues"];
        let kind = reset.kind(allowed).ok_or_else(|| {
            RedfishError::Lacks(format!("this controller cannot do {reset:?}, only {allowed}"))
        })?;
        self.post(&target, json!({"ResetType": kind})).await
    }

    pub async fn boot_once(&self, from: BootOnce) -> Result<()> {
        let boot = json!({"BootSourceOverrideTarget": from.target(), "BootSourceOverrideEnabled": "Once"});
        self.call(Method::PATCH, &self.system, Some(json!({"Boot": boot}))).await.map(drop)
    }

    /// An ISO in the virtual drive; what was there is taken out first.
    pub async fn insert(&self, iso: &str) -> Result<()> {
        let drive = self.drive().await?;
        self.eject_from(&drive).await?;
        let target = action(&drive, "InsertMedia");
        self.post(&target, json!({"Image": iso, "Inserted": true, "WriteProtected": true})).await
    }

    pub async fn eject(&self) -> Result<()> {
        let drive = self.drive().await?;
        self.eject_from(&drive).await
    }

    /// The ISO that is in the drive.
    pub async fn inserted(&self) -> Result<Option<String>> {
        let drive = self.drive().await?;
        let image = drive["Image"].as_str().filter(|image| drive["Inserted"] == true && !image.is_empty());
        Ok(image.map(String::from))
    }

    async fn eject_from(&self, drive: &Value) -> Result<()> {
        match drive["Inserted"] == true {
            true => self.post(&action(drive, "EjectMedia"), json!({})).await,
            false => Ok(()),
        }
    }

    /// The machine's own, or its manager's: controllers differ.
    async fn drive(&self) -> Result<Value> {
        let system = self.get(&self.system).await?;
        let mut owners = vec![system.clone()];
        for manager in system["Links"]["ManagedBy"].as_array().into_iter().flatten() {
            owners.push(self.get(link(manager)).await?);
        }
        for owner in owners {
            let Some(collection) = owner["VirtualMedia"]["@odata.id"].as_str() else { continue };
            for member in self.get(collection).await?["Members"].as_array().into_iter().flatten() {
                let drive = self.get(link(member)).await?;
                let takes = |kind: &Value| kind == "CD" || kind == "DVD";
                if drive["MediaTypes"].as_array().is_some_and(|kinds| kinds.iter().any(takes)) {
                    return Ok(drive);
                }
            }
        }
        Err(RedfishError::Lacks(
            "this controller has no virtual drive for an ISO: boot over the network".into(),
        ))
    }

    /// The one member of a collection.
    async fn only(&self, collection: &str) -> Result<String> {
        let answer = self.get(collection).await?;
        let members: Vec<_> = answer["Members"].as_array().into_iter().flatten().map(link).collect();
        match members[..] {
            [one] => Ok(one.into()),
            _ => Err(RedfishError::Lacks(format!(
                "{}{collection} has {} machines: name one in bmc.address, e.g. {}",
                self.controller.server,
                members.len(),
                members.first().unwrap_or(&"/redfish/v1/Systems/1")
            ))),
        }
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None).await
    }

    async fn post(&self, path: &str, body: Value) -> Result<()> {
        self.call(Method::POST, path, Some(body)).await.map(drop)
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let url = format!("{}{path}", self.controller.server);
        let Controller { username, password, server, .. } = &self.controller;
        let mut request = self.http.request(method.clone(), &url).basic_auth(username, Some(password));
        if let Some(body) = &body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|e| unreachable(&self.controller, &e))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|e| unreachable(&self.controller, &e))?;
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            return Err(RedfishError::Credentials { server: server.clone() });
        }
        if !status.is_success() {
            return Err(RedfishError::Refused { method, url, status, message: message(&text) });
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

fn link(member: &Value) -> &str {
    member["@odata.id"].as_str().unwrap_or_default()
}

fn action(drive: &Value, name: &str) -> String {
    let target = drive["Actions"][format!("#VirtualMedia.{name}")]["target"].as_str();
    target.map_or_else(|| format!("{}/Actions/VirtualMedia.{name}", link(drive)), String::from)
}

/// What the controller says of its own, in the form that the standard asks for or not.
fn message(text: &str) -> String {
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let error = &parsed["error"];
    let said = [&error["@Message.ExtendedInfo"][0]["Message"], &error["message"]];
    let said = said.into_iter().find_map(|said| said.as_str());
    said.unwrap_or_else(|| text.lines().next().unwrap_or_default()).chars().take(300).collect()
}

fn unreachable(controller: &Controller, error: &dyn std::error::Error) -> RedfishError {
    let causes = std::iter::successors(Some(error), |e| e.source());
    let why = causes.last().unwrap_or(error).to_string();
    let server = controller.server.clone();
    match why.contains("certificate") {
        true => RedfishError::Untrusted { server, why },
        false => RedfishError::Unreachable { server, why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gentlest_way_that_the_controller_knows_is_taken() {
        let some = json!(["On", "ForceOff", "ForceRestart"]);
        for (reset, said, unsaid) in [
            (Reset::On, Some("On"), "On"),
            (Reset::Off, None, "GracefulShutdown"),
            (Reset::Kill, Some("ForceOff"), "ForceOff"),
            (Reset::Cycle, Some("ForceRestart"), "PowerCycle"),
        ] {
            assert_eq!((reset.kind(&some), reset.kind(&Value::Null)), (said, Some(unsaid)), "{reset:?}");
        }
    }

    #[test]
    fn what_a_controller_says_is_passed_on() {
        let extended = r#"{"error": {"message": "general", "@Message.ExtendedInfo": [{"Message": "The drive is in use."}]}}"#;
        assert_eq!(message(extended), "The drive is in use.");
        assert_eq!(message(r#"{"error": {"message": "general"}}"#), "general");
        assert_eq!(message("<html>\n<body>"), "<html>");
    }
}
