use std::error::Error;

use crate::fetching::with_causes;

/// What an implementation of a port does not keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {what}")]
pub struct Violation {
    rule: &'static str,
    what: String,
}

impl Violation {
    pub(crate) fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }

    /// What was demanded.
    pub fn rule(&self) -> &'static str {
        self.rule
    }
}

/// A call that must not fail here did.
pub(crate) fn failed<E: Error>(rule: &'static str) -> impl FnOnce(E) -> Violation {
    move |error| Violation::new(rule, format!("the call failed: {}", with_causes(&error)))
}

/// `Err` with this rule and the formatted text if the condition does not hold.
macro_rules! demand {
    ($holds:expr, $rule:expr, $($what:tt)*) => {
        if !$holds {
            return Err($crate::testing::Violation::new($rule, format!($($what)*)));
        }
    };
}

pub(crate) use demand;
