//! Reloads the price file.

use std::path::Path;

use accounting::charger::Charger;
use metrics::ReloadedFile;

use super::FileWatch;
use crate::plan::prices;

/// Returns the watch of the price file at `path`: a new book of the same currency replaces the current one.
pub(crate) fn watch(path: &Path, charger: Charger) -> FileWatch {
    let shown = path.display().to_string();
    FileWatch::new(ReloadedFile::Prices, path, prices::FILE_BYTES, move |text| {
        let (book, warnings) = prices::parse(&shown, text)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        if charger.replace_book(book, &shown)? {
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        Ok(())
    })
}
