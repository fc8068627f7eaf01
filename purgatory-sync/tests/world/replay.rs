//! Stories by number: each is made from its number alone, so that one that fails can be told again.

use std::{env, fmt::Write, time::Duration};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    faults::Fault,
    life::{Seen, tell},
    story::Story,
    telling::stories,
};

/// How many stories are told, if nothing else is said.
const STORIES: u64 = 500;
/// How often a story that fails is told again to make it shorter.
const SHRINKS: u32 = 250;

/// A story that broke a rule.
pub(crate) struct Failure {
    number: u64,
    violation: String,
    shortest: Story,
    because: String,
}

/// How many stories the environment asks for.
pub(crate) fn how_many() -> u64 {
    let text = env::var("PURGATORY_STORIES").ok();
    text.map_or(STORIES, |text| text.parse().expect("PURGATORY_STORIES is a number"))
}

/// The one story that the environment asks for.
pub(crate) fn only() -> Option<u64> {
    let text = env::var("PURGATORY_STORY").ok()?;
    Some(text.parse().expect("PURGATORY_STORY is a number"))
}

fn tree(number: u64) -> impl ValueTree<Value = Story> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    stories().new_tree(&mut runner).expect("stories are never turned down")
}

/// The story of this number.
pub(crate) fn story(number: u64) -> Story {
    tree(number).current()
}

/// Tells the story of this number.
pub(crate) fn tell_number(number: u64, fault: Option<Fault>) -> Result<Seen, String> {
    tell(&story(number), fault)
}

/// Tells the story of this number, and if it fails looks for a shorter one that does.
pub(crate) fn tell_or_shrink(number: u64) -> Result<Seen, Box<Failure>> {
    let mut tree = tree(number);
    let violation = match tell(&tree.current(), None) {
        Ok(seen) => return Ok(seen),
        Err(violation) => violation,
    };
    let (mut shortest, mut because) = (tree.current(), violation.clone());
    for _ in 0..SHRINKS {
        match tell(&tree.current(), None) {
            Err(violation) => {
                (shortest, because) = (tree.current(), violation);
                if !tree.simplify() {
                    break;
                }
            }
            Ok(_) => {
                if !tree.complicate() {
                    break;
                }
            }
        }
    }
    Err(Box::new(Failure { number, violation, shortest, because }))
}

impl Failure {
    /// What a person needs to know, and how to see it again.
    pub(crate) fn report(&self) -> String {
        let Self { number, violation, shortest, because } = self;
        let mut report = String::new();
        let _never = write!(
            report,
            "story {number} breaks a rule\n  {violation}\n\nThe shortest that was found breaks one too\n  {because}\n\n{shortest}\n\
             Tell it again:\n  PURGATORY_STORY={number} cargo test -p purgatory-sync --all-features --test world stories -- --nocapture\n"
        );
        report
    }
}

/// Seconds, for what is printed.
pub(crate) fn secs(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}
