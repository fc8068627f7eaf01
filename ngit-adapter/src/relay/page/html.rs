//! The page as HTML. Every text of a stranger goes through [`Text`].

use std::fmt::{self, Display, Formatter, Write as _};

use nostr::{event::Kind, nips::nip19::ToBech32};

use super::view::{Repository, View, counted};

const STYLE: &str = include_str!("style.css");

/// How often the page comes again by itself, in seconds.
const REFRESH: u32 = 5;

pub(super) fn render(view: &View) -> String {
    let mut page = String::new();
    // A string takes all.
    let _ = write_page(&mut page, view);
    page
}

fn write_page(page: &mut String, view: &View) -> fmt::Result {
    let name = Text(&view.name);
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"refresh\" content=\"{REFRESH}\">\n\
         <title>{name}: ngit-purgatory</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{name}</h1>\n\
         <p>A relay and git server. Git events are held here until their git data has come, then both are served.</p>\n"
    )?;
    if let Some(Ok(npub)) = view.owner.map(|owner| owner.to_bech32()) {
        writeln!(page, "<p class=\"dim\">Run by <code>{npub}</code></p>")?;
    }
    writeln!(page, "</header>\n<ul class=\"numbers\">")?;
    let numbers = [
        (view.held, "events held"),
        (view.queued, "repositories waited for"),
        (view.fetching, "fetches on now"),
    ];
    for (number, what) in numbers {
        writeln!(page, "<li><b>{number}</b> {what}</li>")?;
    }
    writeln!(page, "</ul>")?;
    write_held(page, view)?;
    write_domains(page, view)?;
    write_peers(page, view)?;
    write_released(page, view)?;
    writeln!(
        page,
        "<footer class=\"dim\">This page refreshes itself every {REFRESH} s. Version {}.</footer>\n</body>\n</html>",
        env!("CARGO_PKG_VERSION")
    )
}

fn write_held(page: &mut String, view: &View) -> fmt::Result {
    writeln!(page, "<section id=\"held\">\n<h2>Held</h2>")?;
    if view.repositories.is_empty() {
        writeln!(page, "<p class=\"dim\">Nothing is waited for.</p>")?;
    }
    for repository in &view.repositories {
        write_repository(page, repository)?;
    }
    let more = view.queued.saturating_sub(view.repositories.len());
    if more > 0 {
        writeln!(page, "<p class=\"dim\">And {more} repositories more.</p>")?;
    }
    writeln!(page, "</section>")
}

fn write_repository(page: &mut String, it: &Repository) -> fmt::Result {
    let (name, doing) = (Name(&it.identifier), Text(&it.doing));
    writeln!(page, "<article>\n<h3>{name}</h3>\n<p>{doing}</p>")?;
    if it.attempt > 0 || it.missing > 0 {
        let (attempt, missing) = (it.attempt, counted(it.missing, "object"));
        write!(page, "<p class=\"dim\">Attempt {attempt}, {missing} missing.")?;
        if let Some(last) = &it.last {
            write!(page, " Last pass: {}.", Text(last))?;
        }
        writeln!(page, "</p>")?;
    }
    if !it.events.is_empty() {
        writeln!(page, "<ul>")?;
        for event in &it.events {
            let (kind, id, why) = (kind(event.kind), event.id.to_hex(), Text(&event.why));
            writeln!(page, "<li>{kind} <code title=\"{id}\">{}</code>: {why}</li>", &id[..12])?;
        }
        if it.more > 0 {
            writeln!(page, "<li class=\"dim\">and {} more</li>", it.more)?;
        }
        writeln!(page, "</ul>")?;
    }
    writeln!(page, "</article>")
}

fn write_domains(page: &mut String, view: &View) -> fmt::Result {
    writeln!(page, "<section id=\"domains\">\n<h2>Servers</h2>")?;
    if view.domains.is_empty() {
        return writeln!(page, "<p class=\"dim\">None was asked so far.</p>\n</section>");
    }
    writeln!(
        page,
        "<table>\n<tr><th>Domain</th><th class=\"number\">On now</th><th class=\"number\">Last minute</th>\
         <th class=\"number\">In line</th><th class=\"number\">All requests</th><th>Pause</th></tr>"
    )?;
    for row in &view.domains {
        write!(
            page,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td>",
            Text(&row.domain),
            row.in_flight,
            row.last_minute.as_deref().unwrap_or("0"),
            row.waiting,
            row.requests,
        )?;
        if let Some(paused) = &row.paused {
            write!(page, "<span class=\"paused\">paused for {paused}</span>")?;
        }
        writeln!(page, "</td></tr>")?;
    }
    writeln!(page, "</table>\n</section>")
}

fn write_peers(page: &mut String, view: &View) -> fmt::Result {
    writeln!(page, "<section id=\"peers\">\n<h2>Other relays</h2>")?;
    if view.peers.is_empty() {
        return writeln!(page, "<p class=\"dim\">None is asked.</p>\n</section>");
    }
    writeln!(
        page,
        "<table>\n<tr><th>Relay</th><th>State</th><th class=\"number\">New events</th>\
         <th class=\"number\">Failures in a row</th></tr>"
    )?;
    for peer in &view.peers {
        writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            Text(&peer.url),
            Text(&peer.doing),
            peer.events,
            peer.failures,
        )?;
    }
    writeln!(page, "</table>\n</section>")
}

fn write_released(page: &mut String, view: &View) -> fmt::Result {
    writeln!(page, "<section id=\"released\">\n<h2>Released lately</h2>")?;
    if view.released.is_empty() {
        return writeln!(page, "<p class=\"dim\">Nothing since the start.</p>\n</section>");
    }
    writeln!(
        page,
        "<table>\n<tr><th>When</th><th>What</th><th>Repository</th><th>Event</th></tr>"
    )?;
    for it in &view.released {
        let id = it.id.to_hex();
        writeln!(
            page,
            "<tr><td class=\"time\">{} ago</td><td>{}</td><td>{}</td><td><code title=\"{id}\">{}</code></td></tr>",
            it.ago,
            kind(it.kind),
            Name(&it.identifier),
            &id[..12]
        )?;
    }
    writeln!(page, "</table>\n</section>")
}

fn kind(kind: Kind) -> &'static str {
    match kind.as_u16() {
        30_617 => "Announcement",
        30_618 => "State",
        1_618 => "Pull request",
        1_619 => "Pull request update",
        _ => "Event",
    }
}

/// A text as HTML shows it: no part of it is markup.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                _ if is_invisible(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                _ => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Marks that can make a line look like another one.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A repository's name, cut if it is long; one that is empty is shown as that.
struct Name<'a>(&'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const MOST: usize = 120;
        if self.0.is_empty() {
            return f.write_str("<span class=\"dim\">(no name)</span>");
        }
        match self.0.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{}…", Text(&self.0[..end])),
            None => write!(f, "{}", Text(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use nostr::event::EventId;

    use super::super::view::{Held, Peer, Released, Row};
    use super::*;

    fn view(name: &str) -> View {
        let id = EventId::from_byte_array([0xab; 32]);
        let kind = Kind::from(30_618);
        View {
            name: name.to_owned(),
            owner: None,
            held: 1,
            fetching: 2,
            queued: 60,
            repositories: vec![Repository {
                identifier: name.to_owned(),
                doing: name.to_owned(),
                attempt: 3,
                missing: 4,
                last: Some(name.to_owned()),
                events: vec![Held { id, kind, why: name.to_owned() }],
                more: 5,
            }],
            domains: vec![Row {
                domain: name.to_owned(),
                in_flight: 6,
                requests: 7,
                last_minute: None,
                waiting: 8,
                paused: Some("9 s".to_owned()),
            }],
            peers: vec![Peer {
                url: name.to_owned(),
                doing: name.to_owned(),
                events: 10,
                failures: 11,
            }],
            released: vec![Released {
                id,
                kind,
                identifier: name.to_owned(),
                ago: "1 s".to_owned(),
            }],
        }
    }

    /// What strangers write is shown, and is never markup.
    #[test]
    fn no_text_of_a_stranger_is_markup() {
        let plain = render(&view("name"));
        let hostile = render(&view("<script>alert(\"1\")</script>'&\n\u{202e}"));
        assert!(!hostile.contains("<script") && !hostile.contains('\u{202e}'));
        assert!(hostile.contains(
            "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;\\u{a}\\u{202e}"
        ));
        let tags = |page: &str| page.matches('<').count();
        assert_eq!(tags(&plain), tags(&hostile));
    }

    #[test]
    fn all_that_is_known_is_shown() {
        let page = render(&view("name"));
        for part in [
            "Attempt 3, 4 objects missing",
            "and 5 more",
            "paused for 9 s",
            "And 59 repositories more",
            "State <code title=\"abab",
            "1 s ago",
            "http-equiv=\"refresh\"",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let long = "x".repeat(10_000);
        let page = render(&view(&long));
        assert!(page.contains("…") && page.contains(&format!("{}…", "x".repeat(120))));
        assert!(render(&view("")).contains("(no name)"));
    }
}
