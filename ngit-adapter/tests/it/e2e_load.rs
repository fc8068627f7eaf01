//! R8, P11, end to end: many clients, many repositories, many git servers. This is the reduced form: `cargo bench -p ngit-adapter
//! --bench load` has 200 clients and 10,000 events, and looks at times and memory.

use std::time::Duration;

use crate::load_support::{EVENTS_EACH, Plan, run};

/// R8, L1, L2: of 400 events of 20 clients about 40 repositories on 10 git servers none is lost, all are served in the
/// end, each repository was fetched in one go, and no server got more than it should.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_under_load_and_no_server_gets_too_much() {
    let plan = Plan {
        clients: 20,
        repositories: 40,
        domains: 10,
        over: Some(Duration::from_secs(4)),
        delay_secs: 5,
        drain: Duration::from_secs(120),
    };
    let report = run(plan).await;
    assert_eq!(report.acknowledged, plan.repositories * EVENTS_EACH, "{:?}", report.refused);
    assert_eq!(report.lost, Vec::<String>::new());
    assert!(report.drained_in.is_some(), "{} are held", report.held);
    assert_eq!(report.served, report.acknowledged);
    assert!(report.most_at_once <= 5, "{} at once", report.most_at_once);
    // An event that came after its repository's first fetch began another one. On a busy machine there are some.
    assert!((40..=80).contains(&report.fetches()), "{}", report.fetches());
}
