//! The page for a person who runs or visits the relay.

mod html;
mod view;

use super::shared::Shared;

/// The status page, as it is now.
pub(super) async fn status(shared: &Shared) -> String {
    html::render(&view::look(shared).await)
}
