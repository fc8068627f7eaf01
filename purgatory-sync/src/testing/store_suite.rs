use std::collections::HashSet;

use async_trait::async_trait;
use futures::{FutureExt, future::join};

use super::{
    Violation, oid,
    violation::{demand, failed},
};
use crate::{EventStore, Identifier, Needs, Oid};

/// What the suite needs from you to test an event store.
#[async_trait]
pub trait StoreHarness: Send + Sync {
    /// The store.
    type Store: EventStore;

    /// A new, empty store.
    ///
    /// # Cancel safety
    ///
    /// The suite never drops it early.
    async fn fresh(&self) -> Self::Store;

    /// Makes `store` hold an event of `id` that waits for exactly these objects, and gives the name
    /// under which [`saved`](Self::saved) shows it. Every call makes another event, each younger
    /// than the ones before.
    ///
    /// # Cancel safety
    ///
    /// The suite never drops it early.
    async fn hold(&self, store: &Self::Store, id: &Identifier, oids: &[Oid]) -> String;

    /// The names of the events that went, in the order in which they did.
    ///
    /// # Cancel safety
    ///
    /// The suite never drops it early.
    async fn saved(&self, store: &Self::Store) -> Vec<String>;

    /// Makes the next attempt of `store` to save an event fail, and says whether it could be arranged.
    ///
    /// # Cancel safety
    ///
    /// The suite never drops it early.
    async fn fail_next_save(&self, store: &Self::Store) -> bool {
        let _ = store;
        false
    }
}

/// Checks what every [`EventStore`] owes the engine: that needs are complete and only read, that events
/// go when all they wait for is here and not before, in order, once, and that nothing is lost by an
/// error, a cancelled call or another identifier.
///
/// # Errors
///
/// The first [`Violation`] that is found.
///
/// # Cancel safety
///
/// A dropped check is over; the stores that it made are dropped with it.
pub async fn check_event_store<H: StoreHarness>(harness: &H) -> Result<(), Violation> {
    unknown_identifiers_hold_nothing(harness).await?;
    what_is_held_is_shown(harness).await?;
    nothing_goes_early(harness).await?;
    what_is_complete_goes(harness).await?;
    a_release_is_idempotent(harness).await?;
    the_oldest_goes_first(harness).await?;
    identifiers_are_apart(harness).await?;
    any_string_is_an_identifier(harness).await?;
    a_cancelled_call_loses_nothing(harness).await?;
    a_failed_save_loses_nothing(harness).await
}

async fn unknown_identifiers_hold_nothing<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "unknown identifiers hold nothing";
    let store = h.fresh().await;
    let id = Identifier::from("never seen");
    let needs = needs(&store, &id).await?;
    demand!(needs == Needs::default(), RULE, "needs of an unknown identifier are {needs:?}");
    let released = store.release(&id, &[oid(1)]).await.map_err(failed(RULE))?;
    demand!(released.released == 0 && released.held == 0, RULE, "a release did {released:?}");
    let held = held(&store).await?;
    demand!(held.is_empty(), RULE, "an empty store names {held:?} as held");
    Ok(())
}

async fn what_is_held_is_shown<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "what is held is shown";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    h.hold(&store, &id, &[oid(1), oid(2)]).await;
    h.hold(&store, &id, &[oid(2), oid(3)]).await;
    let look = needs(&store, &id).await?;
    demand!(look.held == 2, RULE, "two events are held, needs counts {}", look.held);
    let wanted: HashSet<Oid> = look.wants.iter().flat_map(|want| &want.oids).copied().collect();
    let all = HashSet::from([oid(1), oid(2), oid(3)]);
    demand!(wanted == all, RULE, "three objects are waited for, needs names {wanted:?}");
    let again = needs(&store, &id).await?;
    demand!(again == look, RULE, "two looks with nothing between them differ: {look:?}, {again:?}");
    let held = held(&store).await?;
    demand!(held == [id], RULE, "one identifier is held, once, and the store names {held:?}");
    Ok(())
}

async fn nothing_goes_early<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "nothing goes early";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    h.hold(&store, &id, &[oid(1), oid(2)]).await;
    for here in [vec![], vec![oid(1)], vec![oid(2)], vec![oid(2), oid(9)]] {
        let released = store.release(&id, &here).await.map_err(failed(RULE))?;
        demand!(released.released == 0, RULE, "an event went with only {here:?} here");
        demand!(released.held == 1, RULE, "one event is held, the release says {}", released.held);
    }
    let (held, saved) = (needs(&store, &id).await?.held, h.saved(&store).await);
    demand!(held == 1 && saved.is_empty(), RULE, "held {held}, saved {saved:?}");
    Ok(())
}

async fn what_is_complete_goes<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "what is complete goes";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    let first = h.hold(&store, &id, &[oid(1)]).await;
    let second = h.hold(&store, &id, &[oid(2), oid(3)]).await;
    let released = store.release(&id, &[oid(3), oid(2), oid(8)]).await.map_err(failed(RULE))?;
    let counts = (released.released, released.held);
    demand!(counts == (1, 1), RULE, "one of two is complete, released and held are {counts:?}");
    let saved = h.saved(&store).await;
    demand!(saved == [second.clone()], RULE, "{second} is complete, saved is {saved:?}");
    let look = needs(&store, &id).await?;
    demand!(look.held == 1, RULE, "one event is left, needs counts {}", look.held);
    let released = store.release(&id, &[oid(1)]).await.map_err(failed(RULE))?;
    let counts = (released.released, released.held);
    demand!(counts == (1, 0), RULE, "the last one is complete, released and held are {counts:?}");
    let saved = h.saved(&store).await;
    demand!(saved.contains(&first), RULE, "{first} is complete, saved is {saved:?}");
    let (look, held) = (needs(&store, &id).await?, held(&store).await?);
    demand!(look.held == 0, RULE, "all went, needs counts {}", look.held);
    demand!(held.is_empty(), RULE, "all went, and {held:?} is named as held");
    Ok(())
}

async fn a_release_is_idempotent<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "a release is idempotent";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    h.hold(&store, &id, &[oid(1)]).await;
    store.release(&id, &[oid(1)]).await.map_err(failed(RULE))?;
    let again = store.release(&id, &[oid(1)]).await.map_err(failed(RULE))?;
    demand!(again.released == 0, RULE, "the second release let {} go", again.released);
    let saved = h.saved(&store).await;
    demand!(saved.len() == 1, RULE, "one event was saved as {saved:?}");
    Ok(())
}

async fn the_oldest_goes_first<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "the oldest goes first";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    let mut names = Vec::new();
    for number in [4, 2, 3, 1] {
        names.push(h.hold(&store, &id, &[oid(number)]).await);
    }
    let here = [oid(1), oid(2), oid(3), oid(4)];
    store.release(&id, &here).await.map_err(failed(RULE))?;
    let saved = h.saved(&store).await;
    demand!(saved == names, RULE, "by age it is {names:?}, saved was {saved:?}");
    Ok(())
}

async fn identifiers_are_apart<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "identifiers are apart";
    let store = h.fresh().await;
    let (a, b) = (Identifier::from("a"), Identifier::from("A"));
    h.hold(&store, &a, &[oid(1)]).await;
    h.hold(&store, &b, &[oid(1)]).await;
    // At the same time, as the engine does for different identifiers.
    let here = [oid(1)];
    let (released, look) = join(store.release(&b, &here), store.needs(&a)).await;
    let released = released.map_err(failed(RULE))?;
    demand!(released.released == 1, RULE, "of {b:?} one event is complete, {released:?}");
    let look = look.map_err(failed(RULE))?;
    demand!(look.held == 1, RULE, "{a:?} holds one event, needs counts {}", look.held);
    let look = needs(&store, &a).await?;
    demand!(look.held == 1, RULE, "a release of {b:?} took an event of {a:?}");
    Ok(())
}

async fn any_string_is_an_identifier<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "any string is an identifier";
    let store = h.fresh().await;
    let long = "x".repeat(1_000);
    let odd = ["", ".", "..", "a/b", "../../etc", "a:b", "A", "a.git", "ä 🦀", "a\nb\0", &long];
    for text in odd {
        h.hold(&store, &text.into(), &[oid(1)]).await;
    }
    for text in odd {
        let look = needs(&store, &text.into()).await?;
        demand!(look.held == 1, RULE, "{text:?} holds one event, needs counts {}", look.held);
    }
    let held: HashSet<Identifier> = held(&store).await?.into_iter().collect();
    demand!(held.len() == odd.len(), RULE, "{} are held, the store names {held:?}", odd.len());
    Ok(())
}

async fn a_cancelled_call_loses_nothing<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "a cancelled call loses nothing";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    h.hold(&store, &id, &[oid(1)]).await;
    // Polled once, then dropped. Whatever a call did by then has to be whole.
    drop(store.needs(&id).now_or_never());
    drop(store.release(&id, &[oid(1)]).now_or_never());
    drop(store.held_identifiers().now_or_never());
    store.release(&id, &[oid(1)]).await.map_err(failed(RULE))?;
    let saved = h.saved(&store).await;
    demand!(!saved.is_empty(), RULE, "the event is neither held nor saved");
    let held = needs(&store, &id).await?.held;
    demand!(held == 0, RULE, "the event is complete and still held");
    Ok(())
}

async fn a_failed_save_loses_nothing<H: StoreHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "a failed save loses nothing";
    let (store, id) = (h.fresh().await, Identifier::from("a"));
    let name = h.hold(&store, &id, &[oid(1)]).await;
    if !h.fail_next_save(&store).await {
        return Ok(());
    }
    let failed_release = store.release(&id, &[oid(1)]).await;
    demand!(
        failed_release.is_err(),
        RULE,
        "the save failed and the release says {failed_release:?}"
    );
    let held = needs(&store, &id).await?.held;
    demand!(held == 1, RULE, "the save failed and the event is not held any more");
    store.release(&id, &[oid(1)]).await.map_err(failed(RULE))?;
    let saved = h.saved(&store).await;
    demand!(saved == [name], RULE, "the second release has to save it, saved is {saved:?}");
    Ok(())
}

async fn needs<S: EventStore>(store: &S, id: &Identifier) -> Result<Needs, Violation> {
    store.needs(id).await.map_err(failed("needs answers"))
}

async fn held<S: EventStore>(store: &S) -> Result<Vec<Identifier>, Violation> {
    store.held_identifiers().await.map_err(failed("held_identifiers answers"))
}
