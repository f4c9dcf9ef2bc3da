//! Local counts by topic: against what real servers counted, against the library's own one-shot call,
//! and what tokenizer files may get wrong.

mod counts;
mod files;

use std::path::{Path, PathBuf};

use tokenizer::Tokenizers;

/// The tokenizer of the tiny model that the recordings' servers served (`tests/engines/model` writes
/// it).
fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny/tokenizer.json")
}

fn load(models: &[(&str, &Path)]) -> Result<Tokenizers, Vec<String>> {
    Tokenizers::load(models.iter().map(|(model, path)| ((*model).to_owned(), path.to_path_buf())))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// A file that is gone when its test is over.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a temporary file");
        Self(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
