use std::{collections::HashMap, fmt, str::FromStr, sync::Arc, time::Duration};

use crate::{
    Domain, Limits,
    domain::{DomainError, is_address},
};

/// Which domains an override is for: one (`example.org`), or all below one (`*.example.org`).
///
/// Each domain below has a budget of its own. The suffix itself is not below itself. A pattern is
/// read by the parser that reads domains, so all spellings of a host are one pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainPattern {
    domain: Domain,
    below: bool,
}

impl FromStr for DomainPattern {
    type Err = DomainError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let trimmed = input.trim();
        let (name, below) = match trimmed.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (trimmed, false),
        };
        let domain: Domain = name.parse()?;
        if below && is_address(domain.as_str()) {
            return Err(DomainError::new(
                input,
                "nothing is below an IP address; write it without `*.`",
            ));
        }
        Ok(Self { domain, below })
    }
}

impl From<Domain> for DomainPattern {
    fn from(domain: Domain) -> Self {
        Self { domain, below: false }
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.below { "*." } else { "" };
        write!(f, "{star}{}", self.domain)
    }
}

/// Which limits are in force for which domain: the rule L11.
#[derive(Clone, Debug)]
pub(crate) struct Overrides {
    default: Arc<Limits>,
    exact: HashMap<Domain, Arc<Limits>>,
    below: HashMap<Domain, Arc<Limits>>,
    margin: Duration,
}

impl Overrides {
    pub(crate) fn new(margin: Duration) -> Self {
        let default = Arc::new(with_margin(Limits::default(), margin));
        Self { default, exact: HashMap::new(), below: HashMap::new(), margin }
    }

    pub(crate) fn set_default(&mut self, limits: Limits) {
        self.default = Arc::new(with_margin(limits, self.margin));
    }

    pub(crate) fn set(&mut self, pattern: DomainPattern, limits: Limits) {
        let limits = Arc::new(with_margin(limits, self.margin));
        let table = if pattern.below { &mut self.below } else { &mut self.exact };
        table.insert(pattern.domain, limits);
    }

    pub(crate) fn remove(&mut self, pattern: &DomainPattern) {
        let table = if pattern.below { &mut self.below } else { &mut self.exact };
        table.remove(&pattern.domain);
    }

    /// The exact domain before the longest suffix before the default.
    pub(crate) fn limits_of(&self, domain: &str) -> Arc<Limits> {
        let exact = self.exact.get(domain);
        exact.or_else(|| self.longest_suffix(domain)).unwrap_or(&self.default).clone()
    }

    fn longest_suffix(&self, domain: &str) -> Option<&Arc<Limits>> {
        if self.below.is_empty() || is_address(domain) {
            return None;
        }
        let mut rest = domain;
        while let Some((_, suffix)) = rest.split_once('.') {
            if let Some(limits) = self.below.get(suffix) {
                return Some(limits);
            }
            rest = suffix;
        }
        None
    }
}

fn with_margin(limits: Limits, margin: Duration) -> Limits {
    Limits { window: limits.window.saturating_add(margin), ..limits }
}
