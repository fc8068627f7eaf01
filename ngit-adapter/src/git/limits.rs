//! What one fetch may take and use up.

use std::time::Duration;

use super::child::ChildLimits;

/// What one fetch may take and use up. Each is a setting; the defaults are those of [`Limits::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take to be there, with the look-up of its name and TLS. Default 10 s.
    pub connect_timeout: Duration,
    /// How long a server may be silent. Default 30 s.
    pub idle_timeout: Duration,
    /// How long a whole fetch may take. Default 10 min.
    pub overall_timeout: Duration,
    /// The most bytes a pack may have. Default 2 GiB.
    pub pack_bytes: u64,
    /// The most bytes one object may have, unpacked. Default 512 MiB.
    pub object_bytes: u64,
    /// The address space of the git that unpacks and checks. Default 1,000,000 KiB.
    pub memory_bytes: u64,
    /// The processor time of the git that unpacks and checks, in whole seconds. Default 5 min.
    pub cpu: Duration,
}

/// The defaults of rule G4, and 5 min of processor time: half of what a fetch may take in all.
impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            overall_timeout: Duration::from_secs(600),
            pack_bytes: 2 << 30,
            object_bytes: 512 << 20,
            memory_bytes: 1_000_000 << 10,
            cpu: Duration::from_secs(300),
        }
    }
}

/// The most object ids in one fetch: with 50 bytes each the request stays under the 1 MiB that web servers
/// commonly allow. What is over it is asked for in another request.
pub(super) const MAX_OIDS: usize = 10_000;

/// The most bytes of an answer that is no pack: an advertisement, acknowledgements, a list of refs.
pub(super) const MAX_ANSWER: u64 = 8 << 20;

/// The most bytes of progress text beside a pack. We ask for none.
pub(super) const MAX_PROGRESS: u64 = 1 << 20;

impl Limits {
    /// What the child that stores a pack may use up. A file may be twice as long as a pack: the objects
    /// that a thin pack builds on are added to it.
    pub(super) fn of_child(&self) -> ChildLimits {
        ChildLimits {
            memory_bytes: self.memory_bytes,
            cpu: self.cpu,
            file_bytes: self.pack_bytes.saturating_mul(2),
        }
    }

    /// The most bytes of the body of an answer that has a pack: packet lines and progress come on top.
    pub(super) fn pack_answer(&self) -> u64 {
        self.pack_bytes.saturating_add(self.pack_bytes / 1024).saturating_add(MAX_ANSWER)
    }
}
