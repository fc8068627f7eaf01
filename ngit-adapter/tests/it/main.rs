//! The tests of the adapter, one file per behaviour.
#![allow(clippy::disallowed_methods, reason = "tests of processes and servers measure real time")]

mod demo;
mod fetch_addresses;
mod fetch_checks;
mod fetch_failures;
mod fetch_limits;
mod fetch_packs;
mod fetch_requests;
mod fetch_server;
mod fetch_support;
mod nip34_parse;
mod nip34_verify;
mod objects;
mod objects_folder;
mod paths;
mod refs;
mod smart_http;
mod store_conformance;
mod store_deletion;
mod store_durable;
mod store_expiry;
mod store_lmdb;
mod store_orders;
mod store_release;
mod store_support;
mod store_traps;
mod support;
mod support_events;
mod support_program;
mod support_server;
mod sync_arguments;
mod sync_burst;
mod sync_ending;
mod sync_input;
mod sync_partial;
mod sync_polite;
