//! Certificates: each row of the installer in the trust table is an asset. A leaf is made of its signer, a bundle of its signers.

use crate::given::Given;
use crate::graph::{Asset, Found, Id, Parents};
use crate::store::{Files, one};
use crate::{CreateError, Result, install_config, shape};
use seedling_pki::trust::installer::{BUNDLES, LEAVES, SIGNERS};
use seedling_pki::trust::{Bundle, Cluster, Leaf, Names, Signer, TEN_YEARS};
use seedling_pki::{CertKey, KeyAlgorithm, bundle, check_signer};

pub(crate) const KEY_PARAMETERS: Id = "tls.SignerKeyParams";
pub(crate) const ROOT_CA: Id = "tls.RootCA";
pub(crate) const MACHINE_CONFIG_SERVER: Id = "tls.MCSCertKey";

pub(crate) fn assets() -> Vec<Asset> {
    let mut assets = vec![key_parameters()];
    assets.extend(SIGNERS.iter().map(of_signer));
    assets.extend(LEAVES.iter().map(of_leaf));
    assets.extend(BUNDLES.iter().map(of_bundle));
    assets
}

/// Certificates with their keys: asset and file name.
pub(crate) fn pairs() -> impl Iterator<Item = (Id, &'static str)> {
    let leaves = LEAVES.iter().map(|leaf| (leaf.asset, leaf.file));
    SIGNERS.iter().map(|signer| (signer.asset, signer.file)).chain(leaves)
}

/// All rows of the table: asset and file name.
pub(crate) fn rows() -> impl Iterator<Item = (Id, &'static str)> {
    pairs().chain(BUNDLES.iter().map(|bundle| (bundle.asset, bundle.file)))
}

/// The asset that a file of `tls/` belongs to.
pub(crate) fn asset_of(file: &'static str) -> Id {
    rows().find(|(_, other)| *other == file).map_or(file, |(id, _)| id)
}

/// A pair of the table, by file name.
pub(crate) fn pair(made: &Parents, file: &'static str) -> Result<CertKey> {
    let part = |end: &str| made.file(asset_of(file), &format!("tls/{file}.{end}")).map(str::to_string);
    Ok(CertKey { cert: part("crt")?, key: part("key")? })
}

/// It has no file: upstream takes it for present where the install-config is, and says so.
fn key_parameters() -> Asset {
    let files = |keys: KeyAlgorithm| one("algorithm", &keys.to_string());
    let asset = Asset::new(KEY_PARAMETERS, "Signer Key Parameters", &[], move |p, _| Ok(files(p.run().keys)));
    asset.loaded(move |given, _| {
        let consumed = given.config_on_disk.then(|| install_config::FILE.into()).into_iter().collect();
        let is_there = given.config_on_disk || given.run.options.keys.is_some();
        Ok(is_there.then(|| Found { files: files(given.run.keys), consumed, insisted: false }))
    })
}

fn of_signer(signer: &'static Signer) -> Asset {
    let mut needs = vec![KEY_PARAMETERS];
    // These are made again when the install-config changes.
    needs.extend((signer.validity != TEN_YEARS).then_some(install_config::ID));
    Asset::new(signer.asset, &name(signer.file), &needs, |p, _| {
        Ok(files(signer.file, signer.make(keys(p)?, p.run().options.now)?))
    })
    .loaded(|given, _| own_signer(given, signer))
}

fn of_leaf(leaf: &'static Leaf) -> Asset {
    let of_this_cluster = leaf.names != Names::None || leaf.validity != TEN_YEARS;
    let mut needs = vec![leaf.signer.asset, KEY_PARAMETERS];
    needs.extend(of_this_cluster.then_some(install_config::ID));
    Asset::new(leaf.asset, &name(leaf.file), &needs, move |p, _| {
        let config = if of_this_cluster { Some(p.config()?) } else { None };
        let vips = config.map(shape::api_vips).unwrap_or_default();
        let cluster = config.map(|config| Cluster {
            domain: &config.domain,
            // Of the first network only, as upstream's; the operator's own has all of them.
            service_addresses: vec![config.networks.service_address(1)],
            api_vips: &vips,
            hosts: &[],
        });
        let signer = pair(p, leaf.signer.file)?;
        Ok(files(leaf.file, leaf.make(&signer, cluster.as_ref(), keys(p)?, p.run().options.now)?))
    })
}

fn of_bundle(row: &'static Bundle) -> Asset {
    let needs: Vec<_> = row.signers.iter().map(|signer| signer.asset).collect();
    Asset::new(row.asset, &name(row.file), &needs, |p, _| {
        let cert = |signer: &&Signer| p.file(signer.asset, &format!("tls/{}.crt", signer.file));
        let signers = row.signers.iter().map(cert).collect::<Result<Vec<_>, _>>()?;
        Ok(one(&format!("tls/{}.crt", row.file), &bundle(&signers)))
    })
}

fn name(file: &str) -> String {
    format!("Certificate ({file})")
}

fn keys(made: &Parents) -> Result<KeyAlgorithm> {
    Ok(made.file(KEY_PARAMETERS, "algorithm")?.parse().unwrap_or_default())
}

fn files(file: &str, pair: CertKey) -> Files {
    [(format!("tls/{file}.crt"), pair.cert), (format!("tls/{file}.key"), pair.key)].into()
}

fn own_signer(given: &Given, signer: &Signer) -> Result<Option<Found>> {
    if !given.run.options.own_signers {
        return Ok(None);
    }
    let [cert, key] = ["crt", "key"].map(|end| format!("tls/{}.{end}", signer.file));
    let wrong = |file: &str, why: &str| Err(CreateError::OwnSigner { file: file.into(), why: why.into() });
    let pair = match (given.store.read(&cert)?, given.store.read(&key)?) {
        (Some(cert), Some(key)) => CertKey { cert, key },
        (None, None) => return Ok(None),
        (Some(_), None) => return wrong(&key, "is missing, and its certificate is there"),
        (None, Some(_)) => return wrong(&cert, "is missing, and its key is there"),
    };
    if let Err(error) = check_signer(&pair, given.run.options.now) {
        return wrong(&cert, &error.to_string());
    }
    Ok(Some(Found { files: files(signer.file, pair), consumed: vec![], insisted: true }))
}
