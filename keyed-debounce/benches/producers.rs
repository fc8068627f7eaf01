//! Four threads request, through the lock: a million keys, new and then again.
//!
//! `cargo bench -p keyed-debounce --bench producers [-- ROUNDS]`.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod contenders;

use std::{
    env,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use contenders::{BenchKey, Contender, delay_queue::DelayQueueAndMap, keys::delay};
use keyed_debounce::{Debounce, KeyedDebouncer};

const KEYS: u64 = 1_000_000;
const THREADS: u64 = 4;

fn main() {
    let rounds = env::args().find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let queue = KeyedDebouncer::<String>::new();
        ours.push(times(|key, number| {
            let debounce = Debounce::new(HOUR + delay(number), 2 * HOUR);
            queue.schedule(key, debounce).expect("open");
        }));
        let queue = Mutex::new(DelayQueueAndMap::<String>::new());
        theirs.push(times(|key, number| {
            let now = Duration::from_nanos(number);
            queue.lock().expect("nobody panics").request(key, HOUR + delay(number), now);
        }));
    }
    println!("{THREADS} threads, {KEYS} keys, {}: nanoseconds of wall time", String::NAME);
    println!("                                    schedule    reschedule");
    for (name, times) in [("KeyedDebouncer", &ours), ("Mutex<DelayQueue + HashMap>", &theirs)] {
        let [first, again] = [0, 1].map(|which| median(times.iter().map(|times| times[which])));
        println!("  {name:30}{first:12.0}{again:14.0}");
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// For a request: of a new key, and of one that waits.
fn times(request: impl Fn(String, u64) + Sync) -> [f64; 2] {
    [0, 1].map(|_| {
        let keys: Vec<Vec<(u64, String)>> = (0..THREADS)
            .map(|thread| {
                let numbers = (0..KEYS).filter(|number| number % THREADS == thread);
                numbers.map(|number| (number, String::number(number))).collect()
            })
            .collect();
        let start = Instant::now();
        thread::scope(|scope| {
            for keys in keys {
                let request = &request;
                scope
                    .spawn(move || keys.into_iter().for_each(|(number, key)| request(key, number)));
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "a number of keys")]
        let keys = KEYS as f64;
        start.elapsed().as_secs_f64() * 1e9 / keys
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
