//! One file of the ledger: a month, with its facts and its table digests.
//!
//! Law: a file is created completely under another name and then renamed, so that a file under a ledger's name is
//! either a ledger or damaged.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::{Error, Fault};
use crate::files;
use crate::schema::SCHEMA;
use crate::source::Month;
use crate::table::{self, Digest, FACT, SEAL, Table};

/// The longest wait for a transaction of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// The page cache of a file that is written, KiB. It is resident memory once the file is as large. Four times as much
/// saved neither time nor reads over a million rows (performance.md).
const CACHE_KIB: i64 = 4 << 10;

/// An open file.
#[derive(Debug)]
pub(crate) struct File {
    pub connection: Connection,
    pub path: PathBuf,
    pub month: Month,
}

/// The number of rows ever entered into a table, and a digest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableDigest {
    pub entered: i64,
    pub digest: Digest,
}

impl TableDigest {
    pub(crate) const NEW: Self = Self { entered: 0, digest: [0; 32] };

    /// Adds a row of a numbered table: the digest is a chain, so the order counts.
    pub(crate) fn chain(&mut self, row: &Digest) {
        let mut both = [0; 64];
        both[..32].copy_from_slice(&self.digest);
        both[32..].copy_from_slice(row);
        self.digest = blake3::hash(&both).into();
        self.entered += 1;
    }

    /// Adds a row of a table with keys: the digest is a sum, from which a replaced row can be subtracted.
    pub(crate) fn add(&mut self, row: &Digest) {
        self.shift(table::row_checksum(row));
        self.entered += 1;
    }

    /// Subtracts a row of a table with keys.
    pub(crate) fn take(&mut self, row: &Digest) {
        self.shift(table::row_checksum(row).wrapping_neg());
        self.entered -= 1;
    }

    fn shift(&mut self, checksum: i64) {
        let sum = table::row_checksum(&self.digest).wrapping_add(checksum);
        self.digest[..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Adds a row in the way of its table.
    pub(crate) fn count(&mut self, table: &Table, row: &Digest) {
        if table.is_numbered() { self.chain(row) } else { self.add(row) }
    }
}

impl File {
    /// Creates the file of a month and opens it. The file appears under its name together with what `first` enters.
    pub(crate) fn create(
        path: &Path,
        month: Month,
        now_us: i64,
        first: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let new = files::beside(path, ".new");
        for leftover in [new.clone(), files::beside(&new, "-journal")] {
            match fs::remove_file(&leftover) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        // SQLite would create it readable for all users. The files that it creates beside it get the same mode.
        files::make(&new)?;
        let connection = Connection::open_with_flags(
            &new,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // So that retention can return the pages of deleted rows to the disk in small steps.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        let transaction = connection.unchecked_transaction()?;
        SCHEMA.create(&transaction)?;
        for table in table::digested_tables() {
            set_table_digest(&transaction, table, &TableDigest::NEW)?;
        }
        for (name, value) in
            [("month", i64::from(month)), ("created_us", now_us), ("alive_us", now_us), ("clean", 1)]
        {
            set_fact(&transaction, name, ValueRef::Integer(value))?;
        }
        set_fact(&transaction, "instance", ValueRef::Blob(&random_id()))?;
        transaction.commit()?;
        let mut file = Self { connection, path: new.clone(), month };
        first(&mut file)?;
        file.connection.close().map_err(|(_, error)| error)?;
        files::rename(&new, path)?;
        Self::open(path)
    }

    /// Opens a file for writing.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        careful(&connection)?;
        SCHEMA.migrate(&connection)?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(Error::new(
                Fault::Other,
                format!("it cannot have a write-ahead log; its journal mode is {mode}"),
            ));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        // The writer checkpoints, because it has to see whether a checkpoint failed.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Self::with(connection, path)
    }

    /// Opens a file for reading, also in a folder that cannot be written.
    pub(crate) fn open_read(path: &Path) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).map_err(Error::from).and_then(|connection| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            careful(&connection)?;
            SCHEMA.read_as_newest(&connection)?;
            Self::with(connection, path)
        });
        match opened {
            Err(error) if error.fault == Fault::ReadOnly && path.exists() => Self::open_immutable(path),
            other => other,
        }
    }

    /// Opens a file in a folder that cannot be written. SQLite creates files beside a file in WAL mode to read it,
    /// except if the file is opened as immutable, which is right only if the log is empty.
    fn open_immutable(path: &Path) -> Result<Self, Error> {
        if files::length(&files::beside(path, "-wal")) > 0 {
            return Err(Error::new(
                Fault::ReadOnly,
                "its newest rows are in the log beside it, which can only be read where this process may write: copy \
                 the file and its -wal to such a directory",
            ));
        }
        let mut uri = String::from("file:");
        for byte in std::path::absolute(path)?.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                    uri.push(char::from(*byte))
                }
                other => uri.push_str(&format!("%{other:02x}")),
            }
        }
        uri.push_str("?immutable=1");
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags)?;
        careful(&connection)?;
        SCHEMA.read_as_newest(&connection)?;
        Self::with(connection, path)
    }

    fn with(connection: Connection, path: &Path) -> Result<Self, Error> {
        let month = number(&connection, "month")?.ok_or_else(|| Error::corrupt("it has no month"))?;
        let month = Month::try_from(month).map_err(|_| Error::corrupt("its month is out of range"))?;
        Ok(Self { connection, path: path.to_owned(), month })
    }

    /// Returns the bytes of the log that are not in the file yet.
    pub(crate) fn log_bytes(&self) -> Result<u64, Error> {
        let (log, done) = self.checkpoint("NOOP")?;
        let page: i64 = self.connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        Ok(log.saturating_sub(done) * page.unsigned_abs())
    }

    /// Checkpoints the log in a mode of SQLite's; `NOOP` only counts. Returns the pages of the log, and how many of
    /// them are in the file now.
    pub(crate) fn checkpoint(&self, mode: &str) -> Result<(u64, u64), Error> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        // SQLite returns -1 if there is no log.
        let pages = |row: &rusqlite::Row<'_>, at| row.get(at).map(|pages: i64| pages.max(0).unsigned_abs());
        Ok(self.connection.query_row(&sql, [], |row| Ok((pages(row, 1)?, pages(row, 2)?)))?)
    }

    /// Checkpoints all of the log. After an fsync that failed, the log's pages in the page cache may not be on the
    /// disk; in the file they are written and synced again.
    pub(crate) fn checkpoint_all(&self) -> Result<(), Error> {
        let (log, done) = self.checkpoint("PASSIVE")?;
        if log == done {
            return Ok(());
        }
        Err(Error::new(
            Fault::Locked,
            "another reader holds an old snapshot of it, so its write-ahead log cannot be checkpointed",
        ))
    }

    /// Moves everything into the file and removes its log. Returns false if that is impossible because other processes
    /// have the file open.
    pub(crate) fn settle(&self) -> Result<bool, Error> {
        let mode: Result<String, _> =
            self.connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0));
        match mode.map_err(Error::from) {
            Ok(mode) => Ok(mode == "delete"),
            Err(error) if error.fault == Fault::Locked => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Keeps the log beside the file if this is dropped without [`File::rest`], as after a kill. Otherwise SQLite would
    /// remove it, and a file that was not closed in order and has no log counts as a copy that lacks it.
    pub(crate) fn keep_log(&self) -> Result<(), Error> {
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(())
    }

    /// Closes the file, without a log if possible. Returns true if it was.
    pub(crate) fn rest(self) -> Result<bool, Error> {
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        let settled = self.settle()?;
        self.connection.close().map_err(|(_, error)| error)?;
        Ok(settled)
    }
}

/// Returns a random id for a new file.
fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    for half in id.chunks_mut(8) {
        half.copy_from_slice(&RandomState::new().hash_one(std::process::id()).to_le_bytes());
    }
    id
}

/// Makes SQLite check more of what it reads, because a file may be damaged.
fn careful(connection: &Connection) -> Result<(), Error> {
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // No version of the schema has one: it could drop rows as they are entered.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    Ok(())
}

/// Returns a fact about the file.
pub(crate) fn fact(connection: &Connection, name: &str) -> Result<Option<Value>, Error> {
    let mut statement = connection.prepare_cached(FACT.select_one())?;
    let mut rows = statement.query([name])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (values, _) = FACT.read(row, &mut Vec::new())?;
    Ok(Some(
        values[1]
            .try_into()
            .map_err(|_| Error::corrupt("a value of the table `fact` has an unknown type"))?,
    ))
}

/// Returns a fact that is a number.
pub(crate) fn number(connection: &Connection, name: &str) -> Result<Option<i64>, Error> {
    match fact(connection, name)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Integer(number)) => Ok(Some(number)),
        Some(_) => Err(Error::corrupt(format!("`{name}` in the table `fact` is not a number"))),
    }
}

/// Returns a fact that is bytes.
pub(crate) fn bytes(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>, Error> {
    match fact(connection, name)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Blob(bytes)) => Ok(Some(bytes)),
        Some(_) => Err(Error::corrupt(format!("`{name}` in the table `fact` is not bytes"))),
    }
}

/// Returns a fact that is text.
pub(crate) fn text(connection: &Connection, name: &str) -> Result<Option<String>, Error> {
    match fact(connection, name)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(Error::corrupt(format!("`{name}` in the table `fact` is not text"))),
    }
}

/// Writes a fact, in the place of an earlier value.
pub(crate) fn set_fact(connection: &Connection, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
    let values = [ValueRef::Text(name.as_bytes()), value];
    let digest = FACT.digest(&values, &mut Vec::new());
    let mut replace = connection.prepare_cached(FACT.replace())?;
    table::execute(&mut replace, &values, &digest)?;
    Ok(())
}

/// Returns the first and the last day of a file's daily totals; `None` if there are none. A reader skips a file whose
/// days are outside its range.
pub(crate) fn days(connection: &Connection) -> Result<Option<RangeInclusive<i32>>, Error> {
    let Some(days) = bytes(connection, DAYS)? else { return Ok(None) };
    match days.as_chunks() {
        ([first, last], []) => Ok(Some(i32::from_le_bytes(*first)..=i32::from_le_bytes(*last))),
        _ => Err(Error::corrupt(format!("`{DAYS}` in the table `fact` is not two days"))),
    }
}

/// Returns the first and the last day, read from the daily totals themselves.
pub(crate) fn days_of_lines(connection: &Connection) -> Result<Option<RangeInclusive<i32>>, Error> {
    let (first, last): (Option<i32>, Option<i32>) =
        connection
            .query_row("SELECT min(day), max(day) FROM line", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(first.zip(last).map(|(first, last)| first..=last))
}

/// Extends the stored days to those of daily totals that were written.
pub(crate) fn extend_days(connection: &Connection, written: RangeInclusive<i32>) -> Result<(), Error> {
    let stored = days(connection)?;
    let extended = match &stored {
        Some(stored) => *stored.start().min(written.start())..=*stored.end().max(written.end()),
        None => written,
    };
    if stored.as_ref() == Some(&extended) {
        return Ok(());
    }
    let bytes = [extended.start().to_le_bytes(), extended.end().to_le_bytes()].concat();
    set_fact(connection, DAYS, ValueRef::Blob(&bytes))
}

/// The fact with the first and the last day.
const DAYS: &str = "days";

/// Returns the table digest of a table.
pub(crate) fn table_digest(connection: &Connection, table: &Table) -> Result<TableDigest, Error> {
    let mut statement = connection.prepare_cached(SEAL.select_one())?;
    let mut rows = statement.query([table.name])?;
    let broken = || Error::corrupt(format!("the digest of the table {} is broken", table.name));
    let row = rows.next()?.ok_or_else(broken)?;
    let (values, _) = SEAL.read(row, &mut Vec::new())?;
    match (values[1], values[2]) {
        (ValueRef::Integer(entered), ValueRef::Blob(digest)) => {
            Ok(TableDigest { entered, digest: digest.try_into().map_err(|_| broken())? })
        }
        _ => Err(broken()),
    }
}

/// Writes the table digest of a table.
pub(crate) fn set_table_digest(
    connection: &Connection,
    table: &Table,
    table_digest: &TableDigest,
) -> Result<(), Error> {
    let values = [
        ValueRef::Text(table.name.as_bytes()),
        ValueRef::Integer(table_digest.entered),
        ValueRef::Blob(&table_digest.digest),
    ];
    let digest = SEAL.digest(&values, &mut Vec::new());
    let mut replace = connection.prepare_cached(SEAL.replace())?;
    table::execute(&mut replace, &values, &digest)?;
    Ok(())
}

/// Returns the table digest at the last deletion of rows: the digest of all rows that were deleted so far.
pub(crate) fn compacted(connection: &Connection, table: &Table) -> Result<TableDigest, Error> {
    let Some(bytes) = bytes(connection, &compacted_fact(table))? else { return Ok(TableDigest::NEW) };
    let (entered, digest) =
        bytes.split_at_checked(8).ok_or_else(|| Error::corrupt("a table digest is too short"))?;
    match (entered.try_into(), digest.try_into()) {
        (Ok(entered), Ok(digest)) => Ok(TableDigest { entered: i64::from_le_bytes(entered), digest }),
        _ => Err(Error::corrupt("a table digest has the wrong length")),
    }
}

/// Writes the table digest of rows that are about to be deleted.
pub(crate) fn set_compacted(
    connection: &Connection,
    table: &Table,
    table_digest: &TableDigest,
) -> Result<(), Error> {
    let bytes = [&table_digest.entered.to_le_bytes()[..], &table_digest.digest].concat();
    set_fact(connection, &compacted_fact(table), ValueRef::Blob(&bytes))
}

fn compacted_fact(table: &Table) -> String {
    format!("compacted_{}", table.name)
}

/// Reads a whole table and compares it with its table digest. A changed row is an error before it is handed over; an
/// absent or added one after the last row.
pub(crate) fn whole(
    connection: &Connection,
    table: &Table,
    mut each: impl FnMut(&[ValueRef<'_>]) -> Result<(), Error>,
) -> Result<TableDigest, Error> {
    read_whole(connection, table, |values, right| match right {
        true => each(values),
        false => Err(table.changed(values)),
    })
    .and_then(|(found, expected)| match found == expected {
        true => Ok(found),
        false => Err(digest_difference(table, &found, &expected)),
    })
}

/// Reads a whole table. Returns the table digest of its rows, and the stored one.
fn read_whole(
    connection: &Connection,
    table: &Table,
    mut each: impl FnMut(&[ValueRef<'_>], bool) -> Result<(), Error>,
) -> Result<(TableDigest, TableDigest), Error> {
    let expected = table_digest(connection, table)?;
    let mut found = compacted(connection, table)?;
    let (rest, after) = if table.is_numbered() {
        ("WHERE seq > ? ORDER BY seq", vec![found.entered])
    } else {
        ("", Vec::new())
    };
    table.each_as_it_is(connection, rest, &after, |values, digest, right| {
        found.count(table, digest);
        each(values, right)
    })?;
    Ok((found, expected))
}

/// Returns the error of a table whose rows do not match its table digest.
pub(crate) fn digest_difference(table: &Table, found: &TableDigest, expected: &TableDigest) -> Error {
    Error::corrupt(format!(
        "the table {} has {} rows, which are not the {} rows that were written",
        table.name, found.entered, expected.entered
    ))
}

/// Returns true if a table has a row with an id.
pub(crate) fn has(connection: &Connection, table: &Table, id: &[u8; 16]) -> Result<bool, Error> {
    let sql = format!("SELECT 1 FROM {} WHERE id = ?", table.name);
    Ok(connection.prepare_cached(&sql)?.query_row([&id[..]], |_| Ok(())).optional()?.is_some())
}
