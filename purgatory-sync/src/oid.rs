use std::{fmt, str::FromStr};

/// The name of an object by its hash: 40 lower-case hex digits (SHA-1) or 64 (SHA-256).
///
/// Nothing else can be said with it: an `Oid` is safe wherever text from outside is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid {
    // Bytes past the length are zero, so that the derived comparisons are right.
    bytes: [u8; 32],
    length: Length,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Length {
    Sha1 = 20,
    Sha256 = 32,
}

impl Oid {
    /// From the 20 bytes of a SHA-1.
    pub const fn sha1(hash: [u8; 20]) -> Self {
        let mut bytes = [0; 32];
        let mut at = 0;
        while at < 20 {
            bytes[at] = hash[at];
            at += 1;
        }
        Self { bytes, length: Length::Sha1 }
    }

    /// From the 32 bytes of a SHA-256.
    pub const fn sha256(hash: [u8; 32]) -> Self {
        Self { bytes: hash, length: Length::Sha256 }
    }

    /// The bytes of the hash: 20 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(hex: &str) -> Result<Self, Self::Err> {
        let length = match hex.len() {
            40 => Length::Sha1,
            64 => Length::Sha256,
            length => return Err(OidError::Length(length)),
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self { bytes, length })
    }
}

fn digit(byte: u8) -> Result<u8, OidError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(OidError::Digit),
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({self})")
    }
}

/// Why a text is no [`Oid`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OidError {
    /// It has this many bytes.
    #[error("an object id has 40 or 64 hex digits, this text has {0} bytes")]
    Length(usize),
    /// It has a character that is no lower-case hex digit.
    #[error("an object id has only the digits 0-9 and a-f, in lower case")]
    Digit,
}
