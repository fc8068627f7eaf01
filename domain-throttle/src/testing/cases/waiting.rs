use super::*;

/// Lets each (name, key) stand in line for one server, in this order.
async fn in_line(
    backend: &dyn Backend,
    throttle: &Arc<dyn Throttle>,
    server: &Endpoint,
    line: &[(&'static str, &str)],
) -> Result<Waiters, String> {
    let mut waiters = Waiters::new();
    for (name, key) in line {
        waiters.add(name, throttle, std::slice::from_ref(server), key);
        waiters.settle(backend).await?;
    }
    Ok(waiters)
}

pub(super) async fn nobody_is_overtaken(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "a").await?;
    let line = ["first", "second"].map(|name| (name, name));
    let mut waiters = in_line(backend, &throttle, &server, &line).await?;
    permit.finish(Feedback::Ok);
    refused(&throttle, &server, "newcomer", "a newcomer who overtakes two waiters").await?;
    waiters.settle(backend).await?;
    served(&waiters, &["first"], "the one who came first")
}

pub(super) async fn a_permit_that_comes_back_wakes_the_next(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "a").await?;
    let line = ["first", "second"].map(|name| (name, name));
    let mut waiters = in_line(backend, &throttle, &server, &line).await?;
    permit.finish(Feedback::Failed);
    waiters.settle(backend).await?;
    served(&waiters, &["first"], "the next in line")?;
    // The second is woken by a permit that is dropped.
    waiters.served.clear();
    waiters.settle(backend).await?;
    served(&waiters, &["second"], "the next in line after a drop")
}

pub(super) async fn time_wakes_the_next(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1)).await;
    let server = at("https://a.example");
    granted(&throttle, &server, "a").await?.finish(Feedback::Ok);
    let mut waiters = in_line(backend, &throttle, &server, &[("waiter", "b")]).await?;
    backend.advance(MINUTE - MILLI).await;
    waiters.settle(backend).await?;
    served(&waiters, &[], "nobody just before there is room")?;
    backend.advance(MILLI).await;
    waiters.settle(backend).await?;
    served(&waiters, &["waiter"], "who waits for the window")
}

pub(super) async fn the_first_of_several_domains_wins(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let servers = [at("https://a.example"), at("https://b.example")];
    let one = granted(&throttle, &servers[0], "x").await?;
    let two = granted(&throttle, &servers[1], "y").await?;
    let mut waiters = Waiters::new();
    waiters.add("both", &throttle, &servers, "both");
    waiters.settle(backend).await?;
    waiters.add("second only", &throttle, &servers[1..], "second only");
    waiters.settle(backend).await?;
    one.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["both"], "the one who waits for either")?;
    if waiters.served[0].1.endpoint() != &servers[0] {
        return Err("the permit names another endpoint than the one that was free".to_owned());
    }
    two.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["both", "second only"], "who stands behind a place that was given up")
}

pub(super) async fn keys_take_turns(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "x").await?;
    let line = [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c")];
    let mut waiters = in_line(backend, &throttle, &server, &line).await?;
    permit.finish(Feedback::Ok);
    let mut order = Vec::new();
    for _ in line {
        waiters.settle(backend).await?;
        let one_at_a_time = waiters.names();
        order.extend(&one_at_a_time);
        if one_at_a_time.len() != 1 {
            return Err(format!("{one_at_a_time:?} were served at once, after {order:?}"));
        }
        waiters.served.clear();
    }
    match order[..] {
        ["a1", "b1", "c1", "a2", "b2", "a3"] => Ok(()),
        _ => Err(format!("keys did not take turns: {order:?}")),
    }
}

pub(super) async fn who_cannot_go_keeps_its_place(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(2, 1_000)).await;
    let server = at("https://a.example");
    let busy = granted(&throttle, &server, "a").await?;
    let other = granted(&throttle, &server, "x").await?;
    let line = [("a2", "a"), ("b1", "b"), ("c1", "c")];
    let mut waiters = in_line(backend, &throttle, &server, &line).await?;
    other.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["b1"], "the first whose key is free")?;
    busy.finish(Feedback::Ok);
    waiters.settle(backend).await?;
    served(&waiters, &["b1", "a2"], "the one who was passed over")
}

pub(super) async fn a_dropped_wait_passes_its_permit_on(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "x").await?;
    let line = ["never woken", "woken", "next"].map(|name| (name, name));
    let mut waiters = in_line(backend, &throttle, &server, &line).await?;
    waiters.cancel("never woken");
    permit.finish(Feedback::Ok);
    backend.advance(Duration::ZERO).await;
    if !waiters.is_woken("woken") {
        return Err("a permit went to a wait that was dropped".to_owned());
    }
    waiters.cancel("woken");
    waiters.settle(backend).await?;
    served(&waiters, &["next"], "the next after a wait that was dropped")?;
    waiters.served.clear();
    backend.advance(Duration::ZERO).await;
    granted(&throttle, &server, "y").await.map(drop)
}

pub(super) async fn a_sleeper_blocks_nobody(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(1, 1_000)).await;
    let server = at("https://a.example");
    let permit = granted(&throttle, &server, "x").await?;
    let line = ["sleeper", "next"].map(|name| (name, name));
    let mut waiters = in_line(backend, &throttle, &server, &line).await?;
    permit.finish(Feedback::Ok);
    waiters.settle_but("sleeper", backend).await?;
    served(&waiters, &[], "nobody but the one who is first")?;
    backend.advance(Duration::from_secs(1)).await;
    waiters.settle_but("sleeper", backend).await?;
    served(&waiters, &["next"], "the next, a second later")?;
    // It keeps its place before those who come later.
    waiters.add("later", &throttle, std::slice::from_ref(&server), "later");
    waiters.settle(backend).await?;
    waiters.served.clear();
    waiters.settle(backend).await?;
    served(&waiters, &["sleeper"], "the sleeper, in its place")
}
