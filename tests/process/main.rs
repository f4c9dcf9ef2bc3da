//! The real binary in front of a simulated or scripted server, from outside: responses, `/metrics` and memory.

mod collector;
mod counts;
mod crowd;
mod cut;
mod drain;
mod engine;
mod ledger;
mod listeners;
mod live;
mod meter_page;
mod ordered_drain;
mod prices;
mod prompt;
mod proxy;
mod scripted;
mod secrets;
mod secure;
mod shapes;
mod sockets;
mod streams;
mod tap;
mod tls;
mod tls_client;
mod tokenized;
mod traces;
mod transcripts;
