//! Keys, and their effect on the display.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::dashboard::{Dashboard, Section};
use crate::scope::ScopeName;
use crate::trend::Trend;

/// The effect of a key beyond the display's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None.
    Stay,
    /// The program ends.
    Quit,
    /// The program stops until the shell resumes it.
    Suspend,
    /// The scope changed, so that another history is needed.
    Scope,
}

impl Dashboard {
    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Effect {
        if key.kind == KeyEventKind::Release {
            return Effect::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Effect::Quit,
                KeyCode::Char('z') => Effect::Suspend,
                _ => Effect::Stay,
            };
        }
        let before = self.scope.clone();
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Esc => self.scope = ScopeName::All,
            KeyCode::Tab => self.section = self.section.next(1),
            KeyCode::BackTab => self.section = self.section.next(Section::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='6') => self.section = Section::ALL[digit as usize - '1' as usize],
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::PageDown => self.select(PAGE_ROWS),
            KeyCode::PageUp => self.select(-PAGE_ROWS),
            KeyCode::Enter => self.enter(),
            KeyCode::Char('s') => self.sort(),
            KeyCode::Char('r') => self.reverse(),
            _ => {}
        }
        if self.scope == before {
            return Effect::Stay;
        }
        self.trend = Trend::default();
        Effect::Scope
    }
}

/// Rows that a page key moves.
const PAGE_ROWS: isize = 10;
