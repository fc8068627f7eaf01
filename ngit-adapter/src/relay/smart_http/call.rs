use std::path::PathBuf;

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;

use super::SmartHttp;

/// What a request asks for.
pub(super) struct Call {
    pub(super) service: Service,
    pub(super) repository: PathBuf,
    pub(super) protocol: Option<&'static str>,
    pub(super) gzip: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Advertise,
    UploadPack,
}

/// The status of a request that is not served, and why.
pub(super) type Refusal = (StatusCode, &'static str);

pub(super) const NOT_FOUND: Refusal = (StatusCode::NOT_FOUND, "there is no such repository");

const REQUEST_TYPE: &str = "application/x-git-upload-pack-request";

impl SmartHttp {
    /// Reads the head of a request, and finds the repository that it is about.
    pub(super) fn understand(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Call, Refusal> {
        let (path, service) = split_service(uri.path()).ok_or(NOT_FOUND)?;
        let expected = if service == Service::Advertise { Method::GET } else { Method::POST };
        if method != expected {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "this method is not supported here"));
        }
        if service == Service::Advertise {
            let asked =
                uri.query().unwrap_or("").split('&').find_map(|q| q.strip_prefix("service="));
            if asked != Some("git-upload-pack") {
                return Err((
                    StatusCode::FORBIDDEN,
                    "only fetching over smart HTTP is supported: service=git-upload-pack",
                ));
            }
        } else if header(headers, header::CONTENT_TYPE.as_str()) != Some(REQUEST_TYPE) {
            return Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the content type has to be application/x-git-upload-pack-request",
            ));
        }
        let gzip = match header(headers, header::CONTENT_ENCODING.as_str()) {
            None | Some("identity") => false,
            Some("gzip" | "x-gzip") => true,
            Some(_) => {
                return Err((
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "the only content encoding is gzip",
                ));
            }
        };
        let parts = decode_path(path).ok_or(NOT_FOUND)?;
        let repository = (self.locate)(&parts).ok_or(NOT_FOUND)?;
        Ok(Call { service, repository, protocol: protocol(headers), gzip })
    }
}

/// Whether it is the first request of a fetch, of a repository that is here or not.
pub(super) fn asks_for_advertisement(path: &str) -> bool {
    matches!(split_service(path), Some((_, Service::Advertise)))
}

fn split_service(path: &str) -> Option<(&str, Service)> {
    if let Some(repository) = path.strip_suffix("/info/refs") {
        return Some((repository, Service::Advertise));
    }
    path.strip_suffix("/git-upload-pack").map(|repository| (repository, Service::UploadPack))
}

/// The parts of a path, decoded, none of them empty, `.` or `..`.
fn decode_path(path: &str) -> Option<Vec<String>> {
    const MAX_BYTES: usize = 4_096;
    if path.len() > MAX_BYTES {
        return None;
    }
    let decode = |part: &str| {
        let part = percent_decode_str(part).decode_utf8().ok()?.into_owned();
        (!matches!(part.as_str(), "" | "." | "..") && !part.contains('\0')).then_some(part)
    };
    path.strip_prefix('/')?.split('/').map(decode).collect()
}

/// What of `Git-Protocol` is passed on: a version we know, in our own spelling.
fn protocol(headers: &HeaderMap) -> Option<&'static str> {
    let asked = header(headers, "git-protocol")?;
    asked.split(':').find_map(|parameter| match parameter {
        "version=1" => Some("version=1"),
        "version=2" => Some("version=2"),
        _ => None,
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}
