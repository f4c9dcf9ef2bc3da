//! Keys derived from a key file, and the text of a hash.

use super::{HashKey, KeyHash, Purpose};

fn key() -> HashKey {
    HashKey::of(&[7; 32]).unwrap()
}

#[test]
fn key_file_has_32_bytes_besides_line_ends() {
    assert_eq!(HashKey::of(&[7; 31]).unwrap_err().bytes, 31);
    assert_eq!(HashKey::of(b"0123456789012345678901234567890\n\r\n").unwrap_err().bytes, 31);
    let (bare, line) = ([b'k'; 32].to_vec(), [&[b'k'; 32][..], b"\n"].concat());
    assert_eq!(HashKey::of(&bare).unwrap().mark(), HashKey::of(&line).unwrap().mark());
    let random = [&[200; 31][..], b"\n"].concat();
    assert!(HashKey::of(&random).is_ok(), "one of 256 files of random bytes ends like this");
    assert_ne!(HashKey::of(&bare).unwrap().mark(), key().mark());
}

#[test]
fn hashes_depend_on_key_file_purpose_and_text() {
    let other = HashKey::of(&[8; 32]).unwrap();
    assert_ne!(key().api_key(b"sk-1").hash, other.api_key(b"sk-1").hash);
    assert_ne!(key().api_key(b"sk-1").hash, key().api_key(b"sk-2").hash);
    let names = [Purpose::ApiKey, Purpose::Principal, Purpose::EndUser].map(|it| key().name(it, "ann"));
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
    assert_eq!(names[2].len(), 32);
    assert_eq!(names[2], key().name(Purpose::EndUser, "ann"), "and on nothing else");
}

#[test]
fn only_a_well_formed_hash_is_read() {
    let hash = key().api_key(b"sk-1");
    let text = hash.to_string();
    assert_eq!(KeyHash::read(&text), Some(hash));
    for wrong in [
        "",
        "sk-1",
        "b3-",
        &text[..text.len() - 1],
        &format!("{text}0"),
        &text.to_uppercase(),
        &text.replacen('-', "_", 1),
        &text.replacen("b3", "b4", 1),
        &format!("{}é", &text[..text.len() - 2]),
    ] {
        assert_eq!(KeyHash::read(wrong), None, "{wrong}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?}", HashKey::of(b"a secret of more than 32 bytes, to be sure").unwrap());
    assert!(shown.starts_with("HashKey(\"") && shown.len() == "HashKey(\"01234567\")".len(), "{shown}");
}
