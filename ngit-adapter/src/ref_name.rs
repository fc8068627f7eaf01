use std::{fmt, str::FromStr};

/// A branch or a tag by its full name, `refs/heads/...` or `refs/tags/...`, checked by git's rules.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

/// The most bytes a ref name may have, and one part of it between slashes: file systems take no longer ones.
const MAX_BYTES: usize = 1_024;
const MAX_PART_BYTES: usize = 240;

impl RefName {
    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a branch.
    pub fn is_branch(&self) -> bool {
        self.0.starts_with("refs/heads/")
    }
}

impl FromStr for RefName {
    type Err = RefNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if !name.starts_with("refs/heads/") && !name.starts_with("refs/tags/") {
            return Err(RefNameError::Namespace);
        }
        if name.len() > MAX_BYTES || name.split('/').any(|part| part.len() > MAX_PART_BYTES) {
            return Err(RefNameError::TooLong);
        }
        gix::validate::reference::name(name.into()).map_err(|_| RefNameError::Invalid)?;
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RefName({})", self.0)
    }
}

/// Why a text is no [`RefName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefNameError {
    /// It is neither a branch nor a tag.
    #[error("only refs/heads/ and refs/tags/ are used")]
    Namespace,
    /// It is longer than a file system can hold.
    #[error("a ref name has at most {MAX_BYTES} bytes, and {MAX_PART_BYTES} between slashes")]
    TooLong,
    /// Git's rules do not allow it.
    #[error("git does not allow this ref name")]
    Invalid,
}
