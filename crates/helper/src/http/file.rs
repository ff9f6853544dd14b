//! One file as a response, streamed; HEAD and ranges come with it.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tower_http::services::ServeFile;

/// Every read is a trip to another thread, so it is worth some bytes.
const CHUNK: u64 = 256 << 10;
/// Read while others are on their way.
const AHEAD: usize = 3;

pub async fn serve_file(path: &Path, request: Request) -> Response {
    // Folders open like files and fail only when read.
    if !tokio::fs::metadata(path).await.is_ok_and(|m| m.is_file()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let whole = request.method() == Method::GET;
    match ServeFile::new(path).try_call(request).await {
        Ok(response) if whole => match (span(&response), File::open(path)) {
            (Some((start, length)), Ok(file)) => response.map(|_| chunks(file, start, length)),
            _ => response.map(Body::new),
        },
        Ok(response) => response.map(Body::new),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read a file to serve");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// First byte and length of what the response promises; None: it has no part of the file.
fn span<B>(response: &Response<B>) -> Option<(u64, u64)> {
    let header = |name| response.headers().get(name)?.to_str().ok();
    let length = header(CONTENT_LENGTH)?.parse().ok()?;
    match response.status() {
        StatusCode::OK => Some((0, length)),
        StatusCode::PARTIAL_CONTENT => {
            let (start, _) = header(CONTENT_RANGE)?.strip_prefix("bytes ")?.split_once('-')?;
            Some((start.parse().ok()?, length))
        }
        _ => None,
    }
}

/// Memory that chunks are read into, again and again: fresh memory costs more than the reading.
#[derive(Clone, Default)]
struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

/// Goes back to its pool when it was sent.
struct Chunk {
    bytes: Vec<u8>,
    pool: Pool,
}

impl Pool {
    fn read(&self, file: &File, at: u64, length: usize) -> io::Result<Bytes> {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut chunk = Chunk { bytes: before.unwrap_or_default(), pool: self.clone() };
        chunk.bytes.resize(length, 0);
        file.read_exact_at(&mut chunk.bytes, at)?;
        Ok(Bytes::from_owner(chunk))
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

/// Some reads at a time, in order. A file that has become shorter ends the answer early, as the client can see from its length.
fn chunks(file: File, start: u64, length: u64) -> Body {
    let (file, pool, end) = (Arc::new(file), Pool::default(), start + length);
    let reads = (start..end).step_by(CHUNK as usize).map(move |at| {
        let (file, pool) = (file.clone(), pool.clone());
        async move {
            let read = move || pool.read(&file, at, CHUNK.min(end - at) as usize);
            tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
        }
    });
    Body::from_stream(futures::stream::iter(reads).buffered(AHEAD))
}
