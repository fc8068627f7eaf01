//! An event store of your own: what the port asks for, over a map. Then the suite that tests it.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin sync_own_store

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use purgatory_sync::{
    EventStore, Identifier, Needs, Oid, Origin, Released, StoreError, Target, Want,
    testing::{StoreHarness, check_event_store},
};

/// An order waits for its parts. Real stores keep this in a database.
type Order = (String, Vec<Oid>);

#[derive(Default)]
struct Orders {
    held: Mutex<BTreeMap<Identifier, Vec<Order>>>,
    sent: Mutex<Vec<String>>,
}

#[async_trait]
impl EventStore for Orders {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        let held = self.held.lock().map_err(|_| StoreError::new("a writer panicked"))?;
        let orders = held.get(id).map_or(&[][..], Vec::as_slice);
        let want = |(name, oids): &Order| Want {
            oids: oids.clone(),
            urls: vec![], // here you say where the parts may be
            own_urls: vec![],
            origin: Origin::Owner,
            target: Target::new(name.as_str()),
        };
        Ok(Needs { held: orders.len(), wants: orders.iter().map(want).collect() })
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        let mut held = self.held.lock().map_err(|_| StoreError::new("a writer panicked"))?;
        let mut sent = self.sent.lock().map_err(|_| StoreError::new("a writer panicked"))?;
        let complete = |order: &&Order| order.1.iter().all(|oid| here.contains(oid));
        let Some(orders) = held.get_mut(id) else { return Ok(Released::default()) };
        let before = sent.len();
        sent.extend(orders.iter().filter(complete).map(|(name, _)| name.clone())); // save,
        orders.retain(|order| !complete(&order)); // and only then let go
        Ok(Released { released: sent.len() - before, held: orders.len() })
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        let held = self.held.lock().map_err(|_| StoreError::new("a writer panicked"))?;
        let waiting = held.iter().filter(|(_, orders)| !orders.is_empty());
        Ok(waiting.map(|(id, _)| id.clone()).collect())
    }
}

struct Harness;

#[async_trait]
impl StoreHarness for Harness {
    type Store = Orders;

    async fn fresh(&self) -> Orders {
        Orders::default()
    }
    async fn hold(&self, store: &Orders, id: &Identifier, oids: &[Oid]) -> String {
        let mut held = store.held.lock().expect("nobody panicked");
        let name = format!("order {} of {id}", held.get(id).map_or(0, Vec::len));
        held.entry(id.clone()).or_default().push((name.clone(), oids.to_vec()));
        name
    }
    async fn saved(&self, store: &Orders) -> Vec<String> {
        store.sent.lock().expect("nobody panicked").clone()
    }
}

#[tokio::main]
async fn main() {
    check_event_store(&Harness).await.expect("the store keeps what the engine needs");
    println!("the store keeps what the engine needs");
}
