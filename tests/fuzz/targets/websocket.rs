//! WebSocket frames: any bytes give the same as by the oracle, whole, byte by byte and in slices.

#![no_main]

#[path = "../../../proxy/websocket/tests/frames/naive.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use naive::Item;
use websocket::{FrameReader, Step, Violation};

fuzz_target!(|data: &[u8]| {
    let expected = naive::read(data);
    for step in [1, 3, 1 + data.len() / 2, 1 + data.len()] {
        assert_eq!(found(data, step), expected, "in steps of {step}");
    }
});

fn found(data: &[u8], step: usize) -> (Vec<Item>, Option<Violation>) {
    let mut reader = FrameReader::new();
    let (mut items, mut message) = (Vec::new(), Vec::new());
    for slice in data.chunks(step) {
        let mut at = 0;
        loop {
            match reader.step(slice, &mut at) {
                Ok(None) => break,
                Ok(Some(Step::Begin)) => message.clear(),
                Ok(Some(Step::Payload(bytes))) => message.extend_from_slice(bytes),
                Ok(Some(Step::End)) => items.push(Item::Message(std::mem::take(&mut message))),
                Ok(Some(Step::Control(control))) => items.push(Item::Control(control)),
                Err(violation) => return (items, Some(violation)),
            }
        }
    }
    (items, None)
}
