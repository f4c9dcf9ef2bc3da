//! Local token counts, for models whose server reports none. A count is an estimate of the server's
//! count: the text is the server's, but the tokens it sampled may differ from the tokenization of this
//! text.
//!
//! ```
//! # let json = r#"{"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"Whitespace"},
//! #   "model":{"type":"WordLevel","vocab":{"[UNK]":0,"hello":1},"unk_token":"[UNK]"}}"#;
//! # let path = std::env::temp_dir().join(format!("tokenizer-{}.json", std::process::id()));
//! # std::fs::write(&path, json).unwrap();
//! use std::sync::{Arc, mpsc};
//! use tokenizer::{Counting, Text, Tokenizers};
//!
//! let tokenizers = Tokenizers::load([("tiny".to_owned(), path.clone())].into_iter()).unwrap();
//! let (done, counted) = mpsc::channel();
//! let counting = Counting::start(Arc::new(tokenizers), move |job, tokens| {
//!     let _ = done.send((job, tokens));
//! }).unwrap();
//! let text = Text::new("hello, hello".to_owned()).unwrap();
//! counting.submit("job 1", "tiny".into(), text).unwrap();
//! assert_eq!(counted.recv().unwrap(), ("job 1", Some(3)));
//! # std::fs::remove_file(path).unwrap();
//! ```
//!
//! Laws: this is the only crate that knows the `tokenizers` library; counting runs on a thread of its own behind a
//! bounded queue, so that no stream waits for it; no part of a text is kept, logged or put into an
//! error (law 11), not even by a panic.

mod counting;
pub mod limits;
mod panic_hook;
mod text;
mod tokenizers;

pub use counting::Counting;
pub use text::Text;
pub use tokenizers::{LoadError, Reason, Tokenizers};
