//! What is found once is not looked for again, and made-up tokens push out no real one.

use std::cell::Cell;

use super::{KEPT, Verdicts};
use crate::jwt::Claims;
use crate::miss::Distrust;

fn claims() -> Result<Claims, Distrust> {
    Ok(Claims { tenant: "acme".into(), principal: None, from: 0, until: 9 })
}

#[test]
fn a_token_is_verified_once_good_or_bad() {
    let (verdicts, looks) = (Verdicts::default(), Cell::new(0));
    for _ in 0..3 {
        let look = |found| {
            looks.set(looks.get() + 1);
            found
        };
        assert!(verdicts.of(b"good", || look(claims())).is_ok());
        assert_eq!(verdicts.of(b"bad", || look(Err(Distrust::Issuer))), Err(Distrust::Issuer));
    }
    assert_eq!(looks.get(), 2);
}

#[test]
fn made_up_tokens_take_a_bounded_place_of_their_own() {
    let verdicts = Verdicts::default();
    verdicts.of(b"good", claims).unwrap();
    for made_up in 0..4 * KEPT {
        let made_up = made_up.to_le_bytes();
        verdicts.of(&made_up, || Err(Distrust::Signature)).unwrap_err();
    }
    assert!(verdicts.of(b"good", || unreachable!("it is known")).is_ok());
    let known = verdicts.0.lock().unwrap();
    assert!(known.bad.young.len() + known.bad.old.len() <= 2 * KEPT);
}

#[test]
fn what_is_asked_for_stays() {
    let verdicts = Verdicts::default();
    verdicts.of(b"asked", claims).unwrap();
    for other in 0..4 * KEPT {
        verdicts.of(&other.to_le_bytes(), claims).unwrap();
        if other % (KEPT / 2) == 0 {
            assert!(verdicts.of(b"asked", || unreachable!("it is known")).is_ok());
        }
    }
    let known = verdicts.0.lock().unwrap();
    assert!(known.good.young.len() + known.good.old.len() <= 2 * KEPT);
}
