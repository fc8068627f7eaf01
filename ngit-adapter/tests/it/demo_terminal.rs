//! The demo as a person sees it: at a terminal.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::demo::Home;

/// A terminal of 80 by 24 that nobody sits at.
struct Terminal {
    ours: OwnedFd,
    path: PathBuf,
}

impl Terminal {
    fn open() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it can be used");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())).to_owned();
        Self { ours, path }
    }

    /// The end that a program writes to.
    fn theirs(&self) -> File {
        let file = OpenOptions::new().read(true).write(true).open(&self.path);
        let file = file.expect("it can be opened");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&file, size).expect("a terminal has a size");
        file
    }

    /// All that was written, once nobody has it open any more.
    fn read_all(self) -> String {
        let mut written = Vec::new();
        match File::from(self.ours).read_to_end(&mut written) {
            Ok(_) => {}
            // So some systems say that the last writer has gone.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}"),
        }
        String::from_utf8(written).expect("the demo prints UTF-8")
    }
}

/// Runs the demo for a moment at a terminal.
fn seen(no_color: Option<&str>) -> String {
    let home = Home::hostile();
    let terminal = Terminal::open();
    let mut command = home.command();
    command.arg("--deadline-secs=3").env("TERM", "xterm-256color");
    command.stdout(Stdio::from(terminal.theirs())).stderr(Stdio::from(terminal.theirs()));
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    let mut child = command.spawn().expect("it can be started");
    drop(command);
    let text = terminal.read_all();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{text}");
    assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
    text
}

/// The codes that set colours and weights end in `m`, those that move the cursor in other letters.
fn codes(text: &str) -> Vec<char> {
    let codes = text.split("\u{1b}[").skip(1);
    codes.filter_map(|code| code.chars().find(char::is_ascii_alphabetic)).collect()
}

#[test]
fn a_person_at_a_terminal_sees_the_numbers_change_and_then_the_end() {
    let text = seen(None);
    let codes = codes(&text);
    assert!(codes.contains(&'m'), "it has colours: {text:?}");
    assert!(codes.contains(&'A'), "it goes up to draw anew: {text:?}");
    let last_drawn = text.rfind("last answer").expect("the view was drawn");
    let end = text.find("counted by the servers").expect("the end was told");
    assert!(last_drawn < end, "nothing is drawn over the end: {text:?}");
    assert!(text[..end].contains("44 events held"), "{text:?}");
}

#[test]
fn no_color_is_respected() {
    let text = seen(Some("1"));
    let codes = codes(&text);
    assert!(!codes.contains(&'m'), "it has no colours: {text:?}");
    assert!(codes.contains(&'A'), "it is still drawn: {text:?}");
}
