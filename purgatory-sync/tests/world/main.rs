//! The engine in a world that is simulated: hosts, repositories, restarts and crashes, on a clock that is told.
//! Everything is checked from outside, at every instant.
#![allow(clippy::disallowed_methods, reason = "the world reads the paused clock and lets it pass")]
#![allow(missing_docs, reason = "tests")]

mod day;
mod faults;
mod ledger;
mod life;
mod pauses;
mod ports;
mod replay;
mod story;
mod telling;
mod world;

use faults::Fault;
use life::tell_with;
use replay::{how_many, only, secs, story, tell_number, tell_or_shrink};

/// P1-P15, D4-D9, L1-L12: random stories, each told with everything checked at every instant.
///
/// `PURGATORY_STORIES` says how many, `PURGATORY_STORY` tells one alone.
#[test]
fn stories_hold() {
    let numbers = only().map_or(0..how_many(), |number| {
        println!("{}", story(number));
        number..number + 1
    });
    let (mut fetches, mut passes, mut lives, mut longest) = (0, 0, 0, (0, 0));
    for number in numbers.clone() {
        let t0 = std::time::Instant::now();
        let r = tell_or_shrink(number);
        if t0.elapsed().as_millis() > 300 {
            println!("SLOW {number} {:?} {:?}", t0.elapsed(), r.as_ref().ok());
        }
        match r {
            Ok(seen) => {
                (fetches, passes) = (fetches + seen.fetches, passes + seen.passes);
                lives += seen.lives;
                longest = longest.max((seen.longest_wait, number));
            }
            Err(failure) => panic!("{}", failure.report()),
        }
    }
    let (wait, number) = longest;
    println!(
        "{} stories: {lives} lives, {passes} passes, {fetches} requests; the longest wait of an event whose data could be had \
         was {} s, in story {number}",
        numbers.count(),
        secs(wait)
    );
}

/// Every fault that is put in on purpose is found by the stories of the gate, by a check of the rule that it breaks.
#[test]
fn every_fault_is_found() {
    let mut missed = Vec::new();
    for (fault, rules) in Fault::ALL {
        let found = (0..how_many()).find_map(|number| {
            let violation = tell_number(number, Some(fault)).err()?;
            Some((number, violation))
        });
        match found {
            Some((number, violation)) => {
                println!("{fault:?}: story {number}, {violation}");
                if !rules.iter().any(|rule| violation.contains(&format!(": {rule}"))) {
                    missed.push(format!("{fault:?}: {violation}"));
                }
            }
            None => missed.push(format!("{fault:?}: not found")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// P1-P15, D4, D9, L1-L12: a day with 10,000 identifiers on 300 hosts, a burst, two restarts and two crashes. What can be had is
/// had within the hour, what cannot expires, and at the end nothing is remembered.
#[test]
fn a_day_with_ten_thousand_identifiers_on_three_hundred_hosts() {
    let story = day::day(10_000, 300);
    let (hour, ten_seconds) = (3_600_000, 10_000);
    match tell_with(&story, None, hour, Some(ten_seconds)) {
        Ok(seen) => println!(
            "{} lives, {} passes, {} requests; the longest wait of an event whose data could be had was {} s",
            seen.lives,
            seen.passes,
            seen.fetches,
            secs(seen.longest_wait)
        ),
        Err(violation) => panic!("{violation}"),
    }
}
