//! What a push has to pass, and what it then does (R7).

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use axum::body::Bytes;
use purgatory_sync::{FetchErrorKind, GitFetcher, Oid};
use tokio::{io::AsyncWriteExt, process::ChildStdin, time};

use super::{
    super::shared::Shared,
    commands::{Commands, PushedRef},
    outcome::NotTaken,
    packets::Packets,
    rightful::{self, Known, Plan},
};
use crate::{
    RefKeeper, RepositoryId,
    git::{Failure, PushCheck, PushedPack},
    store::HeldReason,
};

/// How much of a refused push is read on, so that its client reads the reason instead of a broken pipe.
const MAX_DRAINED: u64 = 256 << 20;

/// A push whose commands were read.
pub(super) struct Push {
    pub(super) shared: Arc<Shared>,
    pub(super) repository: RepositoryId,
    pub(super) commands: Commands,
}

impl Push {
    /// Takes it, or not, and gives the report.
    pub(super) async fn run(self, mut packets: Packets) -> Vec<u8> {
        let limit = self.shared.git_limits().overall_timeout;
        let result = time::timeout(limit, self.take(&mut packets)).await;
        let result = result
            .unwrap_or_else(|_| Err(NotTaken::All("the push took longer than it may".to_owned())));
        if result.is_err() {
            drain(&mut packets).await;
        }
        self.log(&result);
        self.report(result)
    }

    async fn take(&self, packets: &mut Packets) -> Result<(), NotTaken> {
        let plan = self.judge().await?;
        let tips: Vec<Oid> = self.commands.all.iter().filter_map(|it| it.new).collect();
        let pack = self.take_pack(packets, &tips).await?;
        if let Some(state) = &plan.state {
            self.check_complete(state, pack.as_ref()).await?;
        }
        if let Some(pack) = pack {
            pack.adopt(self.shared.repositories()).await.map_err(local)?;
        }
        self.apply(&plan).await
    }

    /// R7: whether the push brings the repository to a state with authority.
    async fn judge(&self) -> Result<Plan, NotTaken> {
        let store = self.shared.store();
        let states = store.rightful_states(&self.repository).await.map_err(local)?;
        let here = self.shared.repositories().refs(&self.repository).await.map_err(local)?;
        let mut tips = BTreeMap::new();
        for command in &self.commands.all {
            if let PushedRef::PullRequest(id) = &command.name
                && let Some(tip) = store.pull_request_tip(id).await.map_err(local)?
            {
                let about = store.is_about(id, &self.repository).await.map_err(local)?;
                tips.insert(*id, (about == Some(true)).then_some(tip));
            }
        }
        let known = Known { here, states, tips };
        rightful::judge(&known, &self.commands.all).map_err(|refused| NotTaken::Refs(refused.0))
    }

    /// Takes the pack into quarantine and checks it. None if there is nothing in it.
    async fn take_pack(
        &self,
        packets: &mut Packets,
        tips: &[Oid],
    ) -> Result<Option<PushedPack>, NotTaken> {
        let head = head(packets).await.map_err(|error| NotTaken::All(error.to_string()))?;
        if head.is_empty() || head.get(8..12) == Some(&[0; 4]) {
            return self.check_here(tips).await.map(|()| None);
        }
        let shared = &self.shared;
        let check = PushCheck {
            repositories: shared.repositories(),
            git: shared.fetcher().git(),
            limits: shared.git_limits(),
            removals: shared.removals(),
        };
        let taken =
            check.take(&self.repository, tips, async |stdin| feed(head, packets, stdin).await);
        taken.await.map(Some).map_err(|failure| NotTaken::All(failure.to_string()))
    }

    /// Without a pack, what is pushed has to be here.
    async fn check_here(&self, tips: &[Oid]) -> Result<(), NotTaken> {
        match self.missing(tips).await?.first() {
            None => Ok(()),
            Some(oid) => Err(NotTaken::All(format!("{oid} was not sent, and is not here"))),
        }
    }

    /// A state is applied as a whole, so all that it names has to be here or to have come.
    async fn check_complete(
        &self,
        state: &crate::StateRefs,
        pack: Option<&PushedPack>,
    ) -> Result<(), NotTaken> {
        let oids: Vec<Oid> = state.refs.values().copied().collect();
        let mut missing = self.missing(&oids).await?;
        if let Some(pack) = pack {
            let brought = pack.brings(missing.clone()).await.map_err(local)?;
            missing.retain(|oid| !brought.contains(oid));
        }
        let Some((name, oid)) = rightful::lacking(state, &missing) else { return Ok(()) };
        let why = format!("the signed state needs {name} at {oid} too: push all of it at once");
        Err(NotTaken::Refs(vec![why; self.commands.all.len()]))
    }

    async fn missing(&self, oids: &[Oid]) -> Result<Vec<Oid>, NotTaken> {
        self.shared.fetcher().missing(&self.repository.identifier, oids).await.map_err(local)
    }

    /// Lets go what the push completes, which moves the refs.
    async fn apply(&self, plan: &Plan) -> Result<(), NotTaken> {
        let (shared, repository) = (&self.shared, &self.repository);
        for (event, tip) in &plan.placeholders {
            shared.store().place(*event, repository.clone(), *tip).await.map_err(local)?;
        }
        for (event, tip) in plan.placeholders.iter().chain(&plan.pull_requests) {
            let kept = shared.repositories().keep_pull_request(repository, event, tip).await;
            kept.map_err(local)?;
        }
        shared.store().data_arrived(&repository.identifier);
        let here = shared.wanted_here(&repository.identifier).await.map_err(local)?;
        shared.store().pushed(repository, &here).await.map_err(local)?;
        shared.look_again(&repository.identifier);
        match &plan.state {
            Some(state) => self.check_applied(state).await,
            None => Ok(()),
        }
    }

    /// The refs follow the state that was let go. If it was served before, they may have to be put right.
    async fn check_applied(&self, state: &crate::StateRefs) -> Result<(), NotTaken> {
        if self.is_applied().await? {
            return Ok(());
        }
        let states = self.shared.store().rightful_states(&self.repository).await.map_err(local)?;
        if states.iter().find(|it| it.served).is_some_and(|it| it.refs == *state) {
            let applied = self.shared.repositories().apply_state(&self.repository, state).await;
            applied.map_err(|error| NotTaken::All(error.to_string()))?;
            return Ok(());
        }
        Err(NotTaken::All(self.trouble().await))
    }

    async fn is_applied(&self) -> Result<bool, NotTaken> {
        let here = self.shared.repositories().refs(&self.repository).await.map_err(local)?;
        Ok(self.commands.all.iter().all(|command| {
            let name = command.name.as_bytes();
            let here = std::str::from_utf8(&name).ok().and_then(|name| here.get(name));
            here.copied() == command.new
        }))
    }

    /// Why the state is still held although all of it is here.
    async fn trouble(&self) -> String {
        let held = self.shared.store().held().await.unwrap_or_default();
        let of_this = held.into_iter().filter(|it| it.identifier == self.repository.identifier);
        let trouble = of_this.filter_map(|it| it.reason).find_map(|reason| match reason {
            HeldReason::Trouble(trouble) => Some(trouble),
            _ => None,
        });
        trouble.unwrap_or_else(|| "the refs could not be set".to_owned())
    }
}

/// The first bytes of a pack, with the number of its objects in the last four of twelve.
async fn head(packets: &mut Packets) -> Result<Vec<u8>, super::body::BodyError> {
    let mut head = Vec::new();
    while head.len() < 12 {
        match packets.rest().await? {
            Some(bytes) => head.extend_from_slice(&bytes),
            None => break,
        }
    }
    Ok(head)
}

/// Writes the pack to git as it comes.
async fn feed(head: Vec<u8>, packets: &mut Packets, mut stdin: ChildStdin) -> Result<(), Failure> {
    let mut next = Some(Bytes::from(head));
    while let Some(bytes) = next {
        match stdin.write_all(&bytes).await {
            Ok(()) => {}
            // The child has ended: its exit status says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        next = packets
            .rest()
            .await
            .map_err(|error| Failure::new(FetchErrorKind::Network, error.to_string()))?;
    }
    Ok(())
}

/// Reads on, within limits: a client that is still sending would not read why it was refused.
async fn drain(packets: &mut Packets) {
    let mut left = MAX_DRAINED;
    let reading = async {
        while let Ok(Some(bytes)) = packets.rest().await {
            left = left.saturating_sub(bytes.len() as u64);
            if left == 0 {
                break;
            }
        }
    };
    let _ = time::timeout(Duration::from_secs(60), reading).await;
}

fn local(error: impl std::error::Error + 'static) -> NotTaken {
    let error: &(dyn std::error::Error + 'static) = &error;
    tracing::warn!(error, "a push could not be taken");
    NotTaken::All("something failed on this side, try again later".to_owned())
}
