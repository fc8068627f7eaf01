//! The list of the packs that came into a repository, each of them checked, and whether they are all that is there.
//!
//! It is what makes the last look before refs move cheap. As long as the list *holds*, nothing can lack:
//!
//! - a repository begins empty, and so does its list;
//! - a pack is added as it comes in, under the repository's lock, and only while the list holds. It was checked to name
//!   nothing but what is in itself or in the repository, which is what is in the packs of the list. So each object that an
//!   object in these packs names is in these packs;
//! - the list holds if these packs are there, each with its index, and nothing else is: no other pack, no loose object.
//!   So whatever object is found is in one of them, and so is all that it reaches.
//!
//! `git gc` may run at any time. It brings no objects, it moves them to other packs or lets them go, and in both cases takes
//! packs of the list away: the list holds no more. Somebody who writes loose objects makes folders in `objects`, which
//! changes that folder's time, also if they are gone again. A crash between a pack and its line, a line that was cut off, a
//! repository that was copied or that others made: the list does not hold. Then git looks at all that refs will
//! reach, as it would without a list; nothing else depends on it.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    time::UNIX_EPOCH,
};

const FILE: &str = "ngit-packs";

/// Whether all objects in the repository at `path` are in checked packs that are all there.
pub(crate) fn holds(path: &Path) -> bool {
    holds_but_for(path, "").unwrap_or(false)
}

/// Begins a list of what is there now, which is nothing, or is whole. The repository is locked, or not in its place
/// yet.
pub(crate) fn begin(path: &Path) -> io::Result<()> {
    begin_with(path, &now(path)?)
}

/// Begins a list of what was there when [`now`] said this.
pub(crate) fn begin_with(path: &Path, list: &str) -> io::Result<()> {
    fs::write(path.join(FILE), list)
}

/// What a list says that begins now.
pub(crate) fn now(path: &Path) -> io::Result<String> {
    let packs = packs(path)?.into_iter().map(|name| format!("{name}\n"));
    Ok(format!("{}\n", time_of_objects(path)?) + &packs.collect::<String>())
}

/// Notes that the pack `name` came, if the list held until then. The repository is locked.
pub(crate) fn add(path: &Path, name: &str) -> io::Result<()> {
    if !holds_but_for(path, name).unwrap_or(false) {
        return Ok(());
    }
    let mut file = OpenOptions::new().append(true).open(path.join(FILE))?;
    file.write_all(format!("{name}\n").as_bytes())
}

/// Whether the list holds if the pack `besides` is left out of account.
fn holds_but_for(path: &Path, besides: &str) -> io::Result<bool> {
    let text = match fs::read_to_string(path.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        result => result?,
    };
    let Some((time, listed)) = text.split_once('\n') else { return Ok(false) };
    if time != time_of_objects(path)? || has_loose_objects(path)? {
        return Ok(false);
    }
    let mut listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let mut here = packs(path)?;
    listed.remove(besides);
    here.remove(besides);
    Ok(listed == here)
}

/// The names of the packs, without ending. Half of a pack, or an index without one, has a name that is in no list.
fn packs(path: &Path) -> io::Result<BTreeSet<String>> {
    let (mut packs, mut indexes) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(path.join("objects/pack"))? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(name) = name.strip_suffix(".pack") {
            packs.insert(name.to_owned());
        } else if let Some(name) = name.strip_suffix(".idx") {
            indexes.insert(name.to_owned());
        }
    }
    let halves: Vec<_> = packs.symmetric_difference(&indexes).cloned().collect();
    for half in halves {
        packs.remove(&half);
        packs.insert(format!("half of {half}"));
    }
    Ok(packs)
}

fn has_loose_objects(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path.join("objects"))? {
        let name = entry?.file_name();
        if name != "info" && name != "pack" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// When a folder was last made or removed in `objects`, in nanoseconds since 1970.
fn time_of_objects(path: &Path) -> io::Result<String> {
    let modified = fs::metadata(path.join("objects"))?.modified()?;
    let since = modified.duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    Ok(since.as_nanos().to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for below in ["objects/info", "objects/pack"] {
                fs::create_dir_all(folder.path().join(below)).unwrap();
            }
            begin(folder.path()).unwrap();
            Self(folder)
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn write(&self, file: &str) {
            fs::write(self.path().join("objects/pack").join(file), "").unwrap();
        }

        fn pack(&self, name: &str) {
            self.write(&format!("{name}.pack"));
            self.write(&format!("{name}.idx"));
        }

        fn remove(&self, file: &str) {
            fs::remove_file(self.path().join("objects/pack").join(file)).unwrap();
        }

        fn lose(&self, name: &str) {
            self.remove(&format!("{name}.pack"));
            self.remove(&format!("{name}.idx"));
        }

        fn come(&self, name: &str) {
            self.pack(name);
            add(self.path(), name).unwrap();
        }
    }

    /// G7: the list holds with every pack that comes, also with one that comes twice and with files that are no packs.
    #[test]
    fn it_holds_as_packs_come() {
        let folder = Folder::new();
        assert!(holds(folder.path()));
        for name in ["pack-a", "pack-b", "pack-b", "pack-c"] {
            folder.come(name);
            assert!(holds(folder.path()), "{name}");
        }
        folder.write("multi-pack-index");
        folder.write("tmp_pack_1");
        assert!(holds(folder.path()));
        assert!(!holds(&folder.path().join("elsewhere")));
    }

    /// G7: it holds no more once a pack or an index went, whatever came instead, and what comes then does not make it
    /// hold again.
    #[test]
    fn it_does_not_hold_once_something_went() {
        for gone in [&["pack-a.pack", "pack-a.idx"][..], &["pack-a.pack"], &["pack-a.idx"]] {
            let folder = Folder::new();
            folder.come("pack-a");
            folder.come("pack-b");
            gone.iter().for_each(|file| folder.remove(file));
            assert!(!holds(folder.path()), "{gone:?}");
            folder.come("pack-c");
            assert!(!holds(folder.path()), "{gone:?}");
        }
        let folder = Folder::new();
        folder.come("pack-a");
        folder.pack("pack-of-gc");
        assert!(!holds(folder.path()), "nobody has checked it");
        folder.come("pack-b");
        folder.lose("pack-of-gc");
        assert!(!holds(folder.path()), "the last one may build on what is gone");
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// A pack with one object comes that names all there is.
        Come,
        /// Somebody puts all but the objects of this bit mask into one pack.
        Tidy(u8),
        /// A pack goes.
        Lose(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Come),
            1 => any::<u8>().prop_map(Step::Tidy),
            1 => any::<prop::sample::Index>().prop_map(|at| Step::Lose(at.index(8))),
        ]
    }

    proptest! {
        /// G7: whatever comes and goes, as long as it holds each object that is there has all it names.
        #[test]
        fn what_is_there_is_whole_as_long_as_it_holds(steps in prop::collection::vec(step(), 1..16)) {
            let folder = Folder::new();
            // The objects of each pack, and what each object names.
            let mut packs = BTreeMap::<String, BTreeSet<usize>>::new();
            let mut names = Vec::<BTreeSet<usize>>::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Come => {
                        let here = packs.values().flatten().copied().collect();
                        let name = format!("pack-{number}");
                        folder.come(&name);
                        packs.insert(name, BTreeSet::from([names.len()]));
                        names.push(here);
                    }
                    Step::Tidy(without) => {
                        let all = packs.values().flatten().copied();
                        let kept = all.filter(|it| without >> (it % 8) & 1 == 0).collect();
                        packs.keys().for_each(|name| folder.lose(name));
                        let name = format!("pack-of-gc-{number}");
                        folder.pack(&name);
                        packs = BTreeMap::from([(name, kept)]);
                    }
                    Step::Lose(at) => {
                        if let Some(name) = packs.keys().nth(at).cloned() {
                            folder.lose(&name);
                            packs.remove(&name);
                        }
                    }
                }
                let holds = holds(folder.path());
                if holds {
                    let here: BTreeSet<usize> = packs.values().flatten().copied().collect();
                    prop_assert!(here.iter().all(|object| names[*object].is_subset(&here)));
                }
                // And it does not say no to all: where everything came and nothing went, it holds.
                prop_assert!(holds || packs.len() != names.len() || number + 1 != names.len());
            }
        }
    }

    /// G7: nor where loose objects are, or were.
    #[test]
    fn it_does_not_hold_once_there_were_loose_objects() {
        let folder = Folder::new();
        folder.come("pack-a");
        let loose = folder.path().join("objects/ab");
        // The times of files are as coarse as the clock of the system: this one must be another than at the beginning.
        while time_of_objects(folder.path()).unwrap() == first_line(&folder) {
            fs::create_dir(&loose).unwrap();
            assert!(!holds(folder.path()));
            fs::remove_dir(&loose).unwrap();
        }
        assert!(!holds(folder.path()));
        folder.come("pack-b");
        assert!(!holds(folder.path()));
        begin(folder.path()).unwrap();
        assert!(holds(folder.path()), "all was looked at");
    }

    /// G7: a line that a crash cut off, or a list that is damaged, does not hold.
    #[test]
    fn it_does_not_hold_when_it_is_damaged() {
        let folder = Folder::new();
        folder.come("pack-abcdef");
        let file = folder.path().join(FILE);
        let text = fs::read(&file).unwrap();
        for length in 0..text.len() - 1 {
            fs::write(&file, &text[..length]).unwrap();
            assert!(!holds(folder.path()), "{length}");
        }
        fs::write(&file, [0xff]).unwrap();
        assert!(!holds(folder.path()));
    }

    fn first_line(folder: &Folder) -> String {
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        text.lines().next().unwrap().to_owned()
    }
}
