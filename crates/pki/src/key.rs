//! Private keys: ECDSA by default (small, fast to make), RSA where a peer asks for it.

use crate::{PkiError, Result, rsa};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    KeyPair as Key, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256,
    RsaKeySize,
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyAlgorithm {
    #[default]
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
    Rsa5120,
    Rsa6144,
    Rsa7168,
    Rsa8192,
}

const NAMES: &[(KeyAlgorithm, &str)] = &[
    (KeyAlgorithm::EcdsaP256, "ecdsa-p256"),
    (KeyAlgorithm::EcdsaP384, "ecdsa-p384"),
    (KeyAlgorithm::EcdsaP521, "ecdsa-p521"),
    (KeyAlgorithm::Rsa2048, "rsa-2048"),
    (KeyAlgorithm::Rsa3072, "rsa-3072"),
    (KeyAlgorithm::Rsa4096, "rsa-4096"),
    (KeyAlgorithm::Rsa5120, "rsa-5120"),
    (KeyAlgorithm::Rsa6144, "rsa-6144"),
    (KeyAlgorithm::Rsa7168, "rsa-7168"),
    (KeyAlgorithm::Rsa8192, "rsa-8192"),
];

impl KeyAlgorithm {
    pub(crate) fn generate(self) -> Result<Key> {
        Ok(match self {
            Self::EcdsaP256 => Key::generate_for(&PKCS_ECDSA_P256_SHA256)?,
            Self::EcdsaP384 => Key::generate_for(&PKCS_ECDSA_P384_SHA384)?,
            Self::EcdsaP521 => Key::generate_for(&PKCS_ECDSA_P521_SHA512)?,
            Self::Rsa2048 => Key::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?,
            Self::Rsa3072 => Key::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072)?,
            Self::Rsa4096 => Key::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096)?,
            Self::Rsa5120 => large_rsa(5120)?,
            Self::Rsa6144 => large_rsa(6144)?,
            Self::Rsa7168 => large_rsa(7168)?,
            Self::Rsa8192 => large_rsa(8192)?,
        })
    }
    /// Only a signer's key has to last for years: a leaf of an RSA signer has 2048 bits, as upstream's all have.
    pub(crate) fn of_leaf(self) -> Self {
        if self.is_rsa() { Self::Rsa2048 } else { self }
    }
    fn is_rsa(self) -> bool {
        !matches!(self, Self::EcdsaP256 | Self::EcdsaP384 | Self::EcdsaP521)
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(alg, _)| alg == self).map_or("", |(_, name)| *name))
    }
}

impl FromStr for KeyAlgorithm {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || NAMES.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
        let found =
            NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text.trim())).map(|(alg, _)| *alg);
        found.ok_or_else(|| format!("{text:?} is none of {}", known()))
    }
}

/// rcgen has no name for these sizes, but reads the keys.
fn large_rsa(bits: u16) -> Result<Key> {
    let failed = || PkiError::Key(format!("cannot make an RSA key of {bits} bits"));
    let pkcs1 = rsa::generate(bits).ok_or_else(failed)?;
    let key = aws_lc_rs::rsa::KeyPair::from_der(&pkcs1).map_err(|_| failed())?;
    let der: Pkcs8V1Der = key.as_der().map_err(|_| failed())?;
    Ok(Key::from_pkcs8_der_and_sign_algo(&der.as_ref().into(), &PKCS_RSA_SHA256)?)
}

/// Key encipherment means RSA key transport; an ECDSA key cannot do it.
pub(crate) fn enciphers(key: &Key) -> bool {
    key.algorithm() == &PKCS_RSA_SHA256
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

/// A fresh key, as PKCS#8 PEM.
pub fn new_key(alg: KeyAlgorithm) -> Result<String> {
    Ok(unix(&alg.generate()?.serialize_pem()))
}

pub fn rsa_keypair() -> Result<KeyPair> {
    service_account(&KeyAlgorithm::Rsa2048.generate()?)
}

/// The pair of a key that a user brought.
pub fn keypair_of(pem: &str) -> Result<KeyPair> {
    service_account(&Key::from_pem(pem)?)
}

fn service_account(key: &Key) -> Result<KeyPair> {
    let public = unix(&key.public_key_pem()).replace(" PUBLIC KEY", " RSA PUBLIC KEY");
    Ok(KeyPair { key: unix(&key.serialize_pem()), public })
}

/// A key pair for SSH: PKCS#8 PEM, which OpenSSH reads for ECDSA, and a line for authorized_keys.
pub fn ssh_keypair() -> Result<KeyPair> {
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
/// For ciphers that take 32 bytes.
pub fn random_key() -> [u8; 32] {
    rand::random()
}
