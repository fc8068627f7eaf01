use std::{borrow::Cow, fmt, sync::Arc};

const SHORT: usize = 22;

/// The name of a key. A short one costs no allocation: most are, and each request brings one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum KeyName {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Arc<str>),
}

impl KeyName {
    pub(crate) fn new(name: &str) -> Self {
        match u8::try_from(name.len()) {
            Ok(len) if name.len() <= SHORT => {
                let mut bytes = [0; SHORT];
                bytes[..name.len()].copy_from_slice(name.as_bytes());
                Self::Short { len, bytes }
            }
            _ => Self::Long(Arc::from(name)),
        }
    }

    #[inline]
    pub(crate) fn is(&self, name: &str) -> bool {
        match self {
            Self::Short { len, bytes } => bytes[..usize::from(*len)] == *name.as_bytes(),
            Self::Long(long) => **long == *name,
        }
    }

    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        matches!(self, Self::Long(_))
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Short { len, bytes } => String::from_utf8_lossy(&bytes[..usize::from(*len)]),
            Self::Long(long) => Cow::Borrowed(long),
        }
    }
}

impl Default for KeyName {
    fn default() -> Self {
        Self::Short { len: 0, bytes: [0; SHORT] }
    }
}

impl fmt::Debug for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}
