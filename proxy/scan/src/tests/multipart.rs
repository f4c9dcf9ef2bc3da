//! The fields of a multipart form.

use crate::MultipartFields;

/// The facts of a form; equal for the whole body, in steps, and for every cut in two.
fn read(body: &[u8]) -> (String, Option<bool>, Option<bool>, bool) {
    let read = |slices: &mut dyn Iterator<Item = &[u8]>| {
        let mut form =
            MultipartFields::from_content_type(b"multipart/form-data; boundary=XyZ").expect("a form");
        slices.for_each(|slice| form.feed(slice));
        (form.model().as_str().to_owned(), form.stream(), form.include_usage(), form.is_whole())
    };
    let expected = read(&mut std::iter::once(body));
    for step in [1, 2, 7] {
        assert_eq!(read(&mut body.chunks(step)), expected, "in steps of {step}");
    }
    for cut in 0..body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(read(&mut [head, tail].into_iter()), expected, "cut at {cut}");
    }
    expected
}

fn part(disposition: &str, value: &[u8]) -> Vec<u8> {
    [b"--XyZ\r\nContent-Disposition: form-data; ", disposition.as_bytes(), b"\r\n\r\n", value, b"\r\n"]
        .concat()
}

const END: &[u8] = b"--XyZ--\r\n";

#[test]
fn fields_are_found_around_a_file() {
    // A file full of near delimiters.
    let audio = b"\r\n--Xy\r\n-\r\r\n--XyA\r\n\r\nstream\xff\x00".repeat(20);
    let body = [
        part("name=\"stream\"", b"true"),
        part("name=\"file\"; filename=\"a;\\name=model.wav\"", &audio),
        part("name=\"model\"", b"whisper"),
        part("name=\"stream_include_usage\"", b" False "),
        END.to_vec(),
    ]
    .concat();
    assert_eq!(read(&body), ("whisper".to_owned(), Some(true), Some(false), true));
}

#[test]
fn other_fields_are_ignored() {
    let cases: [(Vec<u8>, &str); 7] = [
        (part("name=\"model\"; filename=\"model\"", b"a file"), ""),
        (part("name=\"models\"", b"x"), ""),
        (part("filename=\"name=model\"; name=\"file\"", b"x"), ""),
        (part("name=model", b"unquoted"), "unquoted"),
        (part("NAME=\"model\"", b"upper"), "upper"),
        (part("name=\"model\"", &[b'm'; 500]), &"m".repeat(128)),
        (part("name=\"model\"", b"a\r\n--b\r\nc"), "a\r\n--b\r\nc"),
    ];
    for (part, model) in cases {
        let body = [&part, END].concat();
        assert_eq!(read(&body), (model.to_owned(), None, None, true), "{:?}", String::from_utf8_lossy(&part));
    }
}

#[test]
fn headers_and_preamble_are_skipped() {
    let body = b"preamble\r\n--XyZ \t\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=\"model\"\r\nX: y\r\n\r\nm\r\n--XyZ--\r\nepilogue\r\n--XyZ\r\n";
    assert_eq!(read(body), ("m".to_owned(), None, None, true));
    let long = format!(
        "--XyZ\r\nX-Long: {}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm",
        "x".repeat(9000)
    );
    // Without its end, the field does not count.
    assert_eq!(read(long.as_bytes()), (String::new(), None, None, false));
    assert_eq!(read(format!("{long}\r\n--XyZ--").as_bytes()).0, "m");
    assert_eq!(read(b""), (String::new(), None, None, false));
}

#[test]
fn name_beyond_its_line_makes_a_form_incomplete() {
    let long = "x".repeat(300);
    for (disposition, is_whole) in [
        (format!("x=\"{long}\"; name=\"stream\""), false),
        (format!("name=\"file\"; filename=\"{long}\""), true),
        (format!("name=\"{long}\""), false),
    ] {
        let body = [part(&disposition, b"true"), END.to_vec()].concat();
        assert_eq!(read(&body), (String::new(), None, None, is_whole), "{disposition}");
    }
}

#[test]
fn ambiguous_name_makes_a_form_incomplete() {
    let long = "x".repeat(300);
    for disposition in [
        "name=\"x\"; name=\"model\"".to_owned(),
        "name=\"model\"; NAME=x".to_owned(),
        "name=\"x\"; name*=utf-8''model".to_owned(),
        "name*=utf-8''model".to_owned(),
        "name*0=mo; name*1=del".to_owned(),
        "name=\"x\"\r\nContent-Disposition: form-data; name=\"model\"".to_owned(),
        format!("name=\"x\"; y=\"{long}\"; name=\"model\""),
        format!("name=\"x\"; filename=\"{long}\"; name=\"model\""),
    ] {
        let body = [part(&disposition, b"m"), END.to_vec()].concat();
        assert!(!read(&body).3, "{disposition}");
    }
    // Of a file, only its own name may have such a form.
    let body = [part("name=\"file\"; filename=\"a\"; filename*=utf-8''%C3%A4", b"m"), END.to_vec()].concat();
    assert!(read(&body).3);
}

#[test]
fn both_of_two_models_are_read() {
    let models = |models: &[&str]| {
        let parts = models.iter().map(|model| part("name=\"model\"", model.as_bytes()));
        let body = parts.chain([END.to_vec()]).collect::<Vec<_>>().concat();
        let mut form = MultipartFields::new(b"XyZ").unwrap();
        form.feed(&body);
        let others = form.other_models().map(|others| others.names().join(" "));
        [form.model().as_str().to_owned(), others.unwrap_or_default()]
    };
    assert_eq!(models(&["a"]), ["a", ""]);
    assert_eq!(models(&["a", "b"]), ["b", "a"]);
    assert_eq!(models(&["a", "b", "c"]), ["c", "a"]);
    assert_eq!(models(&["a,b"]), ["a,b", "a b"]);
}

#[test]
fn elements_of_a_list_of_models_are_read() {
    for names in [["model", "model[]"], ["model[]", "model[]"], ["model[0]", "model[1]"]] {
        let parts = names.iter().zip(["a", "b"]);
        let parts = parts.map(|(name, model)| part(&format!("name=\"{name}\""), model.as_bytes()));
        let mut form = MultipartFields::new(b"XyZ").unwrap();
        form.feed(&parts.chain([END.to_vec()]).collect::<Vec<_>>().concat());
        let others = form.other_models().unwrap();
        assert_eq!((form.model().as_str(), others.names()), ("b", &["a".into()][..]), "{names:?}");
    }
}

#[test]
fn flags_are_read_as_form_parsers_do() {
    for (word, flag) in [
        ("true", Some(true)),
        ("1", Some(true)),
        ("False", Some(false)),
        ("0", Some(false)),
        ("maybe", None),
        ("", None),
    ] {
        let body = [part("name=\"stream\"", word.as_bytes()), END.to_vec()].concat();
        assert_eq!(read(&body).1, flag, "{word:?}");
    }
}

#[test]
fn a_transcript_is_plain_unless_json() {
    let plain = |formats: &[&str]| {
        let parts = formats.iter().map(|format| part("name=\"response_format\"", format.as_bytes()));
        let body = parts.chain([END.to_vec()]).collect::<Vec<_>>().concat();
        let mut form = MultipartFields::new(b"XyZ").unwrap();
        form.feed(&body);
        form.plain_transcript()
    };
    for format in ["text", "srt", "vtt", "verbose_json", "JSON", "json ", "", "a form to come"] {
        assert!(plain(&[format]), "{format:?}");
    }
    assert!(plain(&[&format!("json{}", "x".repeat(500))]));
    assert!(!plain(&[]) && !plain(&["json"]) && !plain(&["diarized_json"]));
    // Some servers read the first of two, some the last.
    assert!(plain(&["text", "json"]) && plain(&["json", "text"]));
}

#[test]
fn the_content_type_has_the_boundary() {
    let read = |value: &str| MultipartFields::from_content_type(value.as_bytes()).is_some();
    assert!(read("multipart/form-data; boundary=abc"));
    assert!(read("Multipart/Form-Data;charset=utf-8 ; Boundary=\"a b;c\""));
    assert!(!read("multipart/form-data"));
    assert!(!read("multipart/form-data; boundary="));
    // Parsers differ in which of two they use.
    assert!(!read("multipart/form-data; boundary=abc; boundary=def"));
    assert!(!read("multipart/form-data; boundary=abc; boundary*=utf-8''def"));
    assert!(!read("multipart/mixed; boundary=abc"));
    assert!(!read("application/json"));
    assert!(!read(&format!("multipart/form-data; boundary={}", "b".repeat(71))));
}
