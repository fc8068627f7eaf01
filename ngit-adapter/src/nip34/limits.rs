/// How large an event may be before anything of it is used.
///
/// | field | default | why |
/// |---|---|---|
/// | `max_bytes` | 1 MiB | a state with 900 refs has over 64 KiB, one with 10,000 refs fits |
/// | `max_tags` | 10,000 | a state has one tag per ref |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// The most bytes of an event as JSON.
    pub max_bytes: usize,
    /// The most tags of an event.
    pub max_tags: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self { max_bytes: 1_048_576, max_tags: 10_000 }
    }
}
