//! Pushes over smart HTTP.
//!
//! The commands of a push are read first and checked against the states that have authority. Only then its pack is
//! read, into quarantine, where it passes the checks that a fetched one passes. What it completes is let go by the
//! same function as after a fetch, and that is what moves the refs: a push never moves one by itself.

mod advertisement;
mod body;
mod commands;
mod outcome;
mod packets;
mod receive;
mod report;
mod rightful;
mod take;

pub(super) use receive::{advertise, receive};
