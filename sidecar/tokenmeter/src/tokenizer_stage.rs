//! Counts the tokens of responses whose server reports no counts, by the configured tokenizers. They need the
//! feature `tokenizer`.

use std::sync::Arc;

use meter::Record;

use crate::pipeline::Pipeline;
use crate::plan::TokenizerFile;
use crate::start_error::StartError;

/// The stage that counts the text of a record before it enters the pipeline.
pub(crate) struct TokenizerStage {
    pipeline: Arc<Pipeline>,
    #[cfg(feature = "tokenizer")]
    counting: Option<tokenizer::Counting<Box<Record>>>,
}

impl TokenizerStage {
    /// Loads the tokenizers and starts their thread, if any are configured.
    #[cfg(feature = "tokenizer")]
    pub(crate) fn start(files: &[TokenizerFile], pipeline: &Arc<Pipeline>) -> Result<Self, StartError> {
        use tokenizer::{Counting, Tokenizers};
        let pipeline = Arc::clone(pipeline);
        if files.is_empty() {
            return Ok(Self { pipeline, counting: None });
        }
        let named = files.iter().map(|file| (file.model.clone(), file.path.clone()));
        let tokenizers = Tokenizers::load(named).map_err(|errors| {
            let errors = errors.iter().map(ToString::to_string).collect();
            StartError::Tokenizers { errors, origin: files[0].origin.clone() }
        })?;
        let uncounted = Arc::clone(&pipeline);
        let counting = Counting::start(Arc::new(tokenizers), move |record: Box<Record>, tokens| {
            uncounted.enter_uncounted(*record, tokens);
        })
        .map_err(StartError::Thread)?;
        Ok(Self { pipeline, counting: Some(counting) })
    }

    /// Returns a stage without tokenizers; the plan rejects configured ones.
    #[cfg(not(feature = "tokenizer"))]
    pub(crate) fn start(_files: &[TokenizerFile], pipeline: &Arc<Pipeline>) -> Result<Self, StartError> {
        Ok(Self { pipeline: Arc::clone(pipeline) })
    }

    /// Counts a record's text. The record enters the pipeline even if it cannot be counted.
    #[cfg(feature = "tokenizer")]
    pub(crate) fn submit(&self, record: Record, text: relay::Text) {
        let text = plain(text.as_bytes()).and_then(tokenizer::Text::new);
        let refused = match (&self.counting, text) {
            (Some(counting), Some(text)) => {
                let model = Arc::clone(&record.identity.model);
                counting.submit(Box::new(record), model, text).err()
            }
            _ => Some(Box::new(record)),
        };
        if let Some(record) = refused {
            self.pipeline.enter_uncounted(*record, None);
        }
    }

    /// Enters a record without counting its text.
    #[cfg(not(feature = "tokenizer"))]
    pub(crate) fn submit(&self, record: Record, _text: relay::Text) {
        self.pipeline.enter_uncounted(record, None);
    }
}

/// Decodes the inside of a JSON string. Invalid UTF-8 becomes the replacement character, as in every client.
#[cfg(feature = "tokenizer")]
fn plain(inside: &[u8]) -> Option<String> {
    let quoted = format!("\"{}\"", String::from_utf8_lossy(inside));
    serde_json::from_str(&quoted).ok()
}
