//! The tones of text, and their styles with and without colours.

use ratatui::style::{Color, Modifier, Style};

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A number.
    #[default]
    Plain,
    /// A label, or a number without news.
    Dim,
    /// A heading.
    Title,
    /// An objective that is met.
    Good,
    /// A warning.
    Warn,
    /// A failure.
    Bad,
    /// The selected row, or the section that the keys are for.
    Chosen,
}

impl Tone {
    /// Returns the style. Colours are the sixteen that the user's terminal has defined.
    pub(crate) fn style(self, colours: bool) -> Style {
        let style = Style::new();
        match self {
            Self::Plain => style,
            Self::Dim => style.add_modifier(Modifier::DIM),
            Self::Title => style.add_modifier(Modifier::BOLD),
            Self::Chosen => style.add_modifier(Modifier::REVERSED),
            Self::Good if colours => style.fg(Color::Green),
            Self::Good => style,
            Self::Warn if colours => style.fg(Color::Yellow),
            Self::Warn => style.add_modifier(Modifier::BOLD),
            Self::Bad if colours => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            Self::Bad => style.add_modifier(Modifier::BOLD),
        }
    }
}
