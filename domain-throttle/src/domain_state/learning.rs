use super::DomainState;
use crate::{Endpoint, Feedback, Grant, Settled, moment::Moment, pause::LONGEST_RETRY_AFTER};

impl<W> DomainState<W> {
    /// Takes a feedback to heart: the rule L10.
    pub(super) fn learn(
        &mut self,
        now: Moment,
        grant: &Grant,
        at: &Endpoint,
        feedback: Feedback,
    ) -> Settled {
        if self.rare.is_none()
            && matches!(feedback, Feedback::Ok | Feedback::Failed | Feedback::Unused)
        {
            return Settled::default();
        }
        let next_grant = self.grants + 1;
        let window = self.limits.window;
        let pauses = &mut self.rare.get_or_insert_default().pauses;
        let endpoint_paused =
            pauses.report(now, at, feedback, grant.number, grant.probe, next_grant);
        let domain_paused = match feedback {
            Feedback::RetryAfter(delay) if !delay.is_zero() => {
                let delay = delay.min(LONGEST_RETRY_AFTER);
                let key = &mut self.keys[grant.key];
                let until = now.saturating_add(delay);
                key.held_until = Some(until);
                pauses.holds.insert((until, grant.key));
                pauses.retry_after(now, &key.name, delay, window, next_grant)
            }
            _ => None,
        };
        Settled { domain_paused, endpoint_paused }
    }
}
