//! Valid and invalid lines of a page.

use super::Page;
use crate::limits::MAX_SAMPLES;

type Labels = Vec<(String, String)>;

/// Returns name, labels and value of a page of one line; `None` if it is skipped.
fn one(line: &str) -> Option<(String, Labels, f64)> {
    let page = Page::read(line);
    assert_eq!(page.samples.len() + page.skipped, 1, "{line:?}");
    let sample = page.samples.first()?;
    let labels = sample.labels().map(|(name, value)| (name.to_owned(), value.into_owned()));
    Some((sample.name.to_owned(), labels.collect(), sample.value))
}

#[test]
fn valid_samples_are_parsed() {
    for (line, name, labels, value) in [
        ("a 1", "a", &[][..], 1.0),
        ("vllm:x_total 3.0", "vllm:x_total", &[], 3.0),
        ("_a9:b{} 1e3", "_a9:b", &[], 1000.0),
        ("a\t{ l = \"v\" , }\t-2.5e-1", "a", &[("l", "v")], -0.25),
        ("a{l=\"v\",m=\"\"} 1", "a", &[("l", "v"), ("m", "")], 1.0),
        ("a{l=\"v\",} 1", "a", &[("l", "v")], 1.0),
        ("a{l=\"}, {=\"} 1", "a", &[("l", "}, {=")], 1.0),
        (
            r#"a{l="back\\slash",m="quo\"te",n="line\nfeed",o="\d"} 1"#,
            "a",
            &[("l", "back\\slash"), ("m", "quo\"te"), ("n", "line\nfeed"), ("o", "\\d")],
            1.0,
        ),
        ("a{l=\"größe ✓\"} 1", "a", &[("l", "größe ✓")], 1.0),
        ("a 1 1395066363000", "a", &[], 1.0),
        ("a 1 -1.5", "a", &[], 1.0),
        ("a_bucket{le=\"+Inf\"} 7", "a_bucket", &[("le", "+Inf")], 7.0),
        ("a +Inf", "a", &[], f64::INFINITY),
        ("a -Inf", "a", &[], f64::NEG_INFINITY),
        ("a_bucket{le=\"1\"} 7 # {trace_id=\"x y\"} 0.5 1.2e9", "a_bucket", &[("le", "1")], 7.0),
        ("a_total 7 12 # {} 0.5", "a_total", &[], 7.0),
        ("  a 1  \r", "a", &[], 1.0),
    ] {
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        assert_eq!(one(line), Some((name.to_owned(), labels, value)), "{line:?}");
    }
    assert!(one("a NaN").unwrap().2.is_nan());
}

#[test]
fn invalid_line_is_skipped_and_counted() {
    for line in [
        "a",
        "a ",
        "9a 1",
        "a-b 1",
        "{l=\"v\"} 1",
        "{\"a\", l=\"v\"} 1",
        "a{l=\"v\" 1",
        "a{l=\"v} 1",
        "a{l=\"v\\\"} 1",
        "a{l=v} 1",
        "a{l:m=\"v\"} 1",
        "a{=\"v\"} 1",
        "a{,} 1",
        "a{l=\"v\",,} 1",
        "a one",
        "a 1 soon",
        "a 1 2 3",
        "a 0x10",
        "a 1_000",
        "[{\"iter\": 1}]",
        "<html>",
        "größe 1",
    ] {
        assert_eq!(one(line), None, "{line:?}");
    }
}

#[test]
fn comments_and_empty_lines_are_ignored() {
    let page = Page::read(
        "# HELP a Some \\\\ help, with {braces} 1\r\n# TYPE a counter\r\n\r\n#\n#a 1\n# a 1\n \t\na 1\r\n# EOF\nb 2\n",
    );
    assert_eq!(page.samples.iter().map(|sample| sample.name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(page.skipped, 0);
}

#[test]
fn invalid_line_affects_no_other() {
    let page = Page::read("a 1\nb{ 2\nc 3");
    assert_eq!(page.samples.iter().map(|sample| sample.name).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(page.skipped, 1);
}

#[test]
fn label_is_found_by_unescaped_value() {
    let page = Page::read(r#"a{l="x\"y",m="z"} 1"#);
    assert!(page.samples[0].has("l", "x\"y") && page.samples[0].has("m", "z"));
    assert!(!page.samples[0].has("l", "z") && !page.samples[0].has("n", ""));
}

#[test]
fn endless_page_is_cut() {
    let text = "a 1\n".repeat(MAX_SAMPLES + 3);
    let page = Page::read(&text);
    assert_eq!((page.samples.len(), page.skipped), (MAX_SAMPLES, 3));
}

/// Every prefix of a line is parsed or skipped, without a panic.
#[test]
fn every_prefix_is_survived() {
    let line = r#"a{l="ö\n\"x",m="y"} 1.5e3 12 # {t="z"} 1"#;
    for end in (0..=line.len()).filter(|end| line.is_char_boundary(*end)) {
        for sample in Page::read(&line[..end]).samples {
            assert_eq!(sample.labels().count(), 2, "{:?}", &line[..end]);
        }
    }
}

/// Recorded pages with bytes changed, dropped and doubled: every line is a sample, skipped or ignored, and all labels
/// of a sample are parsed.
#[test]
fn damaged_pages_are_parsed_or_skipped() {
    let page = include_str!("../../servers/tests/pages/vllm-0.32.0-after.txt");
    let lines: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    let mut seed = 0x5eed_u64;
    let mut random = |sides: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % sides
    };
    let (mut read, mut skipped) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = lines[random(lines.len())].as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len().max(1));
            match random(4) {
                _ if bytes.is_empty() => {}
                0 => bytes[at] = b"\"\\{}=, #\t\x00\xff9a"[random(13)],
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, bytes[at]),
                _ => bytes.truncate(at + 1),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let page = Page::read(&text);
        assert!(page.samples.len() + page.skipped <= 1, "{text:?}");
        skipped += page.skipped;
        for sample in page.samples {
            read += 1;
            let quotes = text.matches('"').count();
            assert!(sample.labels().count() * 2 <= quotes, "{text:?}");
        }
    }
    assert!(read > 1000 && skipped > 1000, "the damage is too small or too large: {read}, {skipped}");
}
