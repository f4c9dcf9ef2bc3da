//! The reading of a usage: its table row by row, and any usage against a reading that tries every sum.

use proptest::prelude::*;
use scan::{Count, Counts};

use crate::Disagreement::{self, Part, Total};
use crate::usage_reading::Reading;

/// The counts of a usage: prompt, cached, written, answer, reasoning, total.
type Named = [Option<u64>; 6];

fn counts(named: Named) -> Counts {
    [
        Count::Input,
        Count::InputCached,
        Count::InputCacheWrite,
        Count::Output,
        Count::OutputReasoning,
        Count::Total,
    ]
    .into_iter()
    .zip(named)
    .fold(Counts::default(), |counts, (count, tokens)| counts.with(count, tokens))
}

fn read(named: Named) -> (Option<u64>, Option<u64>, Option<Disagreement>) {
    read_of(counts(named))
}

fn read_of(counts: Counts) -> (Option<u64>, Option<u64>, Option<Disagreement>) {
    let Reading { counts, disagreement, .. } = Reading::of(counts);
    (counts.get(Count::Input), counts.get(Count::Output), disagreement)
}

#[test]
fn each_row_of_the_table_decides() {
    let n = Some;
    for (row, named, input, output, disagreement) in [
        ("inside", [n(100), n(30), None, n(400), n(360), n(500)], 100, 400, None),
        ("beside", [n(1000), n(100), None, n(40), n(360), n(1400)], 1000, 400, None),
        ("beside, and no output yet", [n(9), None, None, n(0), n(5), n(14)], 9, 5, None),
        ("cache beside", [n(100), n(300), n(200), n(25), None, n(625)], 600, 25, None),
        ("cache reads beside", [n(100), n(300), n(20), n(25), None, n(425)], 400, 25, None),
        ("cache writes beside", [n(100), n(30), n(200), n(25), None, n(325)], 300, 25, None),
        ("cache and reasoning beside", [n(100), n(300), n(200), n(25), n(7), n(632)], 600, 32, None),
        ("as much cached as reasoned", [n(100), n(50), None, n(60), n(50), n(210)], 100, 110, None),
        ("thoughts without a name", [n(8), None, None, n(7), None, n(160)], 8, 152, Some(Total)),
        ("no output beside hidden thoughts", [n(8), None, None, None, None, n(160)], 8, 152, Some(Total)),
        ("above each sum", [n(10), None, None, n(20), n(5), n(99)], 10, 89, Some(Total)),
        ("between the sums", [n(10), None, None, n(20), n(15), n(37)], 10, 35, Some(Total)),
        ("below", [n(100), None, None, n(40), n(10), n(139)], 100, 40, Some(Total)),
        (
            "below, and a part above its whole",
            [n(100), None, None, n(40), n(50), n(139)],
            100,
            90,
            Some(Total),
        ),
        ("no total", [n(100), n(30), None, n(40), n(40), None], 100, 40, None),
        ("a total of zero is a placeholder", [n(100), None, None, n(40), n(5), n(0)], 100, 40, None),
        ("Perplexity", [n(33), None, None, n(7000), n(70_000), n(7033)], 33, 77_000, Some(Part)),
        ("reasoning above the output", [n(33), None, None, n(70), n(71), None], 33, 141, Some(Part)),
        ("writes above the prompt", [n(3), n(30), n(20), n(70), None, None], 53, 70, Some(Part)),
        // SGLang's prefill and decode servers.
        ("cached above the prompt", [n(100), n(190), None, n(5), None, n(105)], 100, 5, None),
    ] {
        assert_eq!(read(named), (Some(input), Some(output), disagreement), "{row}");
    }
    assert_eq!(read([n(8), None, None, None, None, n(8)]), (n(8), None, None), "embeddings");
    assert_eq!(read([None, None, None, n(5), None, n(8)]), (None, n(5), None), "no prompt");
}

#[test]
fn no_modality_exceeds_its_whole() {
    let named = Counts::of([(Count::Input, 5), (Count::Output, 7)]);
    for (usage, input, output) in [
        (named.with(Count::InputAudio, 6), 6, 7),
        (named.with(Count::InputImage, 7).with(Count::InputVideo, 8), 8, 7),
        (named.with(Count::OutputAudio, 9).with(Count::OutputImage, 8), 5, 9),
        (named.with(Count::OutputVideo, 10), 5, 10),
    ] {
        let Reading { counts, disagreement, .. } = Reading::of(usage);
        assert_eq!(
            (counts.get(Count::Input), counts.get(Count::Output), disagreement),
            (Some(input), Some(output), Some(Part))
        );
    }
}

#[test]
fn media_may_stand_beside_the_prompt() {
    let named = Counts::of([(Count::Input, 3), (Count::Output, 41)]);
    let media = named.with(Count::InputAudio, 300).with(Count::InputImage, 70).with(Count::InputVideo, 5);
    for (usage, input, output, disagreement) in [
        // Mistral's transcriptions.
        (named.with(Count::InputAudio, 375).with(Count::Total, 419), 378, 41, None),
        (media.with(Count::Total, 419), 378, 41, None),
        (media.with(Count::OutputReasoning, 6).with(Count::Total, 425), 378, 47, None),
        (media.with(Count::Input, 375).with(Count::Total, 416), 375, 41, None),
        (media.with(Count::Total, 420), 300, 417, Some(Total)),
    ] {
        let reading = Reading::of(usage);
        let counts = reading.counts;
        assert_eq!(
            (counts.get(Count::Input), counts.get(Count::Output), reading.disagreement),
            (Some(input), Some(output), disagreement)
        );
    }
}

/// Mistral's tools, Snowflake's checks, numbers of tokens that are not read: beside the prompt where the total says so.
#[test]
fn other_tokens_may_stand_beside_the_prompt() {
    let n = Some;
    for (named, beside, input, output, disagreement) in [
        ([n(188), None, None, n(55), None, n(7355)], 7112, 7300, 55, None),
        ([n(188), None, None, n(55), n(3), n(256)], 10, 198, 58, None),
        ([n(9), n(7), None, n(4), None, n(18)], 5, 14, 4, None),
        ([n(100), n(300), n(200), n(25), n(7), n(642)], 10, 610, 32, None),
        // They are inside, another sum comes first, no sum explains them, or there is no total.
        ([n(188), None, None, n(55), None, n(243)], 95, 188, 55, None),
        ([n(100), n(50), None, n(60), None, n(210)], 50, 150, 60, None),
        ([n(188), None, None, n(55), None, n(300)], 95, 188, 112, Some(Total)),
        ([n(188), None, None, n(55), None, None], 95, 188, 55, None),
        ([n(188), None, None, n(55), None, n(200)], 95, 188, 55, Some(Total)),
    ] {
        let reading = Reading::of(counts(named).with(Count::InputBeside, beside));
        let [read_input, read_output] = [Count::Input, Count::Output].map(|count| reading.counts.get(count));
        assert_eq!((read_input, read_output), (Some(input), Some(output)), "{named:?} {beside}");
        assert_eq!((reading.disagreement, reading.counts.get(Count::InputBeside)), (disagreement, None));
    }
}

#[test]
fn rejected_number_leaves_the_others_as_named() {
    let named = Counts::of([(Count::Input, 5), (Count::Output, 7), (Count::Total, 99)]).with_rejected(1);
    let Reading { counts, disagreement, .. } = Reading::of(named);
    assert_eq!((counts.get(Count::Input), counts.get(Count::Output), disagreement), (Some(5), Some(7), None));
}

/// Tries every set of parts that may stand beside their wholes, in the table's order.
fn tried(
    [input, cached, written, output, reasoning, total]: [u64; 6],
    beside: u64,
) -> (u64, u64, Option<Disagreement>) {
    let sets: [&[u64]; 8] = [
        &[],
        &[reasoning],
        &[cached, written],
        &[cached],
        &[written],
        &[reasoning, cached, written],
        &[reasoning, cached],
        &[reasoning, written],
    ];
    let sum = |set: &[u64]| input + output + set.iter().sum::<u64>();
    let with = |beside: u64| {
        let at =
            sets.iter().position(|set| total == 0 && beside == 0 || total > 0 && sum(set) + beside == total);
        at.map(|at| (at, beside))
    };
    let matching = with(0).or_else(|| with(beside));
    let (mut prompt, mut answer) = match matching {
        Some((0, beside)) => (input + beside, output),
        Some((1, beside)) => (input + beside, output + reasoning),
        Some((at @ 2..=4, beside)) => (sum(sets[at]) + beside - output, output),
        Some((at, beside)) => (sum(sets[at]) + beside - output - reasoning, output + reasoning),
        None if total > input + output => (input, (output + reasoning).max(total - input)),
        None => (input, output),
    };
    let before = (prompt, answer);
    if reasoning > answer {
        answer += reasoning;
    }
    if written > prompt {
        prompt += cached + written;
    }
    let part = ((prompt, answer) != before).then_some(Part);
    (prompt, answer, matching.is_none().then_some(Total).or(part))
}

proptest! {
    #![proptest_config(chance::cases(4096))]

    /// Small numbers meet every row, and rows that hold together.
    #[test]
    fn reading_is_the_first_sum_that_matches(
        parts in proptest::array::uniform5(0_u64..6),
        total in prop_oneof![Just(None), (0_u64..24).prop_map(Some)],
        beside in proptest::array::uniform3(any::<bool>()),
        other in 0_u64..6,
    ) {
        let [input, cached, written, output, reasoning] = parts;
        // Half of the totals are sums.
        let sum = input + output + [cached, written, reasoning].iter().zip(beside).filter(|(_, beside)| *beside)
            .map(|(part, _)| part).sum::<u64>();
        for total in [total, Some(sum), Some(sum + other)] {
            let named = [input, cached, written, output, reasoning].map(Some);
            let [input, cached, written, output, reasoning] = named;
            let usage = counts([input, cached, written, output, reasoning, total]);
            let read = read_of(usage.with(Count::InputBeside, other));
            let tried = tried([parts[0], parts[1], parts[2], parts[3], parts[4], total.unwrap_or(0)], other);
            prop_assert_eq!(read, (Some(tried.0), Some(tried.1), tried.2), "{:?} {:?}", parts, total);
        }
    }
}
