//! What the relay says about itself: NIP-11, with what GRASP-01 adds.

use serde_json::{Value, json};

use super::{
    limits::{MAX_AHEAD, MAX_SUBSCRIPTION_ID},
    shared::Shared,
};

/// The document that `Accept: application/nostr+json` asks for.
pub(super) fn document(shared: &Shared) -> Value {
    let limits = shared.limits();
    let mut document = json!({
        "name": format!("ngit-purgatory at {}", shared.ours()),
        "description": "A relay and git server: git events are served once their git data is here.",
        "supported_nips": [1, 9, 11, 34, 40, 45, 77],
        "supported_grasps": ["GRASP-01"],
        "repo_acceptance_criteria":
            "Announcements that list this service in `clone` and in `relays`.",
        "software": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "limitation": {
            "max_message_length": limits.message_bytes(),
            "max_subscriptions": limits.subscriptions,
            "max_limit": limits.results,
            "default_limit": limits.results,
            "max_subid_length": MAX_SUBSCRIPTION_ID,
            "max_event_tags": limits.event.max_tags,
            "max_content_length": limits.event.max_bytes,
            "created_at_upper_limit": MAX_AHEAD.as_secs(),
            "auth_required": false,
            "payment_required": false,
            "restricted_writes": true,
        },
    });
    if let (Some(owner), Some(fields)) = (shared.owner(), document.as_object_mut()) {
        fields.insert("pubkey".to_owned(), owner.to_hex().into());
    }
    document
}
