//! Versions of git.

use std::fmt;

/// A version of git, as `git version` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GitVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

/// The first patch release of each minor version that has the fixes of July 2025 (CVE-2025-48385 and
/// its companions). Versions in between are mended from the start.
const MENDED: &[(u32, u32)] =
    &[(43, 7), (44, 4), (45, 4), (46, 4), (47, 3), (48, 2), (49, 1), (50, 1)];

impl GitVersion {
    /// A version by its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Reads what `git version` prints, with or without what a distribution adds.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.trim().strip_prefix("git version ")?;
        let numbers = numbers.split_whitespace().next()?;
        let mut parts = numbers.split('.').map(leading_number);
        let major = parts.next()??;
        let minor = parts.next()??;
        let patch = parts.next().flatten().unwrap_or(0);
        Some(Self { major, minor, patch })
    }

    /// Whether git's own releases of this number have security holes that newer ones have not.
    /// Distributions mend holes without a new number.
    pub fn has_known_holes(self) -> bool {
        if self.major != 2 {
            return self.major < 2;
        }
        match MENDED.iter().find(|(minor, _)| *minor == self.minor) {
            Some((_, patch)) => self.patch < *patch,
            None => self.minor < 43,
        }
    }
}

fn leading_number(part: &str) -> Option<u32> {
    let digits = part.find(|c: char| !c.is_ascii_digit()).map_or(part, |end| &part[..end]);
    digits.parse().ok()
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
