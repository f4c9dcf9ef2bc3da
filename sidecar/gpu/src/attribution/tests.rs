//! Attribution worked out by hand: who was there, what the counter said, who used what.
