/// How a held event came here. It decides how long its identifier waits before it is hunted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// From another relay: its data is elsewhere already. The hunt starts once nothing came for
    /// 500 ms, and after 5 s in any case (both are settings).
    Synced,
    /// From its author, whose push usually follows. The hunt starts after 3 min (a setting), or
    /// sooner if something else asks for it sooner.
    Submitted,
}
