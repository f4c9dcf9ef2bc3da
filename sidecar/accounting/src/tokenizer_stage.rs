//! Counts the tokens of responses whose server reports no counts, by the configured tokenizers. They need the
//! feature `tokenizer`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use meter::Record;

use crate::pipeline::Pipeline;

/// The error of a start.
#[derive(Debug)]
pub enum Error {
    /// Tokenizers could not be read; the error of each.
    Tokenizers(Vec<String>),
    /// The thread could not be created.
    Thread(io::Error),
}

/// The stage that counts the text of a record before it enters the pipeline.
pub struct TokenizerStage {
    pipeline: Arc<Pipeline>,
    #[cfg(feature = "tokenizer")]
    counting: Option<tokenizer::Counting<Arc<Record>>>,
}

impl TokenizerStage {
    /// Loads the tokenizers, each a model and the path of its file, and starts their thread, if there are any.
    #[cfg(feature = "tokenizer")]
    pub fn start(files: Vec<(String, PathBuf)>, pipeline: &Arc<Pipeline>) -> Result<Self, Error> {
        use tokenizer::{Counting, Tokenizers};
        let pipeline = Arc::clone(pipeline);
        if files.is_empty() {
            return Ok(Self { pipeline, counting: None });
        }
        let tokenizers = Tokenizers::load(files.into_iter())
            .map_err(|errors| Error::Tokenizers(errors.iter().map(ToString::to_string).collect()))?;
        let uncounted = Arc::clone(&pipeline);
        let counting = Counting::start(Arc::new(tokenizers), move |record: Arc<Record>, tokens| {
            uncounted.enter_uncounted(record, tokens);
        })
        .map_err(Error::Thread)?;
        Ok(Self { pipeline, counting: Some(counting) })
    }

    /// Returns a stage without tokenizers; the plan rejects configured ones.
    #[cfg(not(feature = "tokenizer"))]
    pub fn start(_files: Vec<(String, PathBuf)>, pipeline: &Arc<Pipeline>) -> Result<Self, Error> {
        Ok(Self { pipeline: Arc::clone(pipeline) })
    }

    /// Counts a record's text. The record enters the pipeline even if it cannot be counted.
    #[cfg(feature = "tokenizer")]
    pub fn submit(&self, record: Arc<Record>, text: relay::Text) {
        let text = plain(text.as_bytes()).and_then(tokenizer::Text::new);
        let refused = match (&self.counting, text) {
            (Some(counting), Some(text)) => {
                let model = Arc::clone(&record.identity.model);
                counting.submit(record, model, text).err()
            }
            _ => Some(record),
        };
        if let Some(record) = refused {
            self.pipeline.enter_uncounted(record, None);
        }
    }

    /// Enters a record without counting its text.
    #[cfg(not(feature = "tokenizer"))]
    pub fn submit(&self, record: Arc<Record>, _text: relay::Text) {
        self.pipeline.enter_uncounted(record, None);
    }
}

/// Decodes the inside of a JSON string. Invalid UTF-8 becomes the replacement character, as in every client.
#[cfg(feature = "tokenizer")]
fn plain(inside: &[u8]) -> Option<String> {
    let quoted = format!("\"{}\"", String::from_utf8_lossy(inside));
    serde_json::from_str(&quoted).ok()
}
