//! The parts of a relay that serve git data to others.

mod smart_http;

pub use smart_http::{
    RequestEntry, RequestKind, RequestLog, SmartHttp, SmartHttpLimits, safe_path,
};
