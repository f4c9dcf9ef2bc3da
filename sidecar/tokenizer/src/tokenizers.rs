//! The tokenizers of the configured models, read once at the start.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::models::ModelWrapper;
use tokenizers::utils::parallelism::set_parallelism;
use tokenizers::{Model, Tokenizer};

use crate::limits::{COMPLAINT_BYTES, FILE_BYTES, TEXT_BYTES};

/// Tokenizers by the name of the model.
pub struct Tokenizers {
    by_model: BTreeMap<String, Arc<Tokenizer>>,
}

impl Tokenizers {
    /// Reads a tokenizer for each model: a Hugging Face `tokenizer.json`, or a folder that holds one.
    /// Models that name the same file share it.
    ///
    /// # Errors
    ///
    /// All that is wrong, at once.
    pub fn load(models: impl Iterator<Item = (String, PathBuf)>) -> Result<Self, Vec<LoadError>> {
        // The library would start a thread per core; one thread of ours is what counting may take.
        set_parallelism(false);
        let mut by_path: BTreeMap<PathBuf, Arc<Tokenizer>> = BTreeMap::new();
        let (mut by_model, mut errors) = (BTreeMap::new(), Vec::new());
        for (model, path) in models {
            let path = if path.is_dir() { path.join("tokenizer.json") } else { path };
            let found = match by_path.get(&path) {
                _ if by_model.contains_key(&model) => Err(Reason::Twice),
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

    /// Whether there is a tokenizer for this model, by its exact name.
    pub fn knows(&self, model: &str) -> bool {
        self.by_model.contains_key(model)
    }

    /// Tokens of `text`, without those a template would put around it. `None` if there is no tokenizer
    /// for the model, if the text has more than [`TEXT_BYTES`], or if its vocabulary cannot say it.
    pub fn count(&self, model: &str, text: &str) -> Option<u64> {
        if text.len() > TEXT_BYTES {
            return None;
        }
        // The library's error may quote the text.
        let encoding = self.by_model.get(model)?.encode_fast(text, false).ok()?;
        Some(encoding.len() as u64)
    }
}

impl fmt::Debug for Tokenizers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokenizers").field(&self.by_model.keys().collect::<Vec<_>>()).finish()
    }
}

/// Reads a tokenizer and takes from it what has no place in counting.
fn read(path: &Path) -> Result<Tokenizer, Reason> {
    let file = File::open(path).map_err(Reason::Unreadable)?;
    let mut json = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut json).map_err(Reason::Unreadable)?;
    if json.len() as u64 > FILE_BYTES {
        return Err(Reason::TooLong);
    }
    let mut tokenizer = Tokenizer::from_bytes(&json).map_err(|error| Reason::invalid(&error))?;
    // Files made for training carry both: one would cut the text, the other lengthen it.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|error| Reason::invalid(&error))?;
    // The library remembers the words it met; of a text nothing is kept.
    let mut model: ModelWrapper = tokenizer.get_model().clone();
    model.resize_cache(0);
    tokenizer.with_model(model);
    // An empty vocabulary reads well and counts nothing.
    if tokenizer.get_model().get_vocab_size() == 0 {
        return Err(Reason::Invalid("its vocabulary is empty".to_owned()));
    }
    Ok(tokenizer)
}

/// A tokenizer that cannot be used. Says which file, what is wrong and what to do.
#[derive(Debug)]
pub struct LoadError {
    /// The model it was for.
    pub model: String,
    /// The file that was read.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a tokenizer.
#[derive(Debug)]
pub enum Reason {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// It has more than [`FILE_BYTES`].
    TooLong,
    /// It is no tokenizer the library knows; with the library's complaint, cut to
    /// [`COMPLAINT_BYTES`].
    Invalid(String),
    /// The model is named twice.
    Twice,
}

impl Reason {
    fn invalid(error: &impl ToString) -> Self {
        let mut complaint = error.to_string();
        complaint.truncate(complaint.floor_char_boundary(COMPLAINT_BYTES));
        Self::Invalid(complaint)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "the tokenizer of model {:?}, {path}: ", self.model)?;
        match &self.reason {
            Reason::Unreadable(error) => write!(
                f,
                "cannot be read: {error}. Give the path of the model's tokenizer.json or of the folder it is in"
            ),
            Reason::TooLong => write!(
                f,
                "has more than {} MiB, so it is not a tokenizer.json. Give the path of the model's own",
                FILE_BYTES >> 20
            ),
            Reason::Invalid(complaint) => write!(
                f,
                "is not a Hugging Face tokenizer.json that can be used: {complaint}. \
                 A tokenizer.model or tokenizer_config.json is another format; fetch the model's tokenizer.json"
            ),
            Reason::Twice => write!(f, "is given for a model that has one. Name each model once"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Unreadable(error) => Some(error),
            Reason::TooLong | Reason::Invalid(_) | Reason::Twice => None,
        }
    }
}
