//! One fetch, from the first request to the pack in its place.

use purgatory_sync::{FetchErrorKind as Kind, FetchRequest, Fetched, Oid};
use tokio_util::task::TaskTracker;

use super::{
    failure::{Failure, quoted},
    fetcher::Shared,
    http::{Remote, Tally},
    http_answer::Body,
    intake::{Base, Intake},
    limits::{MAX_ANSWER, MAX_OIDS},
    objects::sha1,
    protocol::{self, Section},
};

/// One try of one server.
pub(super) struct Attempt<'a> {
    pub(super) shared: &'a Shared,
    pub(super) request: &'a FetchRequest<'a>,
    pub(super) tally: &'a Tally,
    /// What this attempt has to remove in the end. Whoever ends it can wait for that.
    pub(super) removals: &'a TaskTracker,
}

/// What a server says to a request for objects.
enum Answer<'a> {
    /// They come.
    Pack(Body<'a>),
    /// It will not, with its reason: for it, one missing object is enough.
    No(String, Option<Oid>),
}

impl Attempt<'_> {
    /// Asks for all objects at once; if the server will not, finds out which ones it has, and asks for those.
    pub(super) async fn run(self) -> Result<Fetched, Failure> {
        let (asked, later) = self.what_to_ask()?;
        let remote = self.shared.http.discover(self.request.url, self.tally).await?;
        let base = Base::look(&self.shared.repositories, self.request).await?;
        let (reason, named) = match self.ask(&remote, &asked, &base).await? {
            Answer::Pack(body) => {
                let received = self.intake(&base).take(body, &asked, &asked).await?;
                return Ok(self.fetched(received, later));
            }
            Answer::No(reason, named) => (reason, named),
        };
        let present = match remote.can.can_be_probed {
            true => self.probe(&remote, &asked).await?,
            false => self.tips_among(&remote, &asked).await?,
        };
        if present.len() == asked.len() && remote.can.can_be_probed {
            let what = format!("the server refuses objects that it says it has: {reason}");
            return Err(Failure::new(Kind::ServerError, what));
        }
        let received = match present.is_empty() {
            true => Vec::new(),
            false => match self.ask(&remote, &present, &base).await? {
                Answer::Pack(body) => self.intake(&base).take(body, &present, &asked).await?,
                Answer::No(reason, _) => {
                    let what = format!("the server refuses objects that it says it has: {reason}");
                    return Err(Failure::new(Kind::ServerError, what));
                }
            },
        };
        let mut again = later;
        if !remote.can.can_be_probed {
            again.extend(worth_another_try(&asked, &received, named));
        }
        Ok(self.fetched(received, again))
    }

    /// What is asked for now, and what is too much for one request.
    fn what_to_ask(&self) -> Result<(Vec<Oid>, Vec<Oid>), Failure> {
        let mut asked: Vec<Oid> =
            self.request.oids.iter().copied().filter(|oid| sha1(oid).is_some()).collect();
        if asked.is_empty() {
            return Err(Failure::unsupported("SHA-256 is not supported"));
        }
        let later = asked.split_off(asked.len().min(MAX_OIDS));
        Ok((asked, later))
    }

    fn intake<'b>(&'b self, base: &'b Base) -> Intake<'b> {
        let Self { shared, request, removals, .. } = self;
        Intake { shared, request, removals, base }
    }

    fn fetched(&self, received: Vec<Oid>, ask_again: Vec<Oid>) -> Fetched {
        let (requests, bytes) = (self.tally.requests(), self.tally.bytes());
        Fetched { received, ask_again, requests, bytes }
    }

    /// Asks for `wants`, all or nothing.
    async fn ask(
        &self,
        remote: &Remote,
        wants: &[Oid],
        base: &Base,
    ) -> Result<Answer<'_>, Failure> {
        let request = protocol::fetch(remote.can, wants, &base.haves);
        let most = self.shared.limits.pack_answer();
        let mut body = self.shared.http.post(remote, request, most, self.tally).await?;
        let Some(line) = body.packet().await? else {
            return Err(Failure::corrupt("the server's answer is empty"));
        };
        let line = line.as_slice().unwrap_or_default();
        if let Some(text) = protocol::error_text(line) {
            let answer = Answer::No(quoted(text), named(text, wants));
            body.finish().await;
            return Ok(answer);
        }
        match protocol::section(line) {
            Some(Section::Packfile) => Ok(Answer::Pack(body)),
            Some(Section::ShallowInfo) => {
                Err(Failure::new(Kind::Shallow, "the server's repository is shallow"))
            }
            _ => Err(Failure::corrupt("the server's answer has no pack")),
        }
    }

    /// Asks which of `asked` the server has. What is not acknowledged may be there all the same, if it is the parent of something
    /// that is: then it comes along.
    async fn probe(&self, remote: &Remote, asked: &[Oid]) -> Result<Vec<Oid>, Failure> {
        let request = protocol::probe(remote.can, asked);
        let mut body = self.shared.http.post(remote, request, MAX_ANSWER, self.tally).await?;
        let mut said = std::collections::HashSet::new();
        let mut begun = false;
        while let Some(line) = body.packet().await? {
            let Some(line) = line.as_slice() else { break };
            if let Some(text) = protocol::error_text(line) {
                let what = format!("the server cannot be probed: {}", quoted(text));
                return Err(Failure::new(Kind::ServerError, what));
            }
            match protocol::section(line) {
                Some(Section::Acknowledgments) if !begun => begun = true,
                Some(_) => return Err(Failure::corrupt("the server's answer is out of order")),
                None => said.extend(protocol::acknowledged(line)),
            }
        }
        body.finish().await;
        if !begun {
            return Err(Failure::corrupt("the server's answer has no acknowledgments"));
        }
        Ok(asked.iter().copied().filter(|oid| said.contains(oid)).collect())
    }

    /// Which of `asked` the server lists as tips of its refs.
    async fn tips_among(&self, remote: &Remote, asked: &[Oid]) -> Result<Vec<Oid>, Failure> {
        if !remote.can.lists_refs {
            return Ok(Vec::new());
        }
        let request = protocol::list_refs(remote.can);
        let mut body = self.shared.http.post(remote, request, MAX_ANSWER, self.tally).await?;
        let mut listed = std::collections::HashSet::new();
        while let Some(line) = body.packet().await? {
            let Some(line) = line.as_slice() else { break };
            listed.extend(protocol::listed(line).filter(|oid| asked.contains(oid)));
        }
        body.finish().await;
        Ok(asked.iter().copied().filter(|oid| listed.contains(oid)).collect())
    }
}

/// What is left to ask for from a server that cannot be probed: all but what it gave, and what it named as missing.
///
/// If it named nothing that it was asked for, it would not be a smaller question, and there is none.
fn worth_another_try(asked: &[Oid], received: &[Oid], named: Option<Oid>) -> Vec<Oid> {
    let Some(named) = named else { return Vec::new() };
    asked.iter().copied().filter(|oid| *oid != named && !received.contains(oid)).collect()
}

/// The object that a refusal names, if it is one of those that were asked for. It is a hint and no more: the text is
/// the server's.
fn named(text: &[u8], wants: &[Oid]) -> Option<Oid> {
    text.split(|byte| !byte.is_ascii_hexdigit())
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .find(|oid| wants.contains(oid))
}
