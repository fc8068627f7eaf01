use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use purgatory_sync::Identifier;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// One gate per identifier: whoever changes what is known of a repository passes it alone, from the
/// look at the database to the last change. No data lives behind it; it only says whose turn it is.
#[derive(Clone, Default)]
pub(super) struct Gates(Arc<Mutex<HashMap<Identifier, Gate>>>);

struct Gate {
    turn: Arc<AsyncMutex<()>>,
    /// How many are in it or before it. The gate goes with the last one.
    users: usize,
}

impl Gates {
    /// Waits for its turn, in the order of the calls. Dropping the future gives the turn up.
    pub(super) async fn enter(&self, identifier: &Identifier) -> Pass {
        let ticket = self.ticket(identifier);
        let turn = Arc::clone(&ticket.turn).lock_owned().await;
        Pass { _turn: turn, _ticket: ticket }
    }

    fn ticket(&self, identifier: &Identifier) -> Ticket {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates
            .entry(identifier.clone())
            .or_insert_with(|| Gate { turn: Arc::default(), users: 0 });
        gate.users += 1;
        Ticket { gates: self.clone(), identifier: identifier.clone(), turn: Arc::clone(&gate.turn) }
    }
}

/// The turn, until it is dropped.
#[must_use = "the turn ends when this is dropped"]
pub(super) struct Pass {
    // Dropped in this order: the turn goes on before the gate may go.
    _turn: OwnedMutexGuard<()>,
    _ticket: Ticket,
}

struct Ticket {
    gates: Gates,
    identifier: Identifier,
    turn: Arc<AsyncMutex<()>>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut gates = self.gates.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get_mut(&self.identifier) {
            gate.users -= 1;
            if gate.users == 0 {
                gates.remove(&self.identifier);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_gate_goes_with_its_last_user() {
        let gates = Gates::default();
        let id = Identifier::from("a");
        let first = gates.enter(&id).await;
        let waiting = gates.enter(&id);
        let mut waiting = Box::pin(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(futures::poll!(Box::pin(gates.enter(&Identifier::from("b")))).is_ready());
        drop(first);
        let second = waiting.await;
        assert!(futures::poll!(Box::pin(gates.enter(&id))).is_pending());
        drop(second);
        assert!(gates.0.lock().unwrap().is_empty());
    }
}
