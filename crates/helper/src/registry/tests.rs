use super::*;

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn paths() {
    let digest = || Digest::parse(&format!("sha256:{HEX}")).unwrap();
    let tag = |name: &str, tag: &str| Ok(Target::Tag { name: name.into(), tag: tag.into() });
    let table = [
        ("/v2/".to_string(), Ok(Target::Base)),
        ("/v2".into(), Ok(Target::Base)),
        (format!("/v2/seedling/etcd/manifests/sha256:{HEX}"), Ok(Target::Manifest(digest()))),
        (format!("/v2/seedling/etcd/blobs/sha256:{HEX}"), Ok(Target::Blob(digest()))),
        (format!("/v2/etcd/blobs/sha256:{HEX}"), Ok(Target::Blob(digest()))),
        (format!("/v2/a/b/c/blobs/sha256:{HEX}"), Ok(Target::Blob(digest()))),
        (format!("/v2/blobs/blobs/sha256:{HEX}"), Ok(Target::Blob(digest()))),
        ("/v2/seedling/etcd/manifests/latest".into(), tag("seedling/etcd", "latest")),
        ("/v2/seedling/etcd/manifests/sha256:12".into(), Err(Problem::DigestInvalid)),
        (format!("/v2/x/manifests/md5:{HEX}"), Err(Problem::DigestInvalid)),
        (format!("/v2/x/blobs/sha256:{}", HEX.to_uppercase()), Err(Problem::DigestInvalid)),
        ("/v2/x/blobs/latest".into(), Err(Problem::DigestInvalid)),
        ("/v2/x/blobs/sha256:../../../index.json".into(), Err(Problem::NameInvalid)),
        (format!("/v2/../blobs/sha256:{HEX}"), Err(Problem::NameInvalid)),
        (format!("/v2/Upper/blobs/sha256:{HEX}"), Err(Problem::NameInvalid)),
        (format!("/v2//blobs/sha256:{HEX}"), Err(Problem::NameInvalid)),
        ("/v2/x/tags/list".into(), Err(Problem::Unsupported)),
        ("/v2/x/blobs/uploads/".into(), Err(Problem::Unsupported)),
        ("/".into(), Err(Problem::Unsupported)),
        ("/v1/x".into(), Err(Problem::Unsupported)),
    ];
    for (path, expected) in table {
        assert_eq!(parse(&path), expected, "{path}");
    }
}

#[test]
fn components_are_latest_and_others_have_their_tags() {
    let index = json!({"manifests": [
        {"digest": format!("sha256:{}", "0".repeat(64))},
        {"digest": format!("sha256:{HEX}"), "annotations": {REF_NAME: "etcd"}},
        {"digest": format!("sha256:{}", "1".repeat(64)), "annotations": {REF_NAME: "test/etcd:v4"}},
    ]});
    let find = |name, tag| find_tag(&index, name, tag).map(|d| d.to_string());
    assert_eq!(find("seedling/etcd", "latest"), Some(format!("sha256:{HEX}")));
    assert_eq!(find("seedling/etcd", "v4"), None);
    assert_eq!(find("test/etcd", "v4"), Some(format!("sha256:{}", "1".repeat(64))));
    assert_eq!(find("seedling/pause", "latest"), None);
    assert_eq!(find_tag(&json!({}), "seedling/etcd", "latest"), None);
}

#[test]
fn media_types() {
    assert_eq!(media_type(&json!({"mediaType": "a/b"})), "a/b");
    assert_eq!(media_type(&json!({"manifests": []})), "application/vnd.oci.image.index.v1+json");
    assert_eq!(media_type(&json!({"layers": []})), "application/vnd.oci.image.manifest.v1+json");
}
