use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain_throttle::retry_after;

use crate::support::secs;

fn now() -> SystemTime {
    // Fri, 31 Dec 1999 23:59:00 GMT
    UNIX_EPOCH + secs(946_684_740)
}

/// L10: seconds and all three spellings of an HTTP date, as RFC 9110 has them.
#[test]
fn both_forms_are_read() {
    let read = [
        ("0", secs(0)),
        ("120", secs(120)),
        (" 120\t", secs(120)),
        ("007", secs(7)),
        ("18446744073709551615", secs(u64::MAX)),
        ("18446744073709551616", secs(u64::MAX)),
        ("999999999999999999999999999999999999", secs(u64::MAX)),
        ("Fri, 31 Dec 1999 23:59:59 GMT", secs(59)),
        ("Friday, 31-Dec-99 23:59:59 GMT", secs(59)),
        ("Fri Dec 31 23:59:59 1999", secs(59)),
        ("Fri, 31 Dec 1999 23:59:00 GMT", secs(0)),
        ("Fri, 31 Dec 1999 23:58:59 GMT", secs(0)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", secs(0)),
    ];
    for (value, expected) in read {
        assert_eq!(retry_after(value, now()), Ok(expected), "{value:?}");
    }
}

/// L10: what is neither is an error that names it, never a number that nobody sent.
#[test]
fn anything_else_is_an_error() {
    let none = [
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "0x10",
        "1 2",
        "soon",
        "١٢",
        "120s",
        "Fri, 32 Dec 1999 23:59:59 GMT",
        "Fri, 31 Dec 1999 23:59:59",
        "2000-01-01T00:00:00Z",
        "Fri, 31 Dec 1999 25:59:59 GMT",
        "\u{0}",
    ];
    for value in none {
        assert!(retry_after(value, now()).is_err(), "{value:?}");
    }
    let error = retry_after(&"x".repeat(10_000), now()).expect_err("no date").to_string();
    assert!(error.len() < 300);
}

proptest::proptest! {
    /// L10: no header makes the parser panic.
    #[test]
    fn no_header_makes_the_parser_panic(value in r"\PC{0,40}|[A-Za-z]{3},? [0-9]{1,2}[ -][A-Z][a-z]{2}[ -][0-9]{2,5} [0-9:]{5,9} GMT", at in 0..u64::from(u32::MAX)) {
        let _ = retry_after(&value, UNIX_EPOCH + Duration::from_secs(at));
    }
}
