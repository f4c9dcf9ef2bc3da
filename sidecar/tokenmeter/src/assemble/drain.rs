//! The drain as the admin listener orders and awaits it.

use page::{Drained, NoDrain};
use tokio::sync::watch;

use crate::settings::setting;
use crate::token_file::TokenFile;

/// The state of the drain. A clone shares it.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    token: Option<TokenFile>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Serving,
    Ordered,
    Drained,
}

impl Drain {
    /// Creates the state of a start, and the token file if it does not exist. Without a token no request orders the
    /// drain; signals always do.
    pub(crate) fn new(token: Option<TokenFile>) -> Self {
        if let Some(token) = &token {
            token.create_or_warn("POST /drain fails");
        }
        Self { token, state: watch::channel(State::Serving).0 }
    }

    /// Orders the drain for a request with this token.
    pub(crate) fn order(&self, token: Option<&str>) -> Result<(), NoDrain> {
        let Some(file) = &self.token else {
            let row = setting("drain_token_file");
            let (flag, variable) = (row.flag(), row.variable());
            return Err(NoDrain::Off(format!("no token is configured: set {flag} or {variable} to a file")));
        };
        let is_valid = token
            .map_or(Ok(false), |token| file.is(token))
            .map_err(|error| NoDrain::Unreadable(TokenFile::unreadable("drain_token_file", &error)))?;
        if !is_valid {
            return Err(NoDrain::Token);
        }
        self.advance(State::Ordered);
        Ok(())
    }

    /// Waits for an order.
    pub(crate) async fn ordered(&self) {
        self.reached(State::Ordered).await;
    }

    /// Records the end of the drain.
    pub(crate) fn end(&self) {
        self.advance(State::Drained);
    }

    /// Returns a future that is ready at the end of the drain.
    pub(crate) fn drained(&self) -> Drained {
        let drain = self.clone();
        Box::pin(async move { drain.reached(State::Drained).await })
    }

    async fn reached(&self, wanted: State) {
        // The sender is `self`, so it is not dropped.
        let _ = self.state.subscribe().wait_for(|state| *state >= wanted).await;
    }

    fn advance(&self, to: State) {
        self.state.send_modify(|state| *state = to.max(*state));
    }
}

#[cfg(test)]
mod tests {
    use page::NoDrain;

    use super::Drain;
    use crate::folder::Folder;
    use crate::token_file::TokenFile;

    #[tokio::test]
    async fn only_the_token_of_the_file_orders_the_drain() {
        let folder = Folder::new("drain-order");
        let file = TokenFile::at(folder.at("drain.token"));
        let drain = Drain::new(Some(file.clone()));
        let token = file.read().unwrap();
        assert_eq!(drain.order(None), Err(NoDrain::Token));
        assert_eq!(drain.order(Some("x")), Err(NoDrain::Token));
        assert_eq!(*drain.state.borrow(), super::State::Serving);
        assert_eq!(drain.order(Some(&token)), Ok(()));
        drain.ordered().await;
        drain.end();
        drain.drained().await;
        assert_eq!(drain.order(Some(&token)), Ok(()), "a late order changes nothing");
        drain.drained().await;
    }

    #[test]
    fn order_without_a_usable_token_names_the_remedy() {
        let off = Drain::new(None).order(Some("x"));
        assert!(
            matches!(&off, Err(NoDrain::Off(why)) if why.contains("TOKENMETER_DRAIN_TOKEN_FILE")),
            "{off:?}"
        );
        let lost = Drain::new(Some(TokenFile::at("/proc/none/drain.token"))).order(Some("x"));
        assert!(
            matches!(&lost, Err(NoDrain::Unreadable(why)) if why.contains("drain_token_file")),
            "{lost:?}"
        );
        assert!(!format!("{lost:?}").contains("/proc"), "a client learns no path: {lost:?}");
    }
}
