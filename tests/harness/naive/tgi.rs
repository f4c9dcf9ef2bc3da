//! TGI's own dialect: a frame is one token of one answer; the last repeats the answer and counts it.

use scan::{Count, Counts, Finish, Scope};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, len, says_error};
use super::words::{self, OPENAI};
use super::{Frame, counts};

/// The facts of a frame.
pub(crate) fn facts(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    let list = match frame {
        Value::Object(_) => std::slice::from_ref(frame),
        Value::Array(list) if list.iter().all(Value::is_object) => &list[..],
        Value::Array(_) => return None,
        _ => &[],
    };
    let mut facts = FrameFacts { each_counts: true, ..FrameFacts::default() };
    let answers: Vec<&Value> = list.iter().filter(|answer| !says_error(answer)).collect();
    if answers.len() < list.len() {
        // The position of an error in a list is undefined.
        if list.len() > 1 {
            return None;
        }
        facts.lead = Some(Lead::Error);
    }
    for (place, answer) in answers.into_iter().enumerate() {
        let place = u32::try_from(place).ok()?;
        facts.choices.push(if outside.unstreamed { whole(place, answer)? } else { token(place, answer)? });
    }
    // TGI sends no list in a stream.
    (outside.unstreamed || !frame.is_array()).then_some(facts)
}

fn finish(answer: &Value) -> Option<Option<Finish>> {
    let word = words::finish(answer.pointer("/details/finish_reason"), OPENAI)?;
    let ended = answer.get("generated_text").is_some_and(Value::is_string);
    Some(word.or(ended.then_some(Finish::Stop)))
}

fn token(place: u32, frame: &Value) -> Option<Choice> {
    let token = frame.get("token").filter(|token| token.is_object());
    let details = frame.get("details").filter(|details| details.is_object());
    let text = frame.get("generated_text").is_some_and(Value::is_string);
    if token.is_none() && details.is_none() && !text {
        return None;
    }
    let lengths = chars(token.and_then(|token| token.get("text")));
    let mut choice = Choice::new(place, token.map(|_| 1), [0, lengths, 0, 0, 0], false, finish(frame)?);
    let index = counts::at(frame, &[("/index", Count::Output)])?;
    if index.rejected > 0 {
        return None;
    }
    match details {
        Some(details) => {
            let counts = detailed(details)?;
            // The number of the last token is the count, without another one.
            let output = counts.get(Count::Output).or(index.get(Count::Output));
            choice.count_as(Scope::Choice(Some(place)), counts.with(Count::Output, output));
        }
        None => choice.count_as(Scope::Running(place), index),
    }
    Some(choice)
}

fn whole(place: u32, answer: &Value) -> Option<Choice> {
    let nothing = Value::Null;
    let details = answer.get("details").unwrap_or(&nothing);
    if answer.get("token").is_some() || !answer.get("generated_text").is_some_and(Value::is_string) {
        return None;
    }
    let lengths = [0, chars(answer.get("generated_text")), 0, 0, 0];
    let mut choice = Choice::new(place, len(details.get("tokens")), lengths, false, finish(answer)?);
    choice.count_as(Scope::Choice(Some(place)), detailed(details)?);
    Some(choice)
}

fn detailed(details: &Value) -> Option<Counts> {
    let own = counts::at(details, &[("/generated_tokens", Count::Output), ("/input_length", Count::Input)])?;
    let mut output = own.get(Count::Output);
    for sequence in each(details.get("best_of_sequences")) {
        let more = sequence.get("generated_tokens").and_then(counts::count)?;
        output = Some(output.unwrap_or(0) + more);
    }
    // `prefill` is an empty list unless requested: that is no prompt of zero tokens.
    let listed = len(details.get("prefill")).filter(|&n| n > 0).map(u64::from);
    if listed.is_some() && details.get("input_length").is_some() {
        return None;
    }
    let input = own.get(Count::Input).or(listed);
    output.is_none_or(|n| n <= 1 << 53).then_some(own.with(Count::Input, input).with(Count::Output, output))
}
