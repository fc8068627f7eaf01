use std::collections::HashSet;

use async_trait::async_trait;
use futures::{FutureExt, future::join};

use super::{
    Violation,
    violation::{demand, failed},
};
use crate::{CloneUrl, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Oid, Target};

/// What the suite needs from you to test a fetcher.
#[async_trait]
pub trait FetcherHarness: Send + Sync {
    /// The fetcher.
    type Fetcher: GitFetcher;

    /// A new fetcher to which nothing is here yet, and the servers that it may ask.
    ///
    /// # Cancel safety
    ///
    /// The suite never drops it early.
    async fn fresh(&self) -> Site<Self::Fetcher>;
}

/// A fetcher and its surroundings.
#[derive(Clone, Debug)]
pub struct Site<F> {
    /// The fetcher.
    pub fetcher: F,
    /// The identifier to fetch for.
    pub identifier: Identifier,
    /// A target that the fetcher understands.
    pub target: Target,
    /// A server that answers.
    pub url: CloneUrl,
    /// Objects that it has, two at least, none of which comes along with another.
    pub there: Vec<Oid>,
    /// An object that it does not have.
    pub not_there: Oid,
    /// A URL at which there is no repository.
    pub no_repository: CloneUrl,
    /// A URL at which nobody listens.
    pub unreachable: CloneUrl,
    /// A server that takes a request and never answers.
    pub silent: CloneUrl,
}

/// Checks what every [`GitFetcher`] owes the engine: that it says truly what is here, that what one server
/// has comes whatever else is missing, that its answers end, that failures have their class, and that a
/// cancelled fetch harms nothing.
///
/// # Errors
///
/// The first [`Violation`] that is found.
///
/// # Cancel safety
///
/// A dropped check is over; the fetchers that it made are dropped with it.
pub async fn check_git_fetcher<H: FetcherHarness>(harness: &H) -> Result<(), Violation> {
    missing_is_about_what_was_asked(harness).await?;
    what_is_there_comes(harness).await?;
    what_is_missing_is_no_error(harness).await?;
    part_is_success(harness).await?;
    failures_have_their_class(harness).await?;
    a_cancelled_fetch_harms_nothing(harness).await?;
    fetches_run_side_by_side(harness).await
}

async fn missing_is_about_what_was_asked<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "missing is about what was asked";
    let site = h.fresh().await;
    let none = site.missing(&[]).await?;
    demand!(none.is_empty(), RULE, "nothing was asked, the answer is {none:?}");
    let asked = [site.there[0], site.not_there];
    let missing = site.missing(&asked).await?;
    let all = missing.len() == 2 && asked.iter().all(|oid| missing.contains(oid));
    demand!(all, RULE, "nothing is here, asked was {asked:?}, the answer is {missing:?}");
    Ok(())
}

async fn what_is_there_comes<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "what is there comes";
    let site = h.fresh().await;
    let fetched = site.fetch_all(&site.url, &site.there).await?;
    let missing = site.missing(&site.there).await?;
    demand!(missing.is_empty(), RULE, "the server has {missing:?} and they did not come");
    demand!(fetched.requests > 0, RULE, "objects came, and no request was counted");
    Ok(())
}

async fn what_is_missing_is_no_error<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "what a server does not have is no error";
    let site = h.fresh().await;
    let fetched = site.fetch(&site.url, &[site.not_there]).await.map_err(failed(RULE))?;
    demand!(fetched.received.is_empty(), RULE, "it claims to have brought {:?}", fetched.received);
    let missing = site.missing(&[site.not_there]).await?;
    demand!(missing == [site.not_there], RULE, "the object came from nowhere");
    Ok(())
}

async fn part_is_success<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "part is success";
    let site = h.fresh().await;
    let mut asked = vec![site.not_there];
    asked.extend(&site.there);
    site.fetch_all(&site.url, &asked).await?;
    let missing = site.missing(&asked).await?;
    demand!(missing == [site.not_there], RULE, "all but one are there, missing is {missing:?}");
    Ok(())
}

async fn failures_have_their_class<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    use FetchErrorKind as K;
    const RULE: &str = "failures have their class";
    let site = h.fresh().await;
    let answer = site.fetch(&site.no_repository, &site.there).await;
    // Servers hide what they do not show behind a login.
    let right = matches!(&answer, Err(error) if matches!(error.kind(), K::NotFound | K::Auth));
    demand!(right, RULE, "there is no repository, the answer is {answer:?}");
    let answer = site.fetch(&site.unreachable, &site.there).await;
    let right =
        matches!(&answer, Err(error) if matches!(error.kind(), K::Network | K::Dns | K::Timeout));
    demand!(right, RULE, "nobody listens, the answer is {answer:?}");
    let missing = site.missing(&site.there).await?;
    demand!(missing.len() == site.there.len(), RULE, "failed fetches brought something");
    Ok(())
}

async fn a_cancelled_fetch_harms_nothing<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "a cancelled fetch harms nothing";
    let site = h.fresh().await;
    // Polled once and dropped, at a server that would answer and at one that never does.
    for url in [&site.url, &site.silent] {
        let request = site.request(url, &site.there);
        drop(site.fetcher.fetch(request).now_or_never());
    }
    site.fetch_all(&site.url, &site.there).await?;
    let missing = site.missing(&site.there).await?;
    demand!(missing.is_empty(), RULE, "after a cancelled fetch {missing:?} do not come any more");
    Ok(())
}

async fn fetches_run_side_by_side<H: FetcherHarness>(h: &H) -> Result<(), Violation> {
    const RULE: &str = "fetches run side by side";
    let site = h.fresh().await;
    let (first, rest) = site.there.split_at(1);
    let (one, other) =
        join(site.fetch_all(&site.url, first), site.fetch_all(&site.url, rest)).await;
    one?;
    other?;
    let missing = site.missing(&site.there).await?;
    demand!(missing.is_empty(), RULE, "of two fetches at once {missing:?} did not come");
    Ok(())
}

impl<F: GitFetcher> Site<F> {
    fn request<'a>(&'a self, url: &'a CloneUrl, oids: &'a [Oid]) -> FetchRequest<'a> {
        FetchRequest::new(&self.identifier, url, oids, std::slice::from_ref(&self.target))
    }

    async fn fetch(&self, url: &CloneUrl, oids: &[Oid]) -> Result<Fetched, crate::FetchError> {
        self.fetcher.fetch(self.request(url, oids)).await
    }

    /// Fetches, and again where that is asked for, as the engine does.
    async fn fetch_all(&self, url: &CloneUrl, oids: &[Oid]) -> Result<Fetched, Violation> {
        const RULE: &str = "a fetch tells the truth";
        const SHRINK: &str = "asking again shrinks";
        let mut total = Fetched::default();
        let mut ask = oids.to_vec();
        while !ask.is_empty() {
            let fetched = self.fetch(url, &ask).await.map_err(failed(RULE))?;
            let asked: HashSet<&Oid> = ask.iter().collect();
            let stranger = fetched.received.iter().find(|oid| !asked.contains(oid));
            demand!(stranger.is_none(), RULE, "{stranger:?} was received and not asked for");
            let missing = self.missing(&fetched.received).await?;
            demand!(missing.is_empty(), RULE, "{missing:?} were received and are not here");
            let again: HashSet<&Oid> = fetched.ask_again.iter().collect();
            let less = again.len() < asked.len() && again.is_subset(&asked);
            demand!(less, SHRINK, "asked was {ask:?}, to be asked again is {again:?}");
            total.received.extend(&fetched.received);
            total.requests += fetched.requests;
            ask = fetched.ask_again;
        }
        Ok(total)
    }

    async fn missing(&self, oids: &[Oid]) -> Result<Vec<Oid>, Violation> {
        const RULE: &str = "missing is about what was asked";
        let missing = self.fetcher.missing(&self.identifier, oids).await.map_err(failed(RULE))?;
        let asked: HashSet<&Oid> = oids.iter().collect();
        let known = missing.iter().all(|oid| asked.contains(oid));
        demand!(known, RULE, "asked was {oids:?}, the answer is {missing:?}");
        Ok(missing)
    }
}
