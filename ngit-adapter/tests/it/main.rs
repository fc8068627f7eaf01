//! The tests of the adapter, one file per behaviour.
#![allow(clippy::disallowed_methods, reason = "tests of processes and servers measure real time")]

mod smart_http;
mod support;
mod support_server;
