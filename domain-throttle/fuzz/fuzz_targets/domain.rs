//! L13: no text makes the parsers panic; what is read is printed and read again as the same; and all
//! spellings that the url crate maps to one host are one domain, which is never empty.
#![no_main]

use domain_throttle::{Domain, DomainPattern, Endpoint};
use libfuzzer_sys::fuzz_target;
use url::{Host, Url};

fuzz_target!(|text: &str| {
    let _ = text.parse::<DomainPattern>();
    if let Ok(domain) = text.parse::<Domain>() {
        is_canonical(&domain);
    }
    let Ok(endpoint) = text.parse::<Endpoint>() else { return };
    is_canonical(endpoint.domain());
    let printed = endpoint.to_string();
    assert_eq!(printed.parse::<Endpoint>().as_ref(), Ok(&endpoint), "{text:?}, {printed:?}");
    let Ok(url) = Url::parse(text) else { return };
    let Some(host) = url.host().filter(|_| Endpoint::from_url(&url).is_ok()) else { return };
    let from_url = Endpoint::from_url(&url).expect("looked at above");
    // `user@host:path` is read as ssh does, whatever a URL parser makes of it.
    if url.scheme() == endpoint.scheme() {
        assert_eq!(from_url, endpoint, "{text:?}");
    }
    for spelling in spellings(&host) {
        let domain: Domain = spelling.parse().unwrap_or_else(|e| panic!("{spelling:?}: {e}"));
        assert_eq!(&domain, from_url.domain(), "{spelling:?}");
    }
});

fn is_canonical(domain: &Domain) {
    let text = domain.as_str();
    assert!(!text.is_empty() && !text.ends_with('.') && text.len() <= 253, "{text:?}");
    assert!(!text.contains(['/', '@', '[', ' ']), "{text:?}");
    assert!(!text.bytes().any(|byte| byte.is_ascii_uppercase()), "{text:?}");
    assert_eq!(text.parse::<Domain>().as_ref(), Ok(domain));
}

/// Other ways to write a host.
fn spellings(host: &Host<&str>) -> Vec<String> {
    match host {
        Host::Domain(name) => {
            // The url crate leaves hosts of unknown schemes as they were written.
            let Ok(Host::Domain(name)) = Host::parse(name) else { return Vec::new() };
            let name = name.trim_end_matches('.').to_owned();
            vec![name.to_uppercase(), format!("{name}."), name]
        }
        Host::Ipv4(address) => {
            let bits = u32::from(*address);
            vec![
                address.to_string(),
                bits.to_string(),
                format!("{bits:#x}"),
                format!("{address}."),
                format!("[::ffff:{address}]"),
            ]
        }
        Host::Ipv6(address) => {
            let [a, b, c, d, e, f, g, h] = address.segments();
            vec![
                address.to_string(),
                format!("[{address}]"),
                format!("[{a:04X}:{b:04X}:{c:04X}:{d:04X}:{e:04X}:{f:04X}:{g:04X}:{h:04X}]"),
            ]
        }
    }
}
