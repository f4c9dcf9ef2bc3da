//! The names in a PromQL expression: the metrics it selects, by which labels, and its grouping. promtool checks the
//! syntax; this parser reads only valid expressions.

/// One selector.
#[derive(Debug, PartialEq)]
pub(crate) struct Selector {
    /// The metric's name as written.
    pub(crate) metric: String,
    /// Its matchers.
    pub(crate) matchers: Vec<Matcher>,
}

/// One matcher: `label op "value"`.
#[derive(Debug, PartialEq)]
pub(crate) struct Matcher {
    pub(crate) label: String,
    /// `=`, `!=`, `=~` or `!~`.
    pub(crate) operator: String,
    pub(crate) value: String,
}

/// The names in one expression.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) selectors: Vec<Selector>,
    /// Labels after `by`, `without`, `on`, `ignoring`, `group_left` and `group_right`.
    pub(crate) grouping: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Mark(String),
}

/// Words at the place of a metric that are none.
const WORDS: &[&str] = &["and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end", "atan2"];

/// Words with a list of labels after them.
const LISTS: &[&str] = &["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Reads `expression`.
pub(crate) fn names(expression: &str) -> Names {
    let tokens = tokens(expression);
    let mut found = Names::default();
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(word) = &tokens[at] else {
            at += 1;
            continue;
        };
        let next = tokens.get(at + 1);
        let opens = |mark: &str| next == Some(&Token::Mark(mark.to_owned()));
        let before_list = matches!(next, Some(Token::Word(next)) if LISTS.contains(&next.as_str()));
        if LISTS.contains(&word.to_lowercase().as_str()) {
            at += 1;
            if opens("(") {
                while tokens.get(at).is_some_and(|token| *token != Token::Mark(")".to_owned())) {
                    if let Token::Word(label) = &tokens[at] {
                        found.grouping.push(label.clone());
                    }
                    at += 1;
                }
            }
        } else if opens("{") {
            let (matchers, end) = matchers(&tokens, at + 2);
            found.selectors.push(Selector { metric: word.clone(), matchers });
            at = end;
        } else if opens("(")
            || WORDS.contains(&word.to_lowercase().as_str())
            || (before_list && is_aggregation(word))
        {
            at += 1;
        } else {
            found.selectors.push(Selector { metric: word.clone(), matchers: Vec::new() });
            at += 1;
        }
    }
    found
}

fn is_aggregation(word: &str) -> bool {
    ["sum", "avg", "min", "max", "count", "group", "topk", "bottomk", "quantile"].contains(&word)
}

/// The matchers from `at` up to the closing brace, and the rest.
fn matchers(tokens: &[Token], mut at: usize) -> (Vec<Matcher>, usize) {
    let mut found = Vec::new();
    loop {
        match &tokens[at..] {
            [Token::Word(label), Token::Mark(operator), Token::Text(value), ..] => {
                found.push(Matcher {
                    label: label.clone(),
                    operator: operator.clone(),
                    value: value.clone(),
                });
                at += 3;
            }
            [Token::Mark(mark), ..] if mark == "," => at += 1,
            [Token::Mark(mark), ..] if mark == "}" => return (found, at + 1),
            rest => panic!("not a matcher: {rest:?}"),
        }
    }
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let taken = if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_ascii_alphabetic() || first == '_' || first == ':' {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
            let end = end.unwrap_or(rest.len());
            found.push(Token::Word(rest[..end].to_owned()));
            end
        } else if first.is_ascii_digit() {
            // Numbers and durations are no names.
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len())
        } else if first == '[' {
            rest.find(']').expect("a range ends") + 1
        } else if first == '"' {
            let end = rest[1..].find('"').expect("a string ends") + 1;
            found.push(Token::Text(rest[1..end].to_owned()));
            end + 1
        } else {
            let end = ["=~", "!~", "!=", "==", ">=", "<="].iter().find(|mark| rest.starts_with(**mark));
            let end = end.map_or(first.len_utf8(), |mark| mark.len());
            found.push(Token::Mark(rest[..end].to_owned()));
            end
        };
        rest = &rest[taken..];
    }
    found
}

#[test]
fn names_are_found_in_expressions() {
    let found = names(
        r#"histogram_quantile(0.9, sum by (le, model) (rate(a_bucket{model=~"x|y", ending!="z"}[5m])))
           / on (job) group_left () max(b:c:d) > 1e3 and c{} offset 5m unless on () sum(d) * 2"#,
    );
    let metrics: Vec<&str> = found.selectors.iter().map(|selector| selector.metric.as_str()).collect();
    assert_eq!(metrics, ["a_bucket", "b:c:d", "c", "d"]);
    assert_eq!(found.grouping, ["le", "model", "job"]);
    let first = &found.selectors[0].matchers;
    assert_eq!(first.len(), 2);
    assert_eq!((first[0].operator.as_str(), first[0].value.as_str()), ("=~", "x|y"));
    assert_eq!((first[1].operator.as_str(), first[1].label.as_str()), ("!=", "ending"));
}
