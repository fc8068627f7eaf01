//! L4: no interleaving of threads breaks L1 to L3, judged from the server's side.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use domain_throttle::{DomainThrottle, Endpoint, Feedback, ThrottleExt};

use crate::support::{at, limits};

/// What a server sees: who is on, and when each request came.
#[derive(Debug, Default)]
struct Server {
    on: Mutex<HashMap<String, usize>>,
    most_on: AtomicUsize,
    twice: AtomicUsize,
    /// Each start lies between these two looks at the clock.
    starts: Mutex<Vec<(Instant, Instant)>>,
}

impl Server {
    fn begin(&self, key: &str) {
        let mut on = self.on.lock().expect("no panic");
        let of_key = on.entry(key.to_owned()).or_default();
        *of_key += 1;
        self.twice.fetch_max(*of_key, Ordering::Relaxed);
        self.most_on.fetch_max(on.values().sum(), Ordering::Relaxed);
    }

    fn end(&self, key: &str) {
        *self.on.lock().expect("no panic").get_mut(key).expect("it is on") -= 1;
    }
}

/// L2, L3, L4: eight threads hammer one domain by `try_acquire`.
#[test]
fn threads_on_one_domain_never_exceed_its_limits() {
    let throttle =
        DomainThrottle::builder().limits(limits(3, 1_000_000, Duration::from_secs(1))).build();
    let (server, endpoint) = (Arc::new(Server::default()), at("https://h.example"));
    let granted = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for n in 0..8 {
            let (throttle, server, endpoint, granted) = (&throttle, &server, &endpoint, &granted);
            scope.spawn(move || {
                let key = format!("key {}", n % 4);
                for round in 0..2_000 {
                    let Ok(permit) = throttle.try_acquire(endpoint, &key) else { continue };
                    granted.fetch_add(1, Ordering::Relaxed);
                    server.begin(&key);
                    thread::yield_now();
                    server.end(&key);
                    permit.finish(if round % 3 == 0 { Feedback::Unused } else { Feedback::Ok });
                }
            });
        }
    });
    assert!(granted.load(Ordering::Relaxed) > 0);
    assert!(server.most_on.load(Ordering::Relaxed) <= 3);
    assert_eq!(server.twice.load(Ordering::Relaxed), 1);
    // It is not wedged: all of it is there again.
    let all: Vec<_> = (0..3).map(|n| throttle.try_acquire(&endpoint, &n.to_string())).collect();
    assert!(all.iter().all(Result::is_ok));
}

/// L1, L2, L3, L4, L6, L8: tasks on two threads wait for one and for many domains, some give up in
/// the middle. No server sees more than it should, and nobody waits for ever.
#[test]
fn waiting_tasks_on_two_threads_never_exceed_a_limit() {
    let window = Duration::from_millis(100);
    let throttle =
        DomainThrottle::builder().limits(limits(3, 10, window)).margin(window / 2).build();
    let servers: Vec<(Arc<Server>, Endpoint)> =
        (0..4).map(|n| (Arc::default(), at(&format!("https://h{n}.example")))).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime");
    let (served, late) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..200_usize)
            .map(|n| {
                let (throttle, servers) = (throttle.clone(), servers.clone());
                let (served, late) = (served.clone(), late.clone());
                tokio::spawn(async move {
                    let key = format!("key {}", n % 20);
                    // Half of them go to the first server only.
                    let first = if n % 2 == 0 { 0 } else { n % 4 };
                    let at = [servers[first].1.clone(), servers[n % 4].1.clone()];
                    let deadline = Instant::now() + Duration::from_micros(50 * (n as u64 % 7));
                    let far = Instant::now() + Duration::from_secs(300);
                    let by = if n % 5 == 0 { deadline } else { far };
                    let mut wait = pin!(throttle.acquire_any_by(&at, &key, by));
                    let mut before = Instant::now();
                    let permit = poll_fn(|context| {
                        before = Instant::now();
                        wait.as_mut().poll(context)
                    });
                    let permit = permit.await;
                    let after = Instant::now();
                    let Ok(permit) = permit else {
                        late.fetch_add(1, Ordering::Relaxed);
                        assert!(n % 5 == 0, "a wait without an end");
                        return;
                    };
                    let (server, _) = servers
                        .iter()
                        .find(|(_, at)| at == permit.endpoint())
                        .expect("one of them");
                    server.starts.lock().expect("no panic").push((before, after));
                    server.begin(&key);
                    tokio::task::yield_now().await;
                    server.end(&key);
                    served.fetch_add(1, Ordering::Relaxed);
                    if n % 11 == 0 { drop(permit) } else { permit.finish(Feedback::Ok) }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    assert_eq!(served.load(Ordering::Relaxed) + late.load(Ordering::Relaxed), 200);
    for (server, at) in &servers {
        // The margin makes the window half as long again.
        no_window_holds_more_than(10, window + window / 2, &server.starts);
        let in_flight = throttle.counts(at.domain()).map_or(0, |counts| counts.in_flight);
        assert_eq!(in_flight, 0);
        assert!(server.most_on.load(Ordering::Relaxed) <= 3);
        assert_eq!(server.twice.load(Ordering::Relaxed), 1);
    }
    assert_eq!(throttle.waiters(), 0);
}

/// L4, L12: many threads, many domains, few of them remembered: whatever is forgotten in between,
/// no limit is broken.
#[test]
fn threads_on_many_domains_never_exceed_a_limit_while_domains_are_forgotten() {
    let many = limits(1, 1_000_000, Duration::ZERO);
    let throttle = DomainThrottle::builder().limits(many).max_domains(100).build();
    let on: Vec<AtomicUsize> = (0..500).map(|_| AtomicUsize::new(0)).collect();
    let endpoints: Vec<Endpoint> = (0..500).map(|n| at(&format!("https://h{n}.example"))).collect();
    thread::scope(|scope| {
        for n in 0..4_usize {
            let (throttle, on, endpoints) = (&throttle, &on, &endpoints);
            scope.spawn(move || {
                for round in 0..5_000_usize {
                    let at = (round * 7 + n * 13) % 500;
                    if let Ok(permit) = throttle.try_acquire(&endpoints[at], "key") {
                        assert_eq!(on[at].fetch_add(1, Ordering::SeqCst), 0);
                        on[at].fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                }
            });
        }
    });
    assert!(throttle.domains() <= 100);
    let in_flight: u64 = throttle.tallies().iter().map(|tally| tally.in_flight).sum();
    assert_eq!(in_flight, 0);
}

/// L1, L4: four threads hammer one window. Each start lies between two looks at the clock; eleven
/// that lie within less than a window for certain would be one too many.
#[test]
fn threads_on_one_window_never_exceed_it() {
    let window = Duration::from_millis(50);
    let throttle = DomainThrottle::builder().limits(limits(64, 10, window)).build();
    let (endpoint, granted) = (at("https://h.example"), AtomicUsize::new(0));
    let hammer = &|n: usize| {
        let mut starts = Vec::new();
        while granted.load(Ordering::Relaxed) < 60 {
            let before = Instant::now();
            if let Ok(permit) = throttle.try_acquire(&endpoint, &format!("key {n}")) {
                starts.push((before, Instant::now()));
                granted.fetch_add(1, Ordering::Relaxed);
                permit.finish(Feedback::Ok);
            }
        }
        starts
    };
    let starts = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || hammer(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    no_window_holds_more_than(10, window, &Mutex::new(starts));
}

/// Whatever the machine does in between, a start lies between the two looks at the clock around it.
fn no_window_holds_more_than(most: usize, window: Duration, of: &Mutex<Vec<(Instant, Instant)>>) {
    let mut starts = of.lock().expect("no panic").clone();
    starts.sort_by_key(|&(_, after)| after);
    for more in starts.windows(most + 1) {
        let first = more.iter().map(|&(before, _)| before).min().expect("at least one");
        let took = more[most].1 - first;
        assert!(took >= window, "{} starts in {took:?}", most + 1);
    }
}
