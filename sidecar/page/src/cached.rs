//! JSON that is expensive to make: made when it is asked for, and then shared for a while.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::source::{Content, JSON};

/// JSON that is made at most once per maximum age, however many requests ask for it. A clone shares it.
#[derive(Clone)]
pub struct Cached(Arc<Inner>);

struct Inner {
    max_age: Duration,
    make: Box<dyn Fn() -> io::Result<String> + Send + Sync>,
    /// The last text, and the time at which its making began.
    last: Mutex<Option<(Instant, Arc<str>)>>,
}

impl Cached {
    /// Returns JSON that `make` makes, on a thread that may block. The text of its error is the response's.
    pub fn new(max_age: Duration, make: impl Fn() -> io::Result<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { max_age, make: Box::new(make), last: Mutex::default() }))
    }

    /// Returns the content of a response.
    pub fn content(&self) -> Content {
        let cached = self.clone();
        let write = move |out: &mut dyn io::Write| out.write_all(cached.text()?.as_bytes());
        Content { content_type: JSON, write: Box::new(write) }
    }

    /// Returns the text; concurrent requests wait for one making. An error is not kept.
    fn text(&self) -> io::Result<Arc<str>> {
        let Inner { max_age, make, last } = &*self.0;
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some((_, text)) = last.as_ref().filter(|(made, _)| now.duration_since(*made) < *max_age) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = make()?.into();
        *last = Some((now, Arc::clone(&text)));
        Ok(text)
    }
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("max_age", &self.0.max_age).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn counted(max_age: Duration) -> Cached {
        let made = AtomicU32::new(0);
        Cached::new(max_age, move || match made.fetch_add(1, Ordering::Relaxed) {
            1 => Err(io::Error::other("the second fails")),
            n => Ok(n.to_string()),
        })
    }

    #[test]
    fn text_is_made_once_per_age() {
        let (long, none) = (counted(Duration::from_secs(3600)), counted(Duration::ZERO));
        let texts = |cached: &Cached| {
            [(); 3].map(|()| {
                cached.clone().text().map(|text| text.to_string()).map_err(|error| error.to_string())
            })
        };
        assert_eq!(texts(&long), [0, 0, 0].map(|n| Ok(n.to_string())));
        assert_eq!(texts(&none), [Ok("0".into()), Err("the second fails".into()), Ok("2".into())]);
    }
}
