//! The names of a ledger's files. `X.db` is the open month, `X-2026-10.db` another one beside it, `X-2026-10.json` its
//! sign-off, `X.db.lock` the writer's lock, and `X.db.corrupt-…` a file in quarantine.
//!
//! Law: a month is in one file. The file's own facts, and not its name, decide which month that is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::month;
use crate::source::Month;

/// Returns the path with a suffix: `X.db-wal` for `X.db` and `-wal`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the path of a month that is not the open one.
pub(crate) fn of_month(path: &Path, month: Month) -> PathBuf {
    path.with_file_name(named(path, &format!("-{}", month::name(month)), true))
}

/// Returns the path of a closed month's sign-off.
pub(crate) fn sign_off(path: &Path, month: Month) -> PathBuf {
    path.with_file_name(named(path, &format!("-{}.json", month::name(month)), false))
}

fn named(path: &Path, middle: &str, with_extension: bool) -> OsString {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(middle);
    if let Some(extension) = path.extension().filter(|_| with_extension) {
        name.push(".");
        name.push(extension);
    }
    name
}

/// Returns the directory of a file.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Returns the existing files of a ledger: past months in order, and the open one last.
pub(crate) fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut months = Vec::new();
    for entry in fs::read_dir(directory(path))? {
        let name = entry?.file_name();
        let Some(month) = name.to_str().and_then(|name| month_in(path, name)) else { continue };
        months.push(month);
    }
    months.sort_unstable();
    let mut files: Vec<_> = months.into_iter().map(|month| of_month(path, month)).collect();
    if path.try_exists()? {
        files.push(path.to_owned());
    }
    Ok(files)
}

/// Checks that `path` is of a ledger and not of one month of it. Corrections and late rows of a month are in later
/// files, so one file alone would make another bill.
pub(crate) fn is_whole(path: &Path) -> io::Result<()> {
    let Some(open) = open_month_of(path) else { return Ok(()) };
    let message = format!("it is one month of the ledger {}: name that, and say which month", open.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns the open file of the ledger of which `path` is a past month by its name, if that open file exists.
fn open_month_of(path: &Path) -> Option<PathBuf> {
    const MIDDLE: usize = "-2026-10".len();
    let stem = path.file_stem()?.to_str()?;
    let (ledger, middle) = stem.split_at_checked(stem.len().checked_sub(MIDDLE)?)?;
    month::read(middle.strip_prefix('-')?)?;
    let mut name = OsString::from(ledger);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    Some(path.with_file_name(name)).filter(|open| open.is_file())
}

/// Returns the month in the name of a file; `None` if the name is not that of a past month of the ledger.
pub(crate) fn month_in(path: &Path, name: &str) -> Option<Month> {
    let rest = name.strip_prefix(path.file_stem()?.to_str()?)?.strip_prefix('-')?;
    let written = rest.get(..7)?;
    let month = month::read(written)?;
    (of_month(path, month).file_name()?.to_str()? == name).then_some(month)
}

/// Creates a new file that only its owner and the owner's group can read, because a ledger shows who used which model,
/// when, and at what cost.
pub(crate) fn make(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(MODE).open(path)
}

/// Replaces a small file beside a ledger, completely or not at all. It has the permissions of a ledger, because it names
/// tenants or exchanges.
///
/// # Errors
/// If the disk or the permissions do not allow it.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let new = beside(path, ".new");
    // One that a killed process left may have any mode.
    let _ = fs::remove_file(&new);
    let mut file = make(&new)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Returns the months that were signed off, by the names of their sign-offs.
pub(crate) fn signed_off(path: &Path) -> io::Result<Vec<Month>> {
    let mut months = Vec::new();
    for entry in fs::read_dir(directory(path))? {
        let name = entry?.file_name();
        let rest = path.file_stem().zip(name.to_str());
        let rest = rest.and_then(|(stem, name)| name.strip_prefix(stem.to_str()?)?.strip_prefix('-'));
        months.extend(rest.and_then(|rest| month::read(rest.strip_suffix(".json")?)));
    }
    Ok(months)
}

/// The mode of a new file, before the umask.
const MODE: u32 = 0o640;

/// Makes the names in a file's directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// Renames a file durably.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_directory(to)
}

/// Returns the device and the inode of a file.
pub(crate) fn node(path: &Path) -> io::Result<(u64, u64)> {
    let data = fs::metadata(path)?;
    Ok((data.dev(), data.ino()))
}

/// Returns the length of a file; 0 if it does not exist.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_whole, month_in, of_month, sign_off};

    #[test]
    fn names_are_read_as_they_are_made() {
        for (path, month, file, signed) in [
            ("/var/x.db", 681, "/var/x-2026-10.db", "/var/x-2026-10.json"),
            ("ledger", 0, "ledger-1970-01", "ledger-1970-01.json"),
            ("a.b.sqlite", 682, "a.b-2026-11.sqlite", "a.b-2026-11.json"),
        ] {
            let path = Path::new(path);
            let made = of_month(path, month);
            assert_eq!(
                (made.as_path(), sign_off(path, month).as_path()),
                (Path::new(file), Path::new(signed))
            );
            assert_eq!(month_in(path, made.file_name().unwrap().to_str().unwrap()), Some(month));
        }
    }

    #[test]
    fn one_month_of_a_ledger_is_refused() {
        let folder = std::env::temp_dir().join(format!("tokenmeter-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["x.db", "x-2026-10.db", "alone-2026-10.db"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let checked = |name: &str| is_whole(&folder.join(name)).map_err(|error| error.to_string());
        for name in ["x.db", "alone-2026-10.db", "x-2026-13.db", "y.db", "-2026-10.db", "é-2026-10.db"] {
            assert_eq!(checked(name), Ok(()), "{name}");
        }
        let open = folder.join("x.db");
        let expected =
            format!("it is one month of the ledger {}: name that, and say which month", open.display());
        assert_eq!(checked("x-2026-10.db"), Err(expected));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn other_files_are_no_months() {
        for name in
            ["x.db", "x-2026-10.db-wal", "x-2026-10.json", "y-2026-10.db", "x-2026-13.db", "x-.db", "x-é"]
        {
            assert_eq!(month_in(Path::new("x.db"), name), None, "{name}");
        }
    }
}
