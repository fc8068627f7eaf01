use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    CloneUrl, EventStore, Identifier, Needs, Oid, Origin, Released, StoreError, Target, Want, clock,
};

/// An event store in memory. A clone is another handle of the same store.
///
/// Events are called by names. An event goes when all its objects are here, oldest first; its name is then
/// in [`released`](Self::released).
#[derive(Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// By identifier, then by target, so that wants come in a fixed order.
    announced: HashMap<Identifier, BTreeMap<String, Vec<CloneUrl>>>,
    held: HashMap<Identifier, Vec<HeldEvent>>,
    released: Vec<String>,
    releases: Vec<(Identifier, Vec<Oid>)>,
    looks: usize,
    troubles: Vec<(Call, Trouble)>,
    delay: Duration,
    hook: Option<Hook>,
}

type Hook = Arc<dyn Fn(&MemoryStore, &Identifier) + Send + Sync>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Needs,
    Release,
    HeldIdentifiers,
}

/// What goes wrong in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// It answers with an error.
    Error,
    /// It panics.
    Panic,
    /// It never answers.
    Hang,
}

/// An event that waits for objects.
#[derive(Clone, Debug)]
pub struct HeldEvent {
    name: String,
    target: String,
    oids: Vec<Oid>,
    own_urls: Vec<CloneUrl>,
    origin: Origin,
    blocked: bool,
}

impl HeldEvent {
    /// A state of the repository `target`.
    pub fn state(name: &str, target: &str, oids: impl IntoIterator<Item = Oid>) -> Self {
        Self {
            name: name.to_owned(),
            target: target.to_owned(),
            oids: oids.into_iter().collect(),
            own_urls: Vec::new(),
            origin: Origin::Owner,
            blocked: false,
        }
    }

    /// A pull request for the repository `target`, with URLs of its own.
    pub fn pull_request(
        name: &str,
        target: &str,
        tip: Oid,
        own_urls: impl IntoIterator<Item = CloneUrl>,
    ) -> Self {
        Self {
            own_urls: own_urls.into_iter().collect(),
            origin: Origin::Contributor,
            ..Self::state(name, target, [tip])
        }
    }

    /// The same event, held for another reason: it wants nothing and does not go before
    /// [`MemoryStore::unblock`].
    #[must_use]
    pub fn blocked(mut self) -> Self {
        self.blocked = true;
        self
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says where the objects of a repository are, in this order. Replaces what was said before.
    pub fn announce(
        &self,
        id: impl Into<Identifier>,
        target: &str,
        urls: impl IntoIterator<Item = CloneUrl>,
    ) {
        let urls = urls.into_iter().collect();
        self.lock().announced.entry(id.into()).or_default().insert(target.to_owned(), urls);
    }

    /// Holds an event.
    pub fn hold(&self, id: impl Into<Identifier>, event: HeldEvent) {
        self.lock().held.entry(id.into()).or_default().push(event);
    }

    /// Drops a held event. Says whether it was held.
    pub fn expire(&self, id: impl Into<Identifier>, name: &str) -> bool {
        let mut inner = self.lock();
        let Some(events) = inner.held.get_mut(&id.into()) else { return false };
        let before = events.len();
        events.retain(|event| event.name != name);
        events.len() < before
    }

    /// Takes away what [blocks](HeldEvent::blocked) every event of `id`.
    pub fn unblock(&self, id: impl Into<Identifier>) {
        if let Some(events) = self.lock().held.get_mut(&id.into()) {
            events.iter_mut().for_each(|event| event.blocked = false);
        }
    }

    /// The names of the events that are held, oldest first.
    pub fn held(&self, id: impl Into<Identifier>) -> Vec<String> {
        let inner = self.lock();
        let events = inner.held.get(&id.into()).into_iter().flatten();
        events.map(|event| event.name.clone()).collect()
    }

    /// The names of the events that went, in the order in which they did.
    pub fn released(&self) -> Vec<String> {
        self.lock().released.clone()
    }

    /// Every call of `release`: for whom, and what was said to be here.
    pub fn releases(&self) -> Vec<(Identifier, Vec<Oid>)> {
        self.lock().releases.clone()
    }

    /// How often `needs` was called.
    pub fn looks(&self) -> usize {
        self.lock().looks
    }

    /// The next call of `needs` goes wrong. Several troubles are for several calls.
    pub fn trouble_needs(&self, trouble: Trouble) {
        self.lock().troubles.push((Call::Needs, trouble));
    }

    /// The next call of `release` goes wrong.
    pub fn trouble_release(&self, trouble: Trouble) {
        self.lock().troubles.push((Call::Release, trouble));
    }

    /// The next call of `held_identifiers` goes wrong.
    pub fn trouble_held_identifiers(&self, trouble: Trouble) {
        self.lock().troubles.push((Call::HeldIdentifiers, trouble));
    }

    /// Every call takes this long.
    pub fn slow_down(&self, delay: Duration) {
        self.lock().delay = delay;
    }

    /// Is called before each look, and may change the store.
    pub fn before_each_look(
        &self,
        hook: impl Fn(&MemoryStore, &Identifier) + Send + Sync + 'static,
    ) {
        self.lock().hook = Some(Arc::new(hook));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn suffer(&self, call: Call) -> Result<(), StoreError> {
        let (trouble, delay) = {
            let mut inner = self.lock();
            let at = inner.troubles.iter().position(|(of, _)| *of == call);
            (at.map(|at| inner.troubles.remove(at).1), inner.delay)
        };
        if !delay.is_zero() {
            clock::pause(delay).await;
        }
        match trouble {
            None => Ok(()),
            Some(Trouble::Error) => Err(StoreError::new("as the test wants")),
            Some(Trouble::Panic) => panic!("the store panics, as the test wants"),
            Some(Trouble::Hang) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        let hook = self.lock().hook.clone();
        if let Some(hook) = hook {
            hook(self, id);
        }
        self.lock().looks += 1;
        self.suffer(Call::Needs).await?;
        Ok(self.lock().needs(id))
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        self.suffer(Call::Release).await?;
        let mut inner = self.lock();
        inner.releases.push((id.clone(), here.to_vec()));
        let here: HashSet<&Oid> = here.iter().collect();
        let Some(events) = inner.held.remove(id) else { return Ok(Released::default()) };
        let complete =
            |event: &HeldEvent| !event.blocked && event.oids.iter().all(|oid| here.contains(oid));
        let (going, staying): (Vec<_>, Vec<_>) = events.into_iter().partition(complete);
        let result = Released { released: going.len(), held: staying.len() };
        inner.released.extend(going.into_iter().map(|event| event.name));
        if !staying.is_empty() {
            inner.held.insert(id.clone(), staying);
        }
        Ok(result)
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        self.suffer(Call::HeldIdentifiers).await?;
        let inner = self.lock();
        let held = inner.held.iter().filter(|(_, events)| !events.is_empty());
        let mut ids: Vec<Identifier> = held.map(|(id, _)| id.clone()).collect();
        ids.sort();
        Ok(ids)
    }
}

impl Inner {
    fn needs(&self, id: &Identifier) -> Needs {
        let nothing = Vec::new();
        let events = self.held.get(id).unwrap_or(&nothing);
        let urls = |target: &str| {
            let announced = self.announced.get(id).and_then(|targets| targets.get(target));
            announced.cloned().unwrap_or_default()
        };
        let mut states: BTreeMap<&str, Vec<Oid>> = BTreeMap::new();
        let mut wants = Vec::new();
        for event in events.iter().filter(|event| !event.blocked && !event.oids.is_empty()) {
            if event.origin == Origin::Owner {
                states.entry(&event.target).or_default().extend(&event.oids);
                continue;
            }
            wants.push(Want {
                oids: event.oids.clone(),
                urls: urls(&event.target),
                own_urls: event.own_urls.clone(),
                origin: Origin::Contributor,
                target: Target::new(event.target.as_str()),
            });
        }
        wants.extend(states.into_iter().map(|(target, oids)| Want {
            oids,
            urls: urls(target),
            own_urls: Vec::new(),
            origin: Origin::Owner,
            target: Target::new(target),
        }));
        Needs { held: events.len(), wants }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("MemoryStore")
            .field("held", &inner.held)
            .field("released", &inner.released)
            .finish_non_exhaustive()
    }
}
