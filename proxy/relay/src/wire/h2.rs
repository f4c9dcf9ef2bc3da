//! HTTP/2: connections of clients, by hyper's server, and connections to upstreams, by the crate h2, each of which
//! carries many requests at once. Only this folder names the two libraries.

mod body;
mod down;
mod frames;
mod handed;
mod head;
mod outgoing;
mod server;
pub(crate) mod shared_connection;
mod stream;
pub(crate) mod up;
pub(crate) mod waiting;

pub(crate) use self::server::serve;
