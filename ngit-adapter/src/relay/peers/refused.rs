use std::collections::{HashMap, VecDeque};

use nostr::{
    event::{Event, EventId, Kind},
    types::Timestamp,
};
use purgatory_sync::Identifier;

use super::questions::About;
use crate::nip34::GitEvent;

/// Events that were refused for good, so that they are not asked for again. They count as known when what is here is
/// compared with what a peer has.
#[derive(Debug, Default)]
pub(super) struct Refused {
    events: HashMap<EventId, Note>,
    order: VecDeque<EventId>,
}

#[derive(Debug)]
struct Note {
    kind: Kind,
    created_at: Timestamp,
    identifier: Option<Identifier>,
}

/// How many are remembered.
const MOST: usize = 50_000;

impl Refused {
    /// Remembers a verified event. The oldest one is forgotten for it.
    pub(super) fn note(&mut self, event: &Event) {
        let identifier = GitEvent::read(event).ok().and_then(|it| it.identifier().cloned());
        let note = Note { kind: event.kind, created_at: event.created_at, identifier };
        self.insert(event.id, note);
    }

    fn insert(&mut self, id: EventId, note: Note) {
        if self.events.insert(id, note).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.events.remove(&oldest);
        }
    }

    /// Those that may be among the answers to such a question.
    pub(super) fn about(&self, about: &About) -> Vec<(EventId, Timestamp)> {
        let fits = |note: &Note| match about {
            About::Announcements => note.kind == Kind::GitRepoAnnouncement,
            About::Deletions => note.kind == Kind::EventDeletion,
            About::Repositories(names) => {
                note.kind != Kind::GitRepoAnnouncement
                    && note.identifier.as_ref().is_some_and(|it| names.binary_search(it).is_ok())
            }
        };
        let fitting = self.events.iter().filter(|(_, note)| fits(note));
        fitting.map(|(id, note)| (*id, note.created_at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use nostr::{
        event::{EventBuilder, FinalizeEvent, Tag},
        key::{Keys, SecretKey},
    };

    use super::*;

    #[test]
    fn it_remembers_what_fits_and_does_not_grow() {
        let keys = Keys::new(SecretKey::from_slice(&[5; 32]).unwrap());
        let event = |kind: u16, name: &str| {
            let tag = Tag::parse(["d", name]).unwrap();
            EventBuilder::new(Kind::from(kind), "").tag(tag).finalize(&keys).unwrap()
        };
        let (announcement, state) = (event(30_617, "a"), event(30_618, "a"));
        let mut refused = Refused::default();
        refused.note(&announcement);
        refused.note(&announcement);
        refused.note(&state);
        refused.note(&event(30_618, "b"));
        let found = |about| refused.about(&about).into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(found(About::Announcements), [announcement.id]);
        assert_eq!(found(About::Repositories(vec!["a".into()])), [state.id]);
        assert!(found(About::Deletions).is_empty());
        let mut full = Refused::default();
        for number in 0..MOST + 10 {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_be_bytes());
            let id = EventId::from_byte_array(id);
            let kind = Kind::RepoState;
            full.insert(id, Note { kind, created_at: state.created_at, identifier: None });
        }
        assert_eq!((full.events.len(), full.order.len()), (MOST, MOST));
    }
}
