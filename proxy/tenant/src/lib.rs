//! Whose a request is: an ordered list of rules over what its head and body say, first hit wins.
//!
//! Laws: rules only, no I/O and no clock; nothing that a client can write counts unless its peer is
//! trusted or its claim verified; an API key is seen as a keyed hash and nowhere kept (law 11).
