//! Loss notes: what processes say about rows that are in no file, in the lock's file. That can be written when no month
//! can: while another process has the lock, and on a full disk, because its block is there already.
//!
//! Laws: a process has one note and changes no other. A note stays until a writer has entered its gap.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::lost_cost::LostCost;
use crate::overflow::{Loss, Span};
use crate::{files, lock};

/// The length of a note with its line feed.
const NOTE_BYTES: usize = 158;

/// The most bytes of the lock's file that are read.
const READ_MAX_BYTES: usize = 1 << 20;

/// The words by which notes begin.
const WAITING: &str = "waiting";
const ENDED: &str = "ended";
const SETTLED: &str = "settled";

/// A note: what is known of the rows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossNote {
    /// Rows from a time on may be in no file. They are lost if the process ends without another note.
    Waiting { from_us: i64 },
    /// The process ended and lost these rows. `alive_us`: the last heartbeat in the file that it had open and could not
    /// close. Nothing else is missing from that file.
    Ended { lost: Loss, alive_us: Option<i64> },
}

/// The note of this process.
#[derive(Debug, Default)]
pub(crate) struct LossNotes {
    /// The lock's file.
    path: PathBuf,
    /// The place of this process's note, and its text. Another text there is of another process, or in another file.
    own: Option<(u64, String)>,
}

impl LossNotes {
    /// Returns the notes of a ledger.
    pub(crate) fn of(ledger: &Path) -> Self {
        Self { path: files::beside(ledger, ".lock"), own: None }
    }

    /// Writes the note of this process. Returns true if it is on the disk. `has_lock`: this process has the lock, so
    /// that it may write over settled notes.
    pub(crate) fn write(&mut self, note: LossNote, has_lock: bool) -> bool {
        self.try_write(&line(Some(note)), has_lock).is_ok()
    }

    fn try_write(&mut self, line: &str, has_lock: bool) -> io::Result<()> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(&self.path)?;
        let text = text(&file);
        let place = match &self.own {
            Some((place, own)) if at(&text, *place) == Some(own) => {
                if own == line {
                    return Ok(());
                }
                Some(*place)
            }
            _ if has_lock => notes(&text).find(|(_, note)| note.is_none()).map(|(place, _)| place),
            _ => None,
        };
        let place = match place {
            Some(place) => {
                // Not by the file above: a write to it goes to the end, whatever its place.
                OpenOptions::new().write(true).open(&self.path)?.write_all_at(line.as_bytes(), place)?;
                place
            }
            None => {
                let head = if text.is_empty() { lock::head(None) } else { String::new() };
                // One write: other processes may append at the same time.
                let new = head + line;
                if (&file).write(new.as_bytes())? < new.len() {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                (&file).stream_position()?.saturating_sub(NOTE_BYTES as u64)
            }
        };
        self.own = Some((place, line.to_owned()));
        file.sync_data()
    }

    /// Returns the notes of other processes, each with its place.
    pub(crate) fn others(&self) -> Vec<(u64, LossNote)> {
        let Ok(file) = File::open(&self.path) else { return Vec::new() };
        let text = text(&file);
        let is_own = |place| {
            self.own.as_ref().is_some_and(|(own, line)| *own == place && at(&text, place) == Some(line))
        };
        notes(&text)
            .filter(|(place, _)| !is_own(*place))
            .filter_map(|(place, note)| Some((place, note?)))
            .collect()
    }

    /// Settles the notes at these places, which are entered, and that of this process. Errors are ignored: a note that
    /// stays is entered again as a gap.
    pub(crate) fn settle(&mut self, others: &[(u64, LossNote)]) {
        let own = self.own.take();
        let places = others.iter().map(|(place, _)| *place).chain(own.map(|(place, _)| place));
        let Ok(file) = OpenOptions::new().write(true).open(&self.path) else { return };
        for place in places {
            let _ = file.write_all_at(line(None).as_bytes(), place);
        }
        let _ = file.sync_data();
    }
}

/// Returns a note as a line; `None`: one that is settled.
fn line(note: Option<LossNote>) -> String {
    let text = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
    let (word, numbers, cost) = match note {
        Some(LossNote::Waiting { from_us }) => {
            (WAITING, [Some(from_us), None, None, None], LostCost::UNKNOWN)
        }
        Some(LossNote::Ended { lost: Loss { span, cost }, alive_us }) => {
            let rows = i64::try_from(span.rows).unwrap_or(i64::MAX);
            (ENDED, [Some(span.from_us), Some(span.until_us), Some(rows), alive_us], cost)
        }
        None => (SETTLED, [None; 4], LostCost::UNKNOWN),
    };
    let [from, until, rows, alive] = numbers.map(text);
    let line = format!("{word:<7} {from:>20} {until:>20} {rows:>20} {alive:>20} {:>65}\n", cost.word());
    debug_assert_eq!(line.len(), NOTE_BYTES);
    line
}

/// Returns the notes of the lock's file with their places; `None` for those that are settled.
fn notes(text: &str) -> impl Iterator<Item = (u64, Option<LossNote>)> {
    let mut end = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        end += line.len();
        // Before it there may be a part of a note that a full disk did not take.
        let place = end.checked_sub(NOTE_BYTES)?;
        Some((place as u64, note(text.get(place..end)?)?))
    })
}

fn note(line: &str) -> Option<Option<LossNote>> {
    let mut words = line.split_ascii_whitespace();
    let word = words.next()?;
    let cost = line.split_ascii_whitespace().nth(5).map_or(LostCost::UNKNOWN, LostCost::read);
    let mut number = || words.next().and_then(|word| word.parse().ok());
    match word {
        WAITING => Some(Some(LossNote::Waiting { from_us: number()? })),
        ENDED => {
            let (from_us, until_us) = (number()?, number()?);
            let span = Span { rows: u64::try_from(number()?).ok()?, from_us, until_us };
            Some(Some(LossNote::Ended { lost: Loss { span, cost }, alive_us: number() }))
        }
        SETTLED => Some(None),
        _ => None,
    }
}

fn at(text: &str, place: u64) -> Option<&str> {
    let place = usize::try_from(place).ok()?;
    text.get(place..place.checked_add(NOTE_BYTES)?)
}

fn text(file: &File) -> String {
    let mut bytes = Vec::new();
    let mut place = 0;
    let mut part = [0; 4_096];
    while bytes.len() < READ_MAX_BYTES {
        match file.read_at(&mut part, place) {
            Ok(read @ 1..) => bytes.extend_from_slice(&part[..read]),
            _ => break,
        }
        place = bytes.len() as u64;
    }
    // All that was written here is ASCII, so that replaced bytes move no note that counts.
    bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::{LossNote, LossNotes, NOTE_BYTES};
    use crate::lock::Lock;
    use crate::lost_cost::LostCost;
    use crate::overflow::{Loss, Span};
    use crate::testing::{Place, rate};

    fn others(notes: &LossNotes) -> Vec<LossNote> {
        notes.others().into_iter().map(|(_, note)| note).collect()
    }

    #[test]
    fn note_outlives_the_process_until_it_is_settled() {
        let place = Place::new();
        let [waiting, later] = [5, 7].map(|from_us| LossNote::Waiting { from_us });
        let span = Span { rows: 3, from_us: -1, until_us: 9 };
        let cost = LostCost::of_row(&rate(3));
        let ended = LossNote::Ended { lost: Loss { span, cost }, alive_us: Some(4) };
        // Before there is a lock, and beside its holder.
        let [mut first, mut second, mut third] = [(); 3].map(|()| LossNotes::of(&place.ledger()));
        assert!(first.write(waiting, false));
        let _lock = Lock::take(&place.ledger()).unwrap();
        assert!(second.write(waiting, false) && second.write(ended, false) && first.write(later, false));
        assert_eq!(
            (others(&first), others(&second), others(&third)),
            (vec![ended], vec![later], vec![later, ended])
        );
        let entered = third.others();
        third.settle(&entered);
        assert_eq!(others(&third), []);
        // The first process still has rows, and its note has been entered as a gap.
        assert!(first.write(later, false));
        assert_eq!(others(&third), [later]);
        // The holder of the lock writes over a settled note.
        let bytes = || std::fs::metadata(place.path("x.db.lock")).unwrap().len();
        let before = bytes();
        assert!(third.write(waiting, true));
        assert_eq!((others(&first), bytes()), (vec![waiting], before));
    }

    /// A full disk takes the beginning of a note.
    #[test]
    fn part_of_a_note_hides_no_other() {
        let place = Place::new();
        let mut notes = LossNotes::of(&place.ledger());
        assert!(notes.write(LossNote::Waiting { from_us: 5 }, false));
        let path = place.path("x.db.lock");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&text.clone()[32..32 + NOTE_BYTES / 2]);
        std::fs::write(&path, text).unwrap();
        let mut second = LossNotes::of(&place.ledger());
        assert!(second.write(LossNote::Waiting { from_us: 6 }, false));
        let expected = [5, 6].map(|from_us| LossNote::Waiting { from_us });
        assert_eq!(others(&LossNotes::of(&place.ledger())), expected);
    }
}
