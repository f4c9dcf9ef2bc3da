//! The tokenizers of the configured models, loaded once at the start.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::models::ModelWrapper;
use tokenizers::utils::parallelism::set_parallelism;
use tokenizers::{Model, Tokenizer};

use crate::limits::{FILE_MAX_BYTES, MESSAGE_MAX_BYTES, TEXT_MAX_BYTES};

/// Tokenizers by model name.
pub struct Tokenizers {
    by_model: BTreeMap<String, Arc<Tokenizer>>,
}

impl Tokenizers {
    /// Loads a tokenizer for each model: a Hugging Face `tokenizer.json`, or a folder that contains one.
    /// Models with the same file share it.
    ///
    /// # Errors
    ///
    /// Returns all errors together.
    pub fn load(models: impl Iterator<Item = (String, PathBuf)>) -> Result<Self, Vec<LoadError>> {
        // By default the library starts a thread per core; counting may use only its own thread.
        set_parallelism(false);
        let mut by_path: BTreeMap<PathBuf, Arc<Tokenizer>> = BTreeMap::new();
        let (mut by_model, mut errors) = (BTreeMap::new(), Vec::new());
        for (model, path) in models {
            let path = if path.is_dir() { path.join("tokenizer.json") } else { path };
            let found = match by_path.get(&path) {
                _ if by_model.contains_key(&model) => Err(Reason::Duplicate),
                Some(known) => Ok(Arc::clone(known)),
                None => read(&path).map(Arc::new),
            };
            match found {
                Ok(tokenizer) => {
                    by_path.insert(path, Arc::clone(&tokenizer));
                    by_model.insert(model, tokenizer);
                }
                Err(reason) => errors.push(LoadError { model, path, reason }),
            }
        }
        if errors.is_empty() { Ok(Self { by_model }) } else { Err(errors) }
    }

    /// Returns true if there is a tokenizer for this exact model name.
    pub fn has(&self, model: &str) -> bool {
        self.by_model.contains_key(model)
    }

    /// Returns the tokens of `text`, without those of a template. `None` if there is no tokenizer
    /// for the model, if the text is longer than [`TEXT_MAX_BYTES`], or if the vocabulary cannot encode it.
    pub fn count(&self, model: &str, text: &str) -> Option<u64> {
        if text.len() > TEXT_MAX_BYTES {
            return None;
        }
        // The error is dropped because it may quote the text.
        let encoding = self.by_model.get(model)?.encode_fast(text, false).ok()?;
        Some(encoding.len() as u64)
    }
}

impl fmt::Debug for Tokenizers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokenizers").field(&self.by_model.keys().collect::<Vec<_>>()).finish()
    }
}

/// Loads a tokenizer, and removes the parts that would change a count or keep a text.
fn read(path: &Path) -> Result<Tokenizer, Reason> {
    let file = File::open(path).map_err(Reason::Unreadable)?;
    let mut json = Vec::new();
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut json).map_err(Reason::Unreadable)?;
    if json.len() as u64 > FILE_MAX_BYTES {
        return Err(Reason::TooLarge);
    }
    let mut tokenizer = Tokenizer::from_bytes(&json).map_err(|error| Reason::invalid(&error))?;
    // Files made for training have both: one would cut the text, the other extend it.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|error| Reason::invalid(&error))?;
    // The library caches words; no part of a text may be kept.
    let mut model: ModelWrapper = tokenizer.get_model().clone();
    model.resize_cache(0);
    tokenizer.with_model(model);
    // An empty vocabulary loads without an error and counts nothing.
    if tokenizer.get_model().get_vocab_size() == 0 {
        return Err(Reason::Invalid("its vocabulary is empty".to_owned()));
    }
    Ok(tokenizer)
}

/// A tokenizer that cannot be loaded. Its text names the file, the reason and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("the tokenizer of model {model:?}, {}: {reason}", path.display())]
pub struct LoadError {
    /// The model.
    pub model: String,
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// The reason that a tokenizer cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The file cannot be read.
    #[error("cannot be read: {0}. Give the path of the model's tokenizer.json or of its folder")]
    Unreadable(io::Error),
    /// It is longer than [`FILE_MAX_BYTES`].
    #[error(
        "has more than {} MiB, so it is not a tokenizer.json. Give the path of the model's own",
        FILE_MAX_BYTES >> 20
    )]
    TooLarge,
    /// The library cannot parse it; with the library's message, cut to
    /// [`MESSAGE_MAX_BYTES`].
    #[error(
        "is not a usable Hugging Face tokenizer.json: {0}. \
         A tokenizer.model or tokenizer_config.json is another format; fetch the model's tokenizer.json"
    )]
    Invalid(String),
    /// The model has two tokenizers.
    #[error("is the second one of its model. Name each model once")]
    Duplicate,
}

impl Reason {
    fn invalid(error: &impl ToString) -> Self {
        let mut message = error.to_string();
        message.truncate(message.floor_char_boundary(MESSAGE_MAX_BYTES));
        Self::Invalid(message)
    }
}
