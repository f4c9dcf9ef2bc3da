//! The screen and the text, against golden files, and keys.

mod sample;

use std::fs;
use std::path::PathBuf;

use proptest::prelude::{any, proptest};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};

use crate::dashboard::{Dashboard, Section};
use crate::keys::Effect;
use crate::scope::ScopeName;
use crate::{plain, screen};

/// Draws a dashboard; returns its rows, without the blanks at their ends.
fn drawn(dashboard: &Dashboard, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, dashboard)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(width.into()).map(|row| {
        let mut text = String::new();
        let mut covered = 0;
        for cell in row {
            // The second column of a wide character is a blank cell.
            if covered > 0 {
                covered -= 1;
                continue;
            }
            text.push_str(cell.symbol());
            covered = crate::width::columns(cell.symbol()).saturating_sub(1);
        }
        assert_eq!(crate::width::columns(&text), usize::from(width), "{text:?}");
        format!("{}\n", text.trim_end())
    });
    rows.collect()
}

fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name} differs; UPDATE_GOLDEN=1 writes it");
}

fn press(dashboard: &mut Dashboard, keys: &str) -> Effect {
    let mut effect = Effect::Stay;
    for key in keys.split(' ') {
        let code = match key {
            "tab" => KeyCode::Tab,
            "backtab" => KeyCode::BackTab,
            "down" => KeyCode::Down,
            "up" => KeyCode::Up,
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Esc,
            other => KeyCode::Char(other.chars().next().unwrap()),
        };
        effect = dashboard.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    effect
}

#[test]
fn screens_are_golden() {
    let mut dashboard = sample::dashboard();
    golden("80x24.txt", &drawn(&dashboard, 80, 24));
    golden("160x60.txt", &drawn(&dashboard, 160, 60));
    golden("40x12.txt", &drawn(&dashboard, 40, 12));
    press(&mut dashboard, "tab s s");
    golden("80x24-tenants.txt", &drawn(&dashboard, 80, 24));
    press(&mut dashboard, "down down enter tab");
    golden("80x24-curve.txt", &drawn(&dashboard, 80, 24));
    press(&mut dashboard, "esc 6");
    golden("80x24-meter.txt", &drawn(&dashboard, 80, 24));
    press(&mut dashboard, "?");
    golden("80x24-help.txt", &drawn(&dashboard, 80, 24));
}

#[test]
fn text_is_golden() {
    let text = plain::text(&sample::dashboard());
    assert!(!text.contains('\u{1b}'));
    golden("plain.txt", &text);
    golden("plain-idle.txt", &plain::text(&sample::idle()));
}

/// The words of both must be the same, as must be their numbers: both show the members of `live`.
#[test]
fn words_are_those_of_the_page() {
    let page = PAGE.join("").to_lowercase();
    let top = drawn(&sample::dashboard(), 200, 60).to_lowercase();
    for word in WORDS {
        assert!(top.contains(&word.to_lowercase()), "top does not show {word:?}: {top}");
        assert!(page.contains(&word.to_lowercase()), "the live page does not show {word:?}");
    }
}

/// The sources of the live page that have its words.
const PAGE: &[&str] = &[
    include_str!("../../page/web/src/cost.ts"),
    include_str!("../../page/web/src/curve.ts"),
    include_str!("../../page/web/src/engines.ts"),
    include_str!("../../page/web/src/gpus.ts"),
    include_str!("../../page/web/src/panels.ts"),
    include_str!("../../page/web/src/scopes.ts"),
];

const WORDS: &[&str] = &[
    "output tokens",
    "in flight",
    "first token",
    "speed",
    "half of the requests",
    "exchanges",
    "errors",
    "aborts",
    "last 60 s",
    "goodput",
    "spend",
    "budget",
    "degradation curve",
    "at once",
    "running",
    "waiting",
    "KV cache",
    "prefix cache hits",
    "of exchanges in flight",
    "idle",
    "unattributed",
    "time added to an exchange",
    "refused by the proxy",
    "forwarded unmetered",
    "lost telemetry",
];

#[test]
fn keys_choose_section_row_and_scope() {
    let mut dashboard = sample::dashboard();
    assert_eq!(press(&mut dashboard, "down down down down enter"), Effect::Scope);
    assert_eq!(dashboard.scope, ScopeName::Model(sample::HOSTILE.to_owned()), "the last row");
    assert_eq!(press(&mut dashboard, "enter"), Effect::Stay, "it is shown already");
    assert_eq!(press(&mut dashboard, "esc"), Effect::Scope);
    press(&mut dashboard, "backtab");
    assert_eq!(dashboard.section, Section::Meter);
    assert_eq!(press(&mut dashboard, "enter down s r 2 q"), Effect::Quit);
    assert_eq!(dashboard.section, Section::Tenants);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(dashboard.press(interrupt), Effect::Quit);
    let suspend = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);
    assert_eq!(dashboard.press(suspend), Effect::Suspend);
}

#[test]
fn selection_follows_its_row() {
    let mut dashboard = sample::dashboard();
    press(&mut dashboard, "down");
    let name = dashboard.models.selected.clone();
    dashboard.now.models.reverse();
    press(&mut dashboard, "s r s r r");
    assert_eq!(dashboard.models.selected, name);
    let rows = dashboard.rows(Section::Models);
    assert_eq!(Some(&rows[dashboard.models.position(&rows)].name), name.as_ref());
    dashboard.now.models.clear();
    press(&mut dashboard, "down up enter");
    assert_eq!(dashboard.scope, ScopeName::All);
}

#[test]
fn sort_passes_all_columns_and_returns() {
    let mut dashboard = sample::dashboard();
    let served: Vec<_> = dashboard.now.models.iter().map(|model| model.name.clone()).collect();
    let names = |dashboard: &Dashboard| -> Vec<String> {
        dashboard.rows(Section::Models).iter().map(|row| row.name.clone()).collect()
    };
    assert_eq!(names(&dashboard), served);
    press(&mut dashboard, "s");
    let rate = |row: &live::Scope| row.recent.output_tokens_per_second_10s.unwrap_or(-1.0);
    assert!(dashboard.rows(Section::Models).is_sorted_by(|left, right| rate(left) >= rate(right)));
    press(&mut dashboard, "r");
    assert!(drawn(&dashboard, 80, 24).contains("↑tokens/s"));
    let columns = crate::scopes::MODELS.len();
    press(&mut dashboard, &vec!["s"; columns - 1].join(" "));
    assert_eq!(names(&dashboard), served.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn failure_is_shown_until_the_next_reading() {
    let mut dashboard = sample::dashboard();
    dashboard.failure = Some(("the connection failed\u{1b}[2J".to_owned(), 7));
    let screen = drawn(&dashboard, 80, 24);
    assert!(screen.contains("! the numbers are 7 s old: the connection failed\\u{1b}[2J"), "{screen}");
    dashboard.read(sample::now());
    assert!(!drawn(&dashboard, 80, 24).contains("7 s old"));
}

#[test]
fn young_process_has_a_short_trend() {
    let mut dashboard = sample::dashboard();
    for (up_s, span) in [(0, " 60 s"), (61, " 61 s"), (119, " 119 s"), (120, " 2 min"), (900, " 5 min")] {
        dashboard.now.started_unix_ms = dashboard.now.at_unix_ms - up_s * 1000;
        let screen = drawn(&dashboard, 80, 24);
        assert!(screen.lines().any(|line| line.ends_with(span)), "{up_s}: {screen}");
    }
}

#[test]
fn scope_that_left_the_list_is_named() {
    let mut dashboard = sample::dashboard();
    dashboard.scope = ScopeName::Tenant("gone\n".to_owned());
    assert!(drawn(&dashboard, 80, 24).contains("tenant gone\\n is not listed any more; esc"));
}

/// Only the default colours: NO_COLOR.
#[test]
fn no_colour_is_used_without_colours() {
    for colours in [false, true] {
        let dashboard = Dashboard { colours, ..sample::dashboard() };
        let mut terminal = Terminal::new(TestBackend::new(120, 60)).unwrap();
        terminal.draw(|frame| screen::draw(frame, &dashboard)).unwrap();
        let cells = &terminal.backend().buffer().content;
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset), colours);
        assert!(cells.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)), "the selected row");
    }
}

proptest! {
    #![proptest_config(chance::cases(128))]

    #[test]
    fn every_size_and_name_is_drawn(width in 1..200_u16, height in 1..80_u16, name in any::<String>(), keys in "[?srjk1-6\r]{0,8}") {
        let mut dashboard = sample::dashboard();
        dashboard.now.models[0].name.clone_from(&name);
        dashboard.now.tenants[0].name.clone_from(&name);
        dashboard.now.upstreams[0].name.clone_from(&name);
        dashboard.now.upstreams[0].fault = Some(name.clone());
        dashboard.now.gpus[0].name = name;
        for key in keys.chars() {
            let code = if key == '\r' { KeyCode::Enter } else { KeyCode::Char(key) };
            dashboard.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        let screen = drawn(&dashboard, width, height);
        assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{screen:?}");
        assert!(!plain::text(&dashboard).chars().any(|c| c.is_control() && c != '\n'));
    }
}
