//! Tables of cases, one file for each noun. Recordings, the naive twin and made-up streams live in
//! the end-to-end tests, where the fuzzers find them too.

mod ask;
mod editor;
mod watch;
