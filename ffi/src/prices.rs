//! Price books.

use std::sync::Arc;

use price::Book;

use crate::entry::entry;
use crate::handles::{PRICES, PricesHandle};
use crate::slice::{self, Slice};
use crate::status::{Fault, Status};

/// Reads a price book from the content of a price file, in YAML (sidecar/price/prices.md describes it; `tokenmeter
/// prices init` writes one). `TM_STATUS_PRICES` if it is invalid: the message lists all errors.
///
/// # Safety
/// `yaml` points to its bytes; `prices` is NULL or points to a handle, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_prices_read(yaml: Slice, prices: *mut PricesHandle) -> Status {
    entry(|| {
        slice::check(prices)?;
        // SAFETY: the caller's contract.
        let text = unsafe { yaml.text() }?;
        let (book, _warnings) = Book::read(text).map_err(|errors| {
            let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
            Fault::new(Status::Prices, lines.join("\n"))
        })?;
        let id = PRICES.insert(Arc::new(book))?;
        // SAFETY: the caller's contract.
        unsafe { slice::write(prices, PricesHandle { id }) }?;
        Ok(Status::Ok)
    })
}

/// Frees a price book. A meter that uses it keeps it.
#[unsafe(no_mangle)]
pub extern "C" fn tm_prices_free(prices: PricesHandle) -> Status {
    entry(|| PRICES.take(prices.id).map(|_| Status::Ok))
}
