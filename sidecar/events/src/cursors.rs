//! The cursor of each ledger file: how far its exchanges are accepted. A small file beside the ledger keeps them; it is
//! replaced atomically after each accepted batch. It belongs to usage events alone: the shipping to a central store has
//! a cursor of its own there.
//!
//! Without the file, or with an older one, events are sent again, with the same ids.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ledger::export::Origin;
use meter::ExchangeId;
use serde_json::{Map, Value, json};

/// The position in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the last exchange whose event is accepted, rejected or not needed.
    pub(crate) exchange: i64,
    /// Its id, by which a file that was restored from an older copy is recognised; `None` if the row is deleted.
    pub(crate) id: Option<ExchangeId>,
}

/// The cursors of a ledger.
#[derive(Debug)]
pub(crate) struct Cursors {
    path: PathBuf,
    positions: HashMap<[u8; 16], Position>,
}

impl Cursors {
    /// Reads the cursors of the ledger whose open file has this path. Without the file, no exchange is sent
    /// yet.
    ///
    /// # Errors
    /// If the file exists and cannot be read.
    pub(crate) fn of(ledger: &Path) -> io::Result<Self> {
        let path = ledger::beside(ledger, ".usage-events.json");
        let positions = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => HashMap::new(),
            read => read?,
        };
        Ok(Self { path, positions })
    }

    /// Returns the position in a file.
    pub(crate) fn get(&self, origin: Origin) -> Position {
        self.positions.get(&origin.instance).copied().unwrap_or_default()
    }

    /// Moves the position in a file.
    pub(crate) fn set(&mut self, origin: Origin, position: Position) {
        self.positions.insert(origin.instance, position);
    }

    /// Forgets the files that no longer exist.
    pub(crate) fn keep(&mut self, there: &[Origin]) {
        self.positions.retain(|instance, _| there.iter().any(|origin| origin.instance == *instance));
    }

    /// Writes the file durably.
    ///
    /// # Errors
    /// If the disk fails; names the file.
    pub(crate) fn save(&self) -> Result<(), String> {
        self.write().map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn write(&self) -> io::Result<()> {
        let files: Map<String, Value> = self
            .positions
            .iter()
            .map(|(instance, at)| {
                let position = json!({ "exchange": at.exchange, "id": at.id.map(|id| id.to_string()) });
                (ExchangeId(*instance).to_string(), position)
            })
            .collect();
        let text = json!({ "version": VERSION, "files": files }).to_string();
        ledger::replace(&self.path, text.as_bytes())
    }
}

/// The version of the format.
const VERSION: u64 = 1;

/// Maximum size of the file in bytes; each month of the ledger takes about a hundred.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

fn read(path: &Path) -> io::Result<HashMap<[u8; 16], Position>> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX_BYTES).read_to_string(&mut text)?;
    positions(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not a list of cursors"))
}

fn positions(text: &str) -> Option<HashMap<[u8; 16], Position>> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value["version"] != VERSION {
        return None;
    }
    let position = |(instance, at): (&String, &Value)| {
        let last = match &at["id"] {
            Value::Null => None,
            text => Some(id(text.as_str()?)?),
        };
        Some((id(instance)?.0, Position { exchange: at["exchange"].as_i64()?, id: last }))
    };
    value["files"].as_object()?.iter().map(position).collect()
}

/// Reads an id as it is formatted.
fn id(text: &str) -> Option<ExchangeId> {
    let digits = text.replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(ExchangeId(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use ledger::export::Origin;
    use ledger::testing::{Place, row};

    use super::{Cursors, Position};

    #[test]
    fn cursors_are_read_as_they_are_saved() {
        let place = Place::new();
        let mut cursors = Cursors::of(&place.ledger()).unwrap();
        let origin = |n| Origin { instance: [n; 16], month: 681 };
        let at = Position { exchange: 7, id: Some(row(7).id) };
        cursors.set(origin(1), at);
        cursors.set(origin(2), Position { exchange: i64::MAX, id: None });
        cursors.save().unwrap();
        let read = || [1, 2].map(|n| Cursors::of(&place.ledger()).unwrap().get(origin(n)));
        assert_eq!(read(), [at, Position { exchange: i64::MAX, id: None }]);
        cursors.keep(&[origin(1)]);
        cursors.save().unwrap();
        assert_eq!(read(), [at, Position::default()]);
    }

    #[test]
    fn damaged_file_is_an_error() {
        let place = Place::new();
        for text in ["", "{}", r#"{"version":2,"files":{}}"#, r#"{"version":1,"files":{"a":{}}}"#] {
            std::fs::write(place.path("x.db.usage-events.json"), text).unwrap();
            assert!(Cursors::of(&place.ledger()).is_err(), "{text}");
        }
    }
}
