//! Detection of one file under two names, such as a copy left in the ledger's folder, which would be charged twice.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::error::{Error, Fault};
use crate::file::{self, File};

/// The files seen so far, by their ids.
#[derive(Debug, Default)]
pub(crate) struct SeenFiles(HashMap<Vec<u8>, PathBuf>);

impl SeenFiles {
    /// Notes a file.
    ///
    /// # Errors
    /// If it was noted under another name, or cannot be read.
    pub(crate) fn see(&mut self, file: &File) -> Result<(), Error> {
        let Some(instance) = file::bytes(&file.connection, "instance")? else { return Ok(()) };
        match self.0.insert(instance, file.path.clone()) {
            None => Ok(()),
            Some(other) => {
                let message = format!(
                    "it is the same ledger file as {}: move the older copy out of the folder, else its exchanges \
                     count twice",
                    other.display()
                );
                Err(Error::new(Fault::Other, message).of(file.path.display()))
            }
        }
    }
}
