//! The token files: who can read the drain's may order the drain, and who can read the admin address's its numbers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file whose first line is the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Names the file at `path`.
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the file with a random token and mode 0600, if it does not exist.
    fn create(&self) -> io::Result<()> {
        if self.0.exists() {
            return Ok(());
        }
        let mut random = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut new = self.0.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        // One that a killed process left may have another mode.
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(format!("{token}\n").as_bytes())?;
        // Whole or not at all: a reader never finds half a token.
        fs::rename(new, &self.0)
    }

    /// Creates the file if it does not exist. A failure is logged, with what fails then.
    pub(crate) fn create_or_warn(&self, consequence: &str) {
        if let Err(error) = self.create() {
            let path = self.0.display();
            tracing::error!(%error, "{consequence}: the token file {path} cannot be created");
        }
    }

    /// Returns the token. The file is read each time, so that a new token is valid at once.
    pub(crate) fn read(&self) -> io::Result<String> {
        // Opening a FIFO would wait for its writer.
        if !fs::metadata(&self.0)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let mut text = String::new();
        File::open(&self.0)?.take(FILE_MAX_BYTES).read_to_string(&mut text)?;
        match text.lines().next().map(str::trim) {
            Some(token) if !token.is_empty() => Ok(token.to_owned()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "its first line is empty")),
        }
    }

    /// Compares `token` with the file's, in constant time.
    pub(crate) fn is(&self, token: &str) -> io::Result<bool> {
        // The equality of these hashes takes constant time.
        Ok(blake3::hash(token.as_bytes()) == blake3::hash(self.read()?.as_bytes()))
    }
}

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Bytes that are read of the file.
const FILE_MAX_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::TokenFile;
    use crate::folder::Folder;

    #[test]
    fn file_is_created_once_with_a_private_token() {
        let folder = Folder::new("token-file");
        let token = TokenFile::at(folder.at("drain.token"));
        assert!(token.is("x").is_err(), "there is no file yet");
        token.create().unwrap();
        let first = token.read().unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(fs::metadata(token.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(token.is(&first).unwrap() && !token.is(&first[1..]).unwrap() && !token.is("").unwrap());
        token.create().unwrap();
        assert_eq!(token.read().unwrap(), first);
        let other = TokenFile::at(folder.at("other.token"));
        other.create().unwrap();
        assert_ne!(other.read().unwrap(), first);
        fs::write(token.path(), " given by a Secret \nsecond line\n").unwrap();
        assert!(token.is("given by a Secret").unwrap() && !token.is(&first).unwrap());
        assert!(TokenFile::at("/dev/zero").read().is_err(), "a device may have no end, and a FIFO no writer");
        fs::write(token.path(), "\n").unwrap();
        assert!(token.is("").is_err(), "an empty token permits nothing");
    }
}
