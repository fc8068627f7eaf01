//! Which relays are peers. It reads no clock and asks nobody.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use nostr::key::PublicKey;
use purgatory_sync::OurDomain;

use super::url::{PeerUrl, Place};

/// How many peers there are on one host, bootstrap relays aside: whoever names a thousand paths of somebody's server
/// makes no crowd of us there.
const MAX_PER_HOST: usize = 4;

/// What is chosen from.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    /// These come first, in order.
    pub(super) bootstrap: &'a [PeerUrl],
    /// What served announcements name, each with the announcement's owner.
    pub(super) named: &'a [(PublicKey, PeerUrl)],
    /// Those that were tried in vain for long. They come last.
    pub(super) resting: &'a HashSet<Place>,
    pub(super) ours: &'a OurDomain,
    pub(super) most: usize,
}

/// The peers: the bootstrap relays, then those that the most owners name. Never ourselves, each place once.
pub(super) fn choose(choice: &Choice<'_>) -> Vec<PeerUrl> {
    let mut chosen = Vec::new();
    let mut places = HashSet::new();
    for url in choice.bootstrap.iter().filter(|url| !url.is_ours(choice.ours)) {
        if chosen.len() < choice.most && places.insert(url.place()) {
            chosen.push(url.clone());
        }
    }
    let mut on_host = HashMap::<String, usize>::new();
    for (place, url) in ranked(choice) {
        if chosen.len() >= choice.most {
            break;
        }
        if places.contains(&place) {
            continue;
        }
        let there = on_host.entry(place.host.clone()).or_default();
        if *there < MAX_PER_HOST {
            *there += 1;
            places.insert(place);
            chosen.push(url);
        }
    }
    chosen
}

/// What announcements name, the most wanted first. Of two spellings the one with TLS stands.
fn ranked(choice: &Choice<'_>) -> Vec<(Place, PeerUrl)> {
    let mut named = BTreeMap::<Place, (BTreeSet<&PublicKey>, &PeerUrl)>::new();
    for (owner, url) in choice.named.iter().filter(|(_, url)| !url.is_ours(choice.ours)) {
        let (owners, spelling) = named.entry(url.place()).or_insert((BTreeSet::new(), url));
        owners.insert(owner);
        *spelling = (*spelling).max(url);
    }
    let mut ranked: Vec<_> = named.into_iter().collect();
    ranked.sort_by_key(|(place, (owners, _))| {
        (choice.resting.contains(place), Reverse(owners.len()))
    });
    ranked.into_iter().map(|(place, (_, url))| (place, url.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use nostr::key::{Keys, SecretKey};
    use proptest::prelude::*;

    use super::*;

    fn owner(number: u8) -> PublicKey {
        // They are made once: that takes a while in a debug build.
        static OWNERS: LazyLock<[PublicKey; 6]> = LazyLock::new(|| {
            [1, 2, 3, 4, 5, 6]
                .map(|it| Keys::new(SecretKey::from_slice(&[it; 32]).unwrap()).public_key())
        });
        OWNERS[usize::from(number)]
    }

    fn url(text: &str) -> PeerUrl {
        text.parse().unwrap()
    }

    fn chosen(
        bootstrap: &[&str],
        named: &[(u8, &str)],
        resting: &[&str],
        most: usize,
    ) -> Vec<String> {
        let bootstrap: Vec<_> = bootstrap.iter().map(|it| url(it)).collect();
        let named: Vec<_> = named.iter().map(|(by, it)| (owner(*by), url(it))).collect();
        let resting = resting.iter().map(|it| url(it).place()).collect();
        let ours = "git.example.org".parse().unwrap();
        let all = choose(&Choice {
            bootstrap: &bootstrap,
            named: &named,
            resting: &resting,
            ours: &ours,
            most,
        });
        all.iter().map(PeerUrl::to_string).collect()
    }

    /// R9: the bootstrap relays come first, then what the most owners name; what does not answer comes last.
    #[test]
    fn those_that_most_owners_name_come_first() {
        let named = [
            (1, "wss://a.example.org"),
            (1, "wss://b.example.org"),
            (1, "wss://b.example.org/"),
            (2, "ws://c.example.org"),
            (3, "wss://c.example.org"),
            (3, "wss://git.example.org"),
        ];
        let all = chosen(&["ws://z.example.org"], &named, &[], 64);
        let [z, c, a, b] = [
            "ws://z.example.org/",
            "wss://c.example.org/",
            "wss://a.example.org/",
            "wss://b.example.org/",
        ];
        assert_eq!(all, [z, c, a, b]);
        assert_eq!(chosen(&["ws://z.example.org"], &named, &[c], 3), [z, a, b]);
        assert_eq!(chosen(&["ws://z.example.org"], &named, &[c], 4), [z, a, b, c]);
        assert_eq!(chosen(&[z, z, "wss://z.example.org"], &named, &[], 1), [z]);
        assert!(chosen(&[z], &named, &[], 0).is_empty());
    }

    /// R9: nobody can turn us upon one host with many URLs of it.
    #[test]
    fn few_peers_are_on_one_host() {
        let urls: Vec<_> = (0..50).map(|it| format!("wss://victim.example.org/{it}")).collect();
        let mut named: Vec<_> = urls.iter().map(|it| (1, it.as_str())).collect();
        named.push((2, "wss://other.example.org"));
        assert_eq!(chosen(&[], &named, &[], 64).len(), MAX_PER_HOST + 1);
    }

    /// The n-th of a few spellings of a few hosts.
    fn spelling(n: u8) -> String {
        let host = format!("relay-{}.example.org", n % 90);
        match n / 90 {
            0 => format!("wss://{host}"),
            1 => format!("ws://{}:80/", host.to_uppercase()),
            _ => "wss://Git.Example.org:7000".to_owned(),
        }
    }

    proptest! {
        /// R9: at most `most`, never ourselves, no place twice, all bootstrap relays that fit, and nobody left out for one
        /// that fewer owners name.
        #[test]
        fn the_choice_keeps_its_bounds(
            bootstrap in prop::collection::vec(any::<u8>(), 0..6),
            named in prop::collection::vec((0_u8..6, any::<u8>()), 0..200),
            most in 0_usize..70,
        ) {
            let bootstrap: Vec<_> = bootstrap.iter().map(|n| url(&spelling(*n))).collect();
            let named: Vec<_> =
                named.iter().map(|(by, n)| (owner(*by), url(&spelling(*n)))).collect();
            let ours: OurDomain = "git.example.org".parse().unwrap();
            let resting = HashSet::new();
            let choice =
                Choice { bootstrap: &bootstrap, named: &named, resting: &resting, ours: &ours, most };
            let chosen = choose(&choice);
            let places: HashSet<_> = chosen.iter().map(PeerUrl::place).collect();
            prop_assert!(chosen.len() <= most);
            prop_assert_eq!(places.len(), chosen.len());
            prop_assert!(chosen.iter().all(|url| !url.is_ours(&ours)));
            let wanted: HashSet<_> =
                bootstrap.iter().filter(|it| !it.is_ours(&ours)).map(PeerUrl::place).collect();
            prop_assert!(wanted.len() > most || wanted.is_subset(&places));
            let by_place: Vec<_> = named.iter().map(|(owner, url)| (*owner, url.place())).collect();
            let owners = |place: &Place| {
                let by = by_place.iter().filter(|(_, it)| it == place);
                by.map(|(owner, _)| *owner).collect::<HashSet<_>>().len()
            };
            let all: HashSet<_> = named.iter().map(|(_, url)| url).filter(|it| !it.is_ours(&ours)).map(PeerUrl::place).collect();
            let least = places.difference(&wanted).map(owners).min().unwrap_or(usize::MAX);
            for left_out in all.difference(&places) {
                prop_assert_eq!(chosen.len(), most);
                prop_assert!(owners(left_out) <= least || places.is_subset(&wanted));
            }
        }
    }
}
