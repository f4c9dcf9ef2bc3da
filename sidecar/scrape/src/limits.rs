//! The limits on other programs' pages, each with unit and reason.

use std::time::Duration;

/// Maximum bytes of a response body. A busy vLLM's page has 70 kB, and one of fifty models 4 MB.
pub const BODY_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum bytes of a response head, and the size of hyper's buffer.
pub const HEAD_MAX_BYTES: usize = 64 * 1024;

/// Maximum time from the connection to the last byte of a response. A page takes milliseconds; a server that needs
/// longer is overloaded and must not get further requests.
pub const RESPONSE_MAX_TIME: Duration = Duration::from_secs(5);

/// Maximum number of samples of a page. The known metrics are far below it.
pub const MAX_SAMPLES: usize = 100_000;
