//! Handles: 64-bit numbers in place of pointers. A handle is a slot and the slot's generation, so a handle that was
//! freed, forged, or made for an object of another type is detected and never dereferenced.
//!
//! | bits  | content                                                        |
//! |-------|----------------------------------------------------------------|
//! | 0–23  | the slot, plus 1: no handle is 0                                |
//! | 24–27 | the type of the object                                         |
//! | 28–63 | the generation of the slot: how often it was used before, plus 1 |
//!
//! A slot whose generations are used up is not used again, so no handle ever means two objects.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::status::{Fault, Status};

/// The bits of a handle that hold the slot.
const SLOT_BITS: u32 = 24;
/// The bits of a handle that hold the type.
const KIND_BITS: u32 = 4;
/// The last generation of a slot.
const GENERATION_MAX: u64 = u64::MAX >> (SLOT_BITS + KIND_BITS);
/// Slots that are allocated together.
const CHUNK_SLOTS: usize = 256;
/// Chunks of a table: a million objects of one type.
const CHUNKS: usize = 4096;

/// The objects of one type that C holds handles of. Every method may be called from any thread; calls on the same
/// object wait for each other.
pub(crate) struct Table<T> {
    kind: u64,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    unused: Mutex<Unused>,
}

struct Slot<T>(Mutex<State<T>>);

struct State<T> {
    generation: u64,
    object: Object<T>,
}

enum Object<T> {
    None,
    Live(Box<T>),
    /// A panic left it half changed. Dropping it may panic, too, and it holds nothing but memory.
    Broken(ManuallyDrop<Box<T>>),
}

#[derive(Default)]
struct Unused {
    freed: Vec<usize>,
    /// Slots from here on were never used.
    next: usize,
}

impl<T> Table<T> {
    /// An empty table for objects of type `kind`, a number from 1 to 15.
    pub(crate) const fn new(kind: u64) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS, "the handle has four bits for the type");
        Self {
            kind,
            chunks: [const { OnceLock::new() }; CHUNKS],
            unused: Mutex::new(Unused { freed: Vec::new(), next: 0 }),
        }
    }

    /// Stores an object and returns its handle.
    pub(crate) fn insert(&self, object: T) -> Result<u64, Fault> {
        self.insert_with(|| object)
    }

    /// Stores the object that `make` returns, and returns its handle. There is none if the table is full.
    pub(crate) fn insert_with(&self, make: impl FnOnce() -> T) -> Result<u64, Fault> {
        let at = self.unused_slot().ok_or(Status::Limit)?;
        let chunk = self.chunks[at / CHUNK_SLOTS].get_or_init(|| {
            let slot = || Slot(Mutex::new(State { generation: 0, object: Object::None }));
            std::iter::repeat_with(slot).take(CHUNK_SLOTS).collect()
        });
        let object = Box::new(make());
        let mut state = lock(&chunk[at % CHUNK_SLOTS].0);
        state.generation += 1;
        state.object = Object::Live(object);
        let slot = at as u64 + 1;
        Ok(state.generation << (SLOT_BITS + KIND_BITS) | self.kind << SLOT_BITS | slot)
    }

    /// Calls `act` with the object of a handle. If it panics, the object can only be freed from then on.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        handle: u64,
        act: impl FnOnce(&mut T) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let (_, mut state) = self.find(handle)?;
        let Object::Live(object) = &mut state.object else { return Err(Status::Panic.into()) };
        match catch_unwind(AssertUnwindSafe(|| act(object))) {
            Ok(result) => result,
            Err(_panic) => {
                if let Object::Live(object) = std::mem::replace(&mut state.object, Object::None) {
                    state.object = Object::Broken(ManuallyDrop::new(object));
                }
                Err(Status::Panic.into())
            }
        }
    }

    /// Removes the object of a handle; `None` if a panic broke it.
    pub(crate) fn take(&self, handle: u64) -> Result<Option<Box<T>>, Fault> {
        self.take_or(handle, |_| ())
    }

    /// Removes the object of a handle; calls `salvage` with it and returns `None` if a panic broke it.
    pub(crate) fn take_or(&self, handle: u64, salvage: impl FnOnce(&mut T)) -> Result<Option<Box<T>>, Fault> {
        let (at, mut state) = self.find(handle)?;
        let mut object = match std::mem::replace(&mut state.object, Object::None) {
            Object::Live(object) => Ok(object),
            Object::Broken(object) => Err(Some(object)),
            Object::None => Err(None),
        };
        let is_reusable = state.generation < GENERATION_MAX;
        drop(state);
        if is_reusable {
            lock(&self.unused).freed.push(at);
        }
        if let Err(Some(broken)) = &mut object {
            // What fails once may fail again.
            let _ = catch_unwind(AssertUnwindSafe(|| salvage(broken)));
        }
        Ok(object.ok())
    }

    /// Removes the object of a handle, and calls `act` with it. Calls `salvage` with it if a panic broke it before, or if
    /// `act` panics.
    pub(crate) fn take_with<R>(
        &self,
        handle: u64,
        act: impl FnOnce(&mut T) -> R,
        salvage: impl Fn(&mut T),
    ) -> Result<R, Fault> {
        let object = self.take_or(handle, &salvage)?.ok_or(Status::Panic)?;
        // Dropping what a panic left may panic, too.
        let mut object = ManuallyDrop::new(object);
        match catch_unwind(AssertUnwindSafe(|| act(&mut object))) {
            Ok(result) => {
                drop(ManuallyDrop::into_inner(object));
                Ok(result)
            }
            Err(_panic) => {
                let _ = catch_unwind(AssertUnwindSafe(|| salvage(&mut object)));
                Err(Status::Panic.into())
            }
        }
    }

    fn unused_slot(&self) -> Option<usize> {
        let mut unused = lock(&self.unused);
        if let Some(at) = unused.freed.pop() {
            return Some(at);
        }
        let at = unused.next;
        (at < CHUNKS * CHUNK_SLOTS).then(|| {
            unused.next += 1;
            at
        })
    }

    #[inline]
    fn find(&self, handle: u64) -> Result<(usize, MutexGuard<'_, State<T>>), Fault> {
        if handle == 0 {
            return Err(Status::Null.into());
        }
        let (slot, kind) = (handle & ((1 << SLOT_BITS) - 1), handle >> SLOT_BITS & ((1 << KIND_BITS) - 1));
        if kind != self.kind {
            return Err(Status::Handle.into());
        }
        let at = usize::try_from(slot).ok().and_then(|slot| slot.checked_sub(1)).ok_or(Status::Handle)?;
        let chunk = self.chunks.get(at / CHUNK_SLOTS).and_then(OnceLock::get).ok_or(Status::Handle)?;
        let state = lock(&chunk[at % CHUNK_SLOTS].0);
        match &state.object {
            Object::Live(_) | Object::Broken(_) if state.generation == handle >> (SLOT_BITS + KIND_BITS) => {
                Ok((at, state))
            }
            _ => Err(Status::Handle.into()),
        }
    }
}

/// Locks; a thread that panicked cannot have left the value half changed, because panics are caught before.
#[inline]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
