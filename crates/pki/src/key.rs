//! Private keys: ECDSA by default (small, fast to make), RSA where a peer asks for it.

use crate::PkiError;
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    KeyPair as Key, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256,
    RsaKeySize,
};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyAlgorithm {
    #[default]
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Rsa2048,
    Rsa4096,
}

impl KeyAlgorithm {
    pub(crate) fn generate(self) -> Result<Key, PkiError> {
        Ok(match self {
            Self::EcdsaP256 => Key::generate_for(&PKCS_ECDSA_P256_SHA256)?,
            Self::EcdsaP384 => Key::generate_for(&PKCS_ECDSA_P384_SHA384)?,
            Self::EcdsaP521 => Key::generate_for(&PKCS_ECDSA_P521_SHA512)?,
            Self::Rsa2048 => Key::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?,
            Self::Rsa4096 => Key::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096)?,
        })
    }
    /// Key encipherment means RSA key transport; an ECDSA key cannot do it.
    pub(crate) fn enciphers(self) -> bool {
        matches!(self, Self::Rsa2048 | Self::Rsa4096)
    }
}

/// A bare key pair, as the service-account issuer has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPair {
    /// PKCS#8 PEM.
    pub key: String,
    /// Service account: PKIX PEM under the label `RSA PUBLIC KEY`, as upstream writes it. SSH: one line.
    pub public: String,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("key", &"(redacted)").field("public", &self.public).finish()
    }
}

pub fn rsa_keypair() -> Result<KeyPair, PkiError> {
    let key = KeyAlgorithm::Rsa2048.generate()?;
    let public = unix(&key.public_key_pem()).replace(" PUBLIC KEY", " RSA PUBLIC KEY");
    Ok(KeyPair { key: unix(&key.serialize_pem()), public })
}

/// A key pair for SSH: PKCS#8 PEM, which OpenSSH reads for ECDSA, and a line for authorized_keys.
pub fn ssh_keypair() -> Result<KeyPair, PkiError> {
    let key = KeyAlgorithm::EcdsaP256.generate()?;
    let (kind, curve) = ("ecdsa-sha2-nistp256", "nistp256");
    let mut blob = Vec::new();
    for part in [kind.as_bytes(), curve.as_bytes(), key.public_key_raw()] {
        blob.extend((part.len() as u32).to_be_bytes());
        blob.extend(part);
    }
    Ok(KeyPair { key: unix(&key.serialize_pem()), public: format!("{kind} {}", STANDARD.encode(blob)) })
}

/// PEM with line feeds only, whatever the encoder writes.
pub(crate) fn unix(pem: &str) -> String {
    pem.replace("\r\n", "\n")
}
