//! Git protocol v2, as far as a fetch of named objects needs it. Nothing here reads or writes but memory.

mod advertisement;
mod packets;
mod request;
mod response;

pub(super) use advertisement::{Advertisement, NotSupported, Reading};
pub(super) use packets::Packets;
pub(super) use request::{fetch, list_refs, probe};
pub(super) use response::{
    Band, Section, acknowledged, band, error_text, listed, pack_objects, section,
};

#[cfg(test)]
mod tests;
