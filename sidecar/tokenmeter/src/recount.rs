//! Counting the tokens of answers whose server counts none, by the tokenizers that the settings
//! name. Without the feature `tokenizer` there are none to name.

use std::sync::Arc;

use meter::Record;

use crate::desk::Desk;
use crate::plan::TokenizerFile;
use crate::start_error::StartError;

/// Counts and books the records that come with a text.
pub(crate) struct Recount {
    desk: Arc<Desk>,
    #[cfg(feature = "tokenizer")]
    counting: Option<tokenizer::Counting<Box<Record>>>,
}

impl Recount {
    /// Reads the tokenizers and starts their thread, if there are any.
    #[cfg(feature = "tokenizer")]
    pub(crate) fn start(files: &[TokenizerFile], desk: &Arc<Desk>) -> Result<Self, StartError> {
        use tokenizer::{Counting, Tokenizers};
        let desk = Arc::clone(desk);
        if files.is_empty() {
            return Ok(Self { desk, counting: None });
        }
        let named = files.iter().map(|file| (file.model.clone(), file.path.clone()));
        let tokenizers = Tokenizers::load(named).map_err(|errors| {
            let errors = errors.iter().map(ToString::to_string).collect();
            StartError::Tokenizers { errors, origin: files[0].origin.clone() }
        })?;
        let booking = Arc::clone(&desk);
        let counting = Counting::start(Arc::new(tokenizers), move |record: Box<Record>, tokens| {
            booking.book(*record, tokens);
        })
        .map_err(StartError::Thread)?;
        Ok(Self { desk, counting: Some(counting) })
    }

    /// There are no tokenizers; the plan has refused those that were named.
    #[cfg(not(feature = "tokenizer"))]
    pub(crate) fn start(_files: &[TokenizerFile], desk: &Arc<Desk>) -> Result<Self, StartError> {
        Ok(Self { desk: Arc::clone(desk) })
    }

    /// Takes a record and the text to count. Whatever happens, it is booked.
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
            self.desk.book(*record, None);
        }
    }

    /// Takes a record whose text nobody here can count.
    #[cfg(not(feature = "tokenizer"))]
    pub(crate) fn submit(&self, record: Record, _text: relay::Text) {
        self.desk.book(record, None);
    }
}

/// The text that the insides of a JSON string stand for. Bytes that are no UTF-8 become the
/// replacement character, as they did for every client.
#[cfg(feature = "tokenizer")]
fn plain(inside: &[u8]) -> Option<String> {
    let quoted = format!("\"{}\"", String::from_utf8_lossy(inside));
    serde_json::from_str(&quoted).ok()
}
