//! Local counts: against recorded server counts, against the library's one-shot call,
//! and the errors of tokenizer files.

mod counts;
mod files;

use std::path::{Path, PathBuf};

use tokenizer::Tokenizers;

/// Returns the path of the tokenizer of the tiny model in the recordings (written by
/// `tests/engines/model`).
fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny/tokenizer.json")
}

fn load(models: &[(&str, &Path)]) -> Result<Tokenizers, Vec<String>> {
    Tokenizers::load(models.iter().map(|(model, path)| ((*model).to_owned(), path.to_path_buf())))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// A file that is removed at the end of its test.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a temporary file");
        Self(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
