//! The rules of the crate, one file per behaviour. Names in capitals (D3, D11) are the rules' names.

mod smoke;
