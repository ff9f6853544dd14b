//! Any path, header and body: no name leaves its folder, and a part of a file is that part.
#![no_main]

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use seedling_helper::http::{is_file_name, serve_file};
use seedling_helper::registry::{Target, parse};
use seedling_ignition::translate::negotiate;
use seedling_types::boot::Report;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use tokio::runtime::Runtime;

const FILE: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        paths(text);
        let _ = negotiate(Some(text));
    }
    part(data);
    let _ = serde_json::from_slice::<Report>(data);
});

fn paths(text: &str) {
    let folder = Path::new("/folder");
    if is_file_name(text) {
        assert_eq!(folder.join(text).parent(), Some(folder));
        assert!(!text.contains('/') && text != "..");
    }
    if let Ok(Target::Blob(digest) | Target::Manifest(digest)) = parse(text) {
        assert_eq!(digest.file(folder).components().count(), 5, "folder, blobs, algorithm, digest below /");
    }
}

/// What a range asks for is what comes, and its headers say which part.
fn part(range: &[u8]) {
    static SITE: OnceLock<(Runtime, tempfile::NamedTempFile)> = OnceLock::new();
    let (runtime, file) = SITE.get_or_init(|| {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(FILE).expect("its contents");
        (tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"), file)
    });
    let Ok(request) = Request::get("/").header("range", range).body(Body::empty()) else { return };
    let response = runtime.block_on(serve_file(file.path(), request));
    let (head, body) = response.into_parts();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(String::from);
    let body = runtime.block_on(to_bytes(body, 2 * FILE.len())).expect("a whole answer");
    match head.status {
        StatusCode::OK => assert_eq!(body, FILE),
        StatusCode::PARTIAL_CONTENT => {
            let said = header("content-range").expect("which part it is");
            let (first, rest) = said.strip_prefix("bytes ").and_then(|s| s.split_once('-')).expect("a range");
            let (last, all) = rest.split_once('/').expect("of how much");
            let (first, last): (usize, usize) = (first.parse().expect("first"), last.parse().expect("last"));
            assert_eq!((&body[..], all), (&FILE[first..=last], "36"), "{said}");
            assert_eq!(header("content-length"), Some(body.len().to_string()));
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {}
        other => panic!("{other}"),
    }
}
