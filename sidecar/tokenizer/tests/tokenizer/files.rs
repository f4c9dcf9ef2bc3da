//! Tokenizer files: what may be given, and what an error says of one that cannot be used.

use std::path::Path;

use crate::{Written, load, tiny};

#[test]
fn a_folder_will_do_and_models_may_share_a_file() {
    let file = tiny();
    let folder = file.parent().expect("a folder");
    let tokenizers = load(&[("a", &file), ("b", folder), ("org/c:latest", &file)]).expect("good ones");
    for model in ["a", "b", "org/c:latest"] {
        assert_eq!(tokenizers.count(model, "the people of"), Some(3), "{model}");
    }
}

#[test]
fn no_models_are_no_mistake() {
    assert!(!load(&[]).expect("nothing is wrong").knows("a"));
}

#[test]
fn all_mistakes_are_told_at_once_with_file_reason_and_remedy() {
    let empty = Written::new("empty.json", "");
    let json = Written::new("config.json", r#"{"tokenizer_class":"PreTrainedTokenizerFast"}"#);
    let odd = Written::new(
        "odd.json",
        r#"{"version":"1.0","added_tokens":[],"model":{"type":"NoSuchModel","vocab":{}}}"#,
    );
    let bare = Written::new(
        "bare.json",
        r#"{"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}"#,
    );
    let rule = Written::new(
        "rule.json",
        r#"{"version":"1.0","added_tokens":[],
            "pre_tokenizer":{"type":"Split","pattern":{"Regex":"(unclosed"},"behavior":"Isolated","invert":false},
            "model":{"type":"WordLevel","vocab":{"one":0},"unk_token":"[U]"}}"#,
    );
    let missing = Path::new("/nowhere/tokenizer.json");
    let good = tiny();
    let errors = load(&[
        ("missing", missing),
        ("empty", &empty.0),
        ("config", &json.0),
        ("odd", &odd.0),
        ("bare", &bare.0),
        ("rule", &rule.0),
        ("good", &good),
        ("good", &good),
    ])
    .expect_err("nearly all are wrong");
    let expected = [
        ("missing", missing, "cannot be read"),
        ("empty", &empty.0, "is not a Hugging Face tokenizer.json"),
        ("config", &json.0, "is not a Hugging Face tokenizer.json"),
        ("odd", &odd.0, "is not a Hugging Face tokenizer.json"),
        ("bare", &bare.0, "its vocabulary is empty"),
        ("rule", &rule.0, "is not a Hugging Face tokenizer.json"),
        ("good", &good, "Name each model once"),
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (error, (model, path, reason)) in errors.iter().zip(expected) {
        println!("{error}");
        assert!(error.contains(&format!("model {model:?}")), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
        assert!(error.contains(reason), "{error}");
        assert!(error.len() < 600, "{error}");
    }
}

#[test]
fn a_file_without_end_is_not_read_to_it() {
    let errors = load(&[("zero", Path::new("/dev/zero"))]).expect_err("it is no tokenizer");
    assert!(errors[0].contains("has more than 128 MiB"), "{errors:?}");
}
