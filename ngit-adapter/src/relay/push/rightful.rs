//! R7: which pushes are accepted. Pure: it is told what is here and what was signed.

use std::collections::{BTreeMap, HashSet};

use nostr::event::EventId;
use purgatory_sync::Oid;

use super::commands::{Command, PushedRef};
use crate::{RefName, StateRefs, store::RightfulState};

/// What is known when a push comes.
pub(super) struct Known {
    /// The branches, tags and pull requests that are in the repository.
    pub(super) here: BTreeMap<String, Oid>,
    /// The states that have authority over it, newest first.
    pub(super) states: Vec<RightfulState>,
    /// The commits that known pull requests to this repository name; none for one to another repository.
    pub(super) tips: BTreeMap<EventId, Option<Oid>>,
}

/// What an accepted push does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The state that it brings the repository to, if it is about branches and tags.
    pub(super) state: Option<StateRefs>,
    /// Commits of pull requests that are known.
    pub(super) pull_requests: Vec<(EventId, Oid)>,
    /// Commits of pull requests that nobody has seen yet.
    pub(super) placeholders: Vec<(EventId, Oid)>,
}

/// Why each command of a refused push is refused, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) Vec<String>);

const OTHER: &str = "not done, because of the other refs of this push";

/// Whether a push brings the repository to a state that was signed by somebody with authority.
///
/// It is accepted or refused as a whole.
pub(super) fn judge(known: &Known, commands: &[Command]) -> Result<Plan, Refused> {
    let mut reasons = vec![None; commands.len()];
    let mut names = HashSet::new();
    for (command, reason) in commands.iter().zip(&mut reasons) {
        *reason = match &command.name {
            _ if !names.insert(command.name.as_bytes()) => Some("it is named twice".to_owned()),
            name if known.of(name) != command.old => {
                Some("the ref is not what you think it is: fetch first".to_owned())
            }
            PushedRef::State(_) => None,
            PushedRef::PullRequest(id) => pull_request(known, id, command.new),
            PushedRef::Other(_) => {
                Some("only branches, tags and refs/nostr/<event id> are taken".to_owned())
            }
        };
    }
    let mut plan = Plan::default();
    if commands.iter().any(|it| matches!(it.name, PushedRef::State(_))) {
        match closest(known, commands) {
            Ok(state) => plan.state = Some(state),
            Err(why) => {
                for (reason, why) in reasons.iter_mut().zip(why) {
                    *reason = reason.take().or(why);
                }
            }
        }
    }
    if reasons.iter().any(Option::is_some) {
        let told = reasons.into_iter().map(|reason| reason.unwrap_or_else(|| OTHER.to_owned()));
        return Err(Refused(told.collect()));
    }
    for command in commands {
        if let (PushedRef::PullRequest(id), Some(tip)) = (&command.name, command.new) {
            let known = known.tips.contains_key(id);
            let list = if known { &mut plan.pull_requests } else { &mut plan.placeholders };
            list.push((*id, tip));
        }
    }
    Ok(plan)
}

impl Known {
    fn of(&self, name: &PushedRef) -> Option<Oid> {
        let name = name.as_bytes();
        self.here.get(std::str::from_utf8(&name).ok()?).copied()
    }

    /// The states that a push may bring the repository to: those that would move its refs, and the one that did last.
    fn candidates(&self) -> impl Iterator<Item = &RightfulState> {
        let last = self.states.iter().position(|it| it.served && !it.refs.refs.is_empty());
        let upto = last.map_or(self.states.len(), |at| at + 1);
        self.states[..upto].iter()
    }
}

fn pull_request(known: &Known, id: &EventId, new: Option<Oid>) -> Option<String> {
    match (new, known.tips.get(id)) {
        (None, _) => Some("it goes when its event does".to_owned()),
        (Some(_), Some(None)) => Some("the event is about another repository".to_owned()),
        (Some(new), Some(Some(tip))) if new != *tip => {
            Some(format!("the event names another commit: {tip}"))
        }
        (Some(_), _) => None,
    }
}

/// The newest candidate that the push fits; if there is none, what is wrong with each command in the eyes of the one
/// that it fits best.
fn closest(known: &Known, commands: &[Command]) -> Result<StateRefs, Vec<Option<String>>> {
    let mut best: Option<Vec<Option<String>>> = None;
    for state in known.candidates() {
        let wrong: Vec<_> = commands.iter().map(|it| misfit(&state.refs, it)).collect();
        let count = |wrong: &[Option<String>]| wrong.iter().flatten().count();
        if count(&wrong) == 0 {
            return Ok(state.refs.clone());
        }
        if best.as_ref().is_none_or(|best| count(&wrong) < count(best)) {
            best = Some(wrong);
        }
    }
    const NONE: &str = "no state with authority over this repository is known: publish one first";
    let none = || commands.iter().map(|it| is_state(it).then(|| NONE.to_owned())).collect();
    Err(best.unwrap_or_else(none))
}

fn is_state(command: &Command) -> bool {
    matches!(command.name, PushedRef::State(_))
}

/// What a state says against a command.
fn misfit(state: &StateRefs, command: &Command) -> Option<String> {
    let PushedRef::State(name) = &command.name else { return None };
    match (state.refs.get(name), command.new) {
        (Some(signed), Some(new)) if *signed == new => None,
        (Some(signed), _) => Some(format!("the signed state says {signed}")),
        (None, _) if state.left_alone.contains(name) => {
            Some("the signed state gives it no usable value".to_owned())
        }
        (None, Some(_)) => Some("the signed state has no such ref".to_owned()),
        (None, None) => None,
    }
}

/// What a state needs beside what was pushed and is here already.
pub(super) fn lacking(state: &StateRefs, missing: &[Oid]) -> Option<(RefName, Oid)> {
    let missing: HashSet<_> = missing.iter().collect();
    let mut refs = state.refs.iter();
    refs.find(|(_, oid)| missing.contains(oid)).map(|(name, oid)| (name.clone(), *oid))
}
