use super::*;

pub(super) async fn the_window_is_never_exceeded(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(100, 30)).await;
    let server = at("https://a.example");
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
    }
    refused(&throttle, &server, "31", "the 31st start of a minute").await?;
    backend.advance(MINUTE - MILLI).await;
    refused(&throttle, &server, "31", "the 31st start just before the minute is over").await?;
    backend.advance(MILLI).await;
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
    }
    refused(&throttle, &server, "31", "the 31st start of the next minute").await
}

pub(super) async fn a_window_counts_from_each_start(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(100, 30)).await;
    let server = at("https://a.example");
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
        backend.advance(Duration::from_secs(1)).await;
    }
    // 30 s later the tokens of a bucket would be back and an aligned window new.
    backend.advance(MINUTE - Duration::from_secs(30)).await;
    for n in 0..30 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Ok);
        refused(&throttle, &server, "x", "a second start for one that left the window").await?;
        backend.advance(Duration::from_secs(1)).await;
    }
    Ok(())
}

pub(super) async fn a_start_counts_from_the_hand_over(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1)).await;
    let server = at("https://a.example");
    granted(&throttle, &server, "a").await?.finish(Feedback::Ok);
    let mut waiters = Waiters::new();
    waiters.add("waiter", &throttle, std::slice::from_ref(&server), "b");
    waiters.settle(backend).await?;
    backend.advance(MINUTE).await;
    backend.advance(Duration::from_millis(500)).await;
    waiters.settle(backend).await?;
    served(&waiters, &["waiter"], "one whose time has come")?;
    waiters.served.clear();
    backend.advance(MINUTE - MILLI).await;
    refused(&throttle, &server, "c", "a start within a minute of the hand-over before").await?;
    backend.advance(MILLI).await;
    granted(&throttle, &server, "c").await.map(drop)
}

pub(super) async fn no_more_are_on_than_may_be(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    let mut permits = Vec::new();
    for n in 0..5 {
        permits.push(granted(&throttle, &server, &n.to_string()).await?);
    }
    refused(&throttle, &server, "6", "a sixth permit").await?;
    refused(&throttle, &at("http://A.example.:8080/x"), "6", "a sixth permit at another port")
        .await?;
    granted(&throttle, &at("https://b.example"), "6").await?.finish(Feedback::Ok);
    for permit in permits.drain(..2) {
        permit.finish(Feedback::Ok);
    }
    backend.advance(Duration::ZERO).await;
    permits.push(granted(&throttle, &server, "6").await?);
    permits.push(granted(&throttle, &server, "7").await?);
    refused(&throttle, &server, "8", "a sixth permit after two came back").await
}

pub(super) async fn waiters_are_no_more_than_may_be(backend: &dyn Backend) -> Outcome {
    const NAMES: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let throttle = backend.throttle(limits(3, 1_000)).await;
    let server = at("https://a.example");
    let mut waiters = Waiters::new();
    for name in NAMES {
        waiters.add(name, &throttle, std::slice::from_ref(&server), name);
    }
    waiters.settle(backend).await?;
    served(&waiters, &NAMES[..3], "as many waiters as may be on")?;
    waiters.served.clear();
    waiters.settle(backend).await?;
    served(&waiters, &NAMES[3..6], "the next three")
}

pub(super) async fn a_key_has_one_permit_of_a_domain(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let (server, other_port) = (at("https://a.example"), at("http://a.example"));
    let permit = granted(&throttle, &server, "key").await?;
    match throttle.try_acquire(&other_port, "key").await {
        Err(Denied::KeyBusy) => {}
        other => return Err(format!("a second permit of a key on a domain: {}", shown(&other))),
    }
    let other = granted(&throttle, &server, "other").await?;
    let elsewhere = granted(&throttle, &at("https://b.example"), "key").await?;
    permit.finish(Feedback::Ok);
    backend.advance(Duration::ZERO).await;
    granted(&throttle, &other_port, "key").await?.finish(Feedback::Ok);
    drop((other, elsewhere));
    Ok(())
}

pub(super) async fn a_denial_names_its_cause_and_its_end(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 2)).await;
    let server = at("https://a.example");
    granted(&throttle, &server, "a").await?.finish(Feedback::Ok);
    let start = backend.now();
    backend.advance(Duration::from_secs(10)).await;
    let permit = granted(&throttle, &server, "a").await?;
    let busy = throttle.check(&server, "a").await;
    let full = throttle.check(&server, "b").await;
    if !matches!((&busy, &full), (Err(Denied::KeyBusy), Err(Denied::Concurrency))) {
        return Err(format!(
            "not the key before concurrency before the window: {busy:?}, {full:?}"
        ));
    }
    permit.finish(Feedback::Ok);
    backend.advance(Duration::ZERO).await;
    let until = match throttle.check(&server, "b").await {
        Err(Denied::Window { until }) => until,
        other => return Err(format!("a full window was answered {other:?}")),
    };
    let off = until
        .saturating_duration_since(start + MINUTE)
        .max((start + MINUTE).saturating_duration_since(until));
    if off > MILLI {
        return Err(format!("the window's end was named {off:?} off"));
    }
    backend.advance(until.saturating_duration_since(backend.now()).saturating_sub(MILLI)).await;
    refused(&throttle, &server, "b", "a start just before the promised end").await?;
    backend.advance(until.saturating_duration_since(backend.now())).await;
    granted(&throttle, &server, "b").await.map(drop)
}

pub(super) async fn a_permit_frees_its_slot_once(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(2, 1_000)).await;
    let server = at("https://a.example");
    let held = granted(&throttle, &server, "held").await?;
    granted(&throttle, &server, "finished").await?.finish(Feedback::Failed);
    drop(granted(&throttle, &server, "dropped").await?);
    let last = granted(&throttle, &server, "last").await?;
    refused(&throttle, &server, "third", "a third permit, freed twice").await?;
    drop((held, last));
    Ok(())
}

pub(super) async fn what_was_not_sent_does_not_count(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 2)).await;
    let server = at("https://a.example");
    for _ in 0..10 {
        granted(&throttle, &server, "a").await?.finish(Feedback::Unused);
    }
    granted(&throttle, &server, "a").await?.finish(Feedback::Failed);
    drop(granted(&throttle, &server, "a").await?);
    refused(&throttle, &server, "a", "a third start after two that were sent").await
}
