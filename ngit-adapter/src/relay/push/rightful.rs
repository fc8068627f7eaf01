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

#[cfg(test)]
mod tests {
    use nostr::key::{Keys, PublicKey};
    use proptest::prelude::*;

    use super::*;

    fn author() -> PublicKey {
        let secret = "0000000000000000000000000000000000000000000000000000000000000003";
        Keys::parse(secret).expect("a key").public_key()
    }

    fn oid(number: u8) -> Oid {
        Oid::sha1([number + 1; 20])
    }

    fn name(number: u8) -> RefName {
        format!("refs/heads/b{number}").parse().expect("a branch")
    }

    fn state(refs: &[(u8, u8)], served: bool) -> RightfulState {
        let refs = refs.iter().map(|(at, to)| (name(*at), oid(*to))).collect();
        RightfulState { author: author(), refs: StateRefs { refs, ..StateRefs::default() }, served }
    }

    fn known(here: &[(u8, u8)], states: Vec<RightfulState>) -> Known {
        let here = here.iter().map(|(at, to)| (name(*at).as_str().to_owned(), oid(*to))).collect();
        Known { here, states, tips: BTreeMap::new() }
    }

    fn command(at: u8, old: Option<u8>, new: Option<u8>) -> Command {
        Command { name: PushedRef::State(name(at)), old: old.map(oid), new: new.map(oid) }
    }

    fn reason(known: &Known, command: Command) -> String {
        judge(known, &[command]).expect_err("it is refused").0.remove(0)
    }

    /// R5, R7: a push may go to a state that would move the refs, or to the one that did last, and to no older one.
    #[test]
    fn only_states_that_lead_count() {
        let states = vec![state(&[(0, 3)], false), state(&[(0, 2)], true), state(&[(0, 1)], false)];
        let known = known(&[(0, 0)], states);
        for new in [3, 2] {
            let plan = judge(&known, &[command(0, Some(0), Some(new))]).expect("it leads");
            assert_eq!(plan.state.map(|it| it.refs[&name(0)]), Some(oid(new)));
        }
        let why = reason(&known, command(0, Some(0), Some(1)));
        assert_eq!(why, format!("the signed state says {}", oid(3)));
    }

    /// R7: the reasons are those of the state that the push fits best.
    #[test]
    fn the_reasons_are_those_of_the_closest_state() {
        let states = vec![state(&[(0, 5), (1, 5)], false), state(&[(0, 1), (1, 2)], false)];
        let known = known(&[], states);
        let commands = [command(0, None, Some(1)), command(1, None, Some(3))];
        let refused = judge(&known, &commands).expect_err("it fits neither").0;
        assert_eq!(refused, [OTHER.to_owned(), format!("the signed state says {}", oid(2))]);
    }

    #[test]
    fn what_is_stale_or_named_twice_is_refused() {
        let known = known(&[(0, 0)], vec![state(&[(0, 1)], false)]);
        assert!(reason(&known, command(0, None, Some(1))).contains("fetch first"));
        let twice = [command(0, Some(0), Some(1)), command(0, Some(0), Some(1))];
        let refused = judge(&known, &twice).expect_err("it is named twice").0;
        assert_eq!(refused, [OTHER, "it is named twice"]);
        let nobody = Known { states: Vec::new(), ..known };
        assert!(
            reason(&nobody, command(0, Some(0), Some(1))).starts_with("no state with authority")
        );
    }

    proptest! {
        /// R7: a push is accepted if and only if, applied to what is here, each ref that it names is what a leading
        /// state says.
        #[test]
        fn a_push_is_judged_as_by_trying_it(
            here in prop::collection::btree_map(0_u8..3, 0_u8..3, 0..3),
            states in prop::collection::vec(
                (prop::collection::btree_map(0_u8..3, 0_u8..3, 1..3), any::<bool>()), 0..4),
            pushed in prop::collection::btree_map(0_u8..3, prop::option::of(0_u8..3), 1..3),
        ) {
            let pairs = |map: &BTreeMap<u8, u8>| map.iter().map(|(at, to)| (*at, *to)).collect::<Vec<_>>();
            let all = states.iter().map(|(refs, served)| state(&pairs(refs), *served)).collect();
            let known = known(&pairs(&here), all);
            let commands: Vec<_> =
                pushed.iter().map(|(at, new)| command(*at, here.get(at).copied(), *new)).collect();
            let mut after = here.clone();
            for (at, new) in &pushed {
                match new {
                    Some(new) => { after.insert(*at, *new); }
                    None => { after.remove(at); }
                }
            }
            let mut fits = false;
            for (refs, served) in &states {
                fits |= pushed.keys().all(|at| after.get(at) == refs.get(at));
                if *served {
                    break;
                }
            }
            prop_assert_eq!(judge(&known, &commands).is_ok(), fits);
        }
    }
}
