//! The content of files that settings name: read whole within a bound, or not at all.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Reads a file of at most `most` bytes that may be read again later.
///
/// # Errors
/// If it cannot be read, is a pipe, or has more bytes.
pub fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.file_type().is_fifo() {
        // Opening it would wait for a writer.
        let problem = "it is a pipe, which cannot be read again; use a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    bounded_once(path, most)
}

/// As [`bounded`], for content that is read only once, also from a pipe, as in `--config <(program)`.
///
/// # Errors
/// If it cannot be read, or has more bytes.
pub fn bounded_once(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(content)
}

/// Returns content as text.
///
/// # Errors
/// If it is not UTF-8.
pub fn text(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn content_is_bounded_and_no_pipe() {
        let path = std::env::temp_dir().join(format!("tokenmeter-content-{}", std::process::id()));
        fs::write(&path, "four").unwrap();
        assert_eq!(bounded(&path, 4).unwrap(), b"four");
        assert_eq!(bounded(&path, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        assert_eq!(text(vec![0xff]).unwrap_err().to_string(), "it is not UTF-8");
        fs::remove_file(&path).unwrap();
        assert_eq!(bounded(&path, 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = bounded(&path, 4).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert_eq!(error, "it is a pipe, which cannot be read again; use a file");
    }
}
