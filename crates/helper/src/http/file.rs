//! One file as a response, streamed; HEAD and ranges come with it.

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::path::Path;
use tower_http::services::ServeFile;

/// Files are tens of megabytes and every read is a trip to another thread: large chunks.
const CHUNK: usize = 1 << 20;

pub(crate) async fn serve_file(path: &Path, request: Request) -> Response {
    // Folders open like files and fail only when read.
    if !tokio::fs::metadata(path).await.is_ok_and(|m| m.is_file()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    match ServeFile::new(path).with_buf_chunk_size(CHUNK).try_call(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read a file to serve");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
