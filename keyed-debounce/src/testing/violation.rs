use std::fmt;

/// A rule that a scheduler breaks, and how it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The names of the rules that were being checked, as at the [crate root](crate).
    pub rules: &'static str,
    /// What was checked.
    pub check: &'static str,
    /// What was expected and what was seen.
    pub what: String,
    /// The steps that lead to it, the last one being the one that failed.
    pub steps: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rules, check, what, steps } = self;
        write!(f, "{check} ({rules}): {what}")?;
        for step in steps {
            write!(f, "\n  {step}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}
