//! Tokenizer files: valid arguments, and the errors of unusable files.

use std::path::Path;

use crate::{TempFile, load, tiny};

#[test]
fn folders_and_shared_files_are_accepted() {
    let file = tiny();
    let folder = file.parent().expect("a folder");
    let tokenizers = load(&[("a", &file), ("b", folder), ("org/c:latest", &file)]).expect("good ones");
    for model in ["a", "b", "org/c:latest"] {
        assert_eq!(tokenizers.count(model, "the people of"), Some(3), "{model}");
    }
}

#[test]
fn empty_list_of_models_is_valid() {
    assert!(!load(&[]).expect("nothing is wrong").has("a"));
}

#[test]
fn all_errors_are_reported_with_file_and_remedy() {
    let empty = TempFile::new("empty.json", "");
    let json = TempFile::new("config.json", r#"{"tokenizer_class":"PreTrainedTokenizerFast"}"#);
    let odd = TempFile::new(
        "odd.json",
        r#"{"version":"1.0","added_tokens":[],"model":{"type":"NoSuchModel","vocab":{}}}"#,
    );
    let bare = TempFile::new(
        "bare.json",
        r#"{"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}"#,
    );
    let rule = TempFile::new(
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
        ("empty", &empty.0, "is not a usable Hugging Face tokenizer.json"),
        ("config", &json.0, "is not a usable Hugging Face tokenizer.json"),
        ("odd", &odd.0, "is not a usable Hugging Face tokenizer.json"),
        ("bare", &bare.0, "its vocabulary is empty"),
        ("rule", &rule.0, "is not a usable Hugging Face tokenizer.json"),
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
fn endless_file_is_read_up_to_the_limit() {
    let errors = load(&[("zero", Path::new("/dev/zero"))]).expect_err("it is no tokenizer");
    assert!(errors[0].contains("has more than 128 MiB"), "{errors:?}");
}
