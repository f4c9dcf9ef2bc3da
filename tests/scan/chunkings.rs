//! The whole corpus in random slices: the scanner reports the same, the meter makes the same record, and every byte is
//! read once. All slices have one tick, so only the cuts differ.

use chance::Chance;
use harness::replay::run;
use harness::seen::{Again, Nothing};
use harness::{Transcript, cuts};
use meter::Tick;

/// Chunkings over the whole corpus, in ordinary runs and with `--long`.
const CHUNKINGS: [usize; 2] = [10_000, 100_000];

/// Mean sizes of the slices of one chunking.
const MEANS: [usize; 7] = [1, 2, 5, 20, 100, 1460, 16 * 1024];

const NOW: Tick = Tick(1_000_000);

fn chunks<'a>(chance: &mut Chance, mut body: &'a [u8]) -> Vec<&'a [u8]> {
    let mean = chance.pick(&MEANS);
    let mut chunks = Vec::new();
    while !body.is_empty() {
        let (chunk, rest) = body.split_at((1 + chance.place(2 * mean)).min(body.len()));
        chunks.push(chunk);
        body = rest;
    }
    chunks
}

#[test]
fn random_slices_of_the_corpus_give_the_same() {
    let wanted = CHUNKINGS[usize::from(chance::is_long())];
    let corpus = Transcript::all();
    // A body costs its length, so short ones are cut more often.
    let weight = |transcript: &Transcript| 1.0 / (transcript.body.len() as f64 + 1024.0);
    let all: f64 = corpus.iter().map(weight).sum();
    let (mut chance, mut done, mut pieces) = (Chance::new(1), 0, 0);
    for transcript in &corpus {
        let name = &transcript.name;
        let body = &transcript.body[..];
        let seen = cuts::in_steps(transcript.dialect, transcript.framing, body, usize::MAX);
        // A body of no bytes is never read.
        let once = std::iter::once((NOW, body)).filter(|_| !body.is_empty());
        let whole = run(transcript, once, NOW, &mut Nothing);
        let expected = format!("{:?}", whole.record);
        let times = (wanted as f64 * weight(transcript) / all).ceil() as usize;
        for _ in 0..times {
            let before = chance.clone();
            let chunks = chunks(&mut chance, body);
            pieces += chunks.len();
            let mut again = Again::expect(&seen);
            let ran = run(transcript, chunks.into_iter().map(|chunk| (NOW, chunk)), NOW, &mut again);
            assert!(again.is_same(), "{name}: slices of {before:?} give another result");
            assert_eq!(Some(ran.tail), seen.tail, "{name}: chunks of {before:?}");
            assert_eq!(ran.work.fed, body.len() as u64, "{name}");
            assert_eq!(format!("{:?}", ran.record), expected, "{name}: chunks of {before:?}");
            done += 1;
        }
    }
    println!("{done} chunkings of {} bodies, {pieces} pieces", corpus.len());
    assert!(done >= wanted, "{done}");
}
