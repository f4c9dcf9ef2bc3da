//! The token files: who can read the drain's may order the drain, and who can read the admin address's its numbers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A file whose first line is the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Names the file at `path`.
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
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
        let mut start = Vec::new();
        File::open(&self.0)?.take(LINE_MAX_BYTES as u64 + 1).read_to_end(&mut start)?;
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        if line.len() > LINE_MAX_BYTES {
            return Err(invalid("its first line is longer than 4096 bytes"));
        }
        let line = str::from_utf8(line).map_err(|_| invalid("its first line is not UTF-8"))?;
        // Editors on Windows begin a file with a byte order mark.
        match line.trim_start_matches(BYTE_ORDER_MARK).trim() {
            "" => Err(invalid("its first line is empty")),
            token => Ok(token.to_owned()),
        }
    }

    /// Returns the text of a failed read for a client, which names the setting and no path.
    pub(crate) fn unreadable(setting: &str, error: &io::Error) -> String {
        format!("the file of {setting} cannot be read: {error}")
    }

    /// Compares `token` with the file's, in constant time.
    pub(crate) fn is(&self, token: &str) -> io::Result<bool> {
        // The equality of these hashes takes constant time.
        Ok(blake3::hash(token.as_bytes()) == blake3::hash(self.read()?.as_bytes()))
    }
}

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Maximum bytes of the first line: a header field of a request can hold them.
const LINE_MAX_BYTES: usize = 4096;

const BYTE_ORDER_MARK: char = '\u{feff}';

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
        assert_eq!(fs::metadata(&token.0).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(token.is(&first).unwrap() && !token.is(&first[1..]).unwrap() && !token.is("").unwrap());
        token.create().unwrap();
        assert_eq!(token.read().unwrap(), first);
        let other = TokenFile::at(folder.at("other.token"));
        other.create().unwrap();
        assert_ne!(other.read().unwrap(), first);
        fs::write(&token.0, " given by a Secret \nsecond line\n").unwrap();
        assert!(token.is("given by a Secret").unwrap() && !token.is(&first).unwrap());
        fs::write(&token.0, "\u{feff}of an editor\r\n").unwrap();
        assert!(token.is("of an editor").unwrap(), "a byte order mark is not part of the token");
        let longest = "x".repeat(4096);
        fs::write(&token.0, format!("{longest}\n\u{fc}\n")).unwrap();
        assert!(token.is(&longest).unwrap());
        fs::write(&token.0, format!("{longest}x\n")).unwrap();
        let error = token.is(&longest).unwrap_err().to_string();
        assert!(error.contains("longer than 4096 bytes"), "it is not cut: {error}");
        fs::write(&token.0, b"\xfc\n").unwrap();
        assert!(token.read().unwrap_err().to_string().contains("not UTF-8"));
        assert!(TokenFile::at("/dev/zero").read().is_err(), "a device may have no end, and a FIFO no writer");
        fs::write(&token.0, "\n").unwrap();
        assert!(token.is("").is_err(), "an empty token permits nothing");
    }
}
