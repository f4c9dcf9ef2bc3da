//! Each recorded exchange gives the committed record, for any cut of its body.

use harness::replay::{Pieces, replay};
use harness::{Transcript, golden};

fn path(transcript: &Transcript) -> std::path::PathBuf {
    let name = match transcript.number {
        0 => "record.txt".to_owned(),
        n => format!("record-{}.txt", n + 1),
    };
    transcript.folder.join(name)
}

#[test]
fn every_recording_gives_its_record() {
    let mut wrong = Vec::new();
    for transcript in Transcript::all() {
        let record = replay(&transcript, Pieces::Reads);
        wrong.extend(golden::compare(&path(&transcript), &golden::text(&record)).err());
        assert_eq!(record.disagreement, None, "{}: a real server agrees with itself", transcript.name);
    }
    assert!(wrong.is_empty(), "{} differ; UPDATE_GOLDEN=1 takes them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn slices_change_no_record() {
    for transcript in Transcript::all() {
        let expected = golden::text(&replay(&transcript, Pieces::Reads));
        let cuts = (0..transcript.body.len()).step_by(1 + transcript.body.len() / 50).map(Pieces::Cut);
        let steps = [1, 7, 64, 1000, usize::MAX].map(Pieces::Steps);
        for pieces in steps.into_iter().chain(cuts) {
            let text = golden::text(&replay(&transcript, pieces));
            assert_eq!(text, expected, "{} in {pieces:?}", transcript.name);
        }
    }
}
