//! The rules of the crate, one file per behaviour. Names in capitals (D3, D11) are the rules' names.
#![expect(clippy::disallowed_methods, reason = "tests measure time that they steer themselves")]

mod against_the_model;
mod smoke;
