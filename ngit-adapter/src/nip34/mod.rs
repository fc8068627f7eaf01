//! The events of NIP-34, read once at the edge into values that nothing hostile fits into.
//!
//! [`VerifiedEvent`] is an event whose id and signature were checked; nothing else of this crate
//! looks at events. [`GitEvent::read`] makes of it what its kind says: an [`Announcement`], a
//! [`State`], a [`PullRequest`], a [`PullRequestUpdate`], a [`Patch`], or something else.
//!
//! ```
//! use ngit_adapter::nip34::{EventLimits, VerifiedEvent};
//!
//! let line = br#"{"id":"00","kind":1}"#;
//! let error = VerifiedEvent::from_json(line, &EventLimits::default()).unwrap_err();
//! assert!(error.to_string().starts_with("this is no nostr event"));
//! ```
//!
//! What is read leniently: values in one tag or in a repeated tag; a relay hint after an `a`; an
//! owner in upper-case hex. What is not: object ids, which are 40 lower-case hex digits, ref names,
//! which follow git's rules, and clone URLs, which are http or https without userinfo.

mod announcement;
mod coordinate;
mod error;
mod git_event;
mod limits;
mod patch;
mod proposal;
mod pull_request;
mod pull_request_update;
mod state;
mod tags;
mod verified;

pub use announcement::Announcement;
pub use error::{EventError, Nip34Error};
pub use git_event::GitEvent;
pub use limits::EventLimits;
pub use patch::Patch;
pub use proposal::Proposal;
pub use pull_request::PullRequest;
pub use pull_request_update::PullRequestUpdate;
pub use state::State;
pub(crate) use tags::identifier;
pub use verified::VerifiedEvent;
