//! Counts of the inference engine in whose process the exchange is metered, and requests that it describes itself.

use meter::{Body, EnginePrompt, EngineStep, Tick};
use scan::{Finish, Request};

use super::Exchange;
use crate::request_state::{RequestFacts, RequestState};

impl Exchange {
    /// Takes the token counts and their timing from the engine from now on, and none from the body:
    /// [`meter::Meter::count_by_engine`] defines them.
    pub fn count_by_engine(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.count_by_engine();
        }
    }

    /// Adds a prompt that the engine processed.
    pub fn engine_prompt(&mut self, prompt: EnginePrompt) {
        if let Some(meter) = &mut self.meter {
            meter.engine_prompt(prompt);
        }
    }

    /// Adds the tokens of a step of the engine. Returns the output tokens so far, if the exchange is counted.
    #[inline]
    pub fn engine_step(&mut self, step: EngineStep, at: Tick) -> Option<u64> {
        let meter = self.meter.as_mut()?;
        meter.engine_step(step, at);
        self.role.get().is_counted().then(|| meter.live_output())
    }

    /// Ends an answer.
    pub fn engine_finish(&mut self, choice: u32, reason: Finish) {
        if let Some(meter) = &mut self.meter {
            meter.engine_finish(choice, reason);
        }
    }

    /// Records a complete request by its facts, in place of its body. t0 is `at`. If it asks for a stream, the steps of
    /// the engine are the stream, until there is a response.
    pub fn request_known(&mut self, mut facts: Request, at: Tick) {
        if self.request.stop().is_none() {
            return;
        }
        let is_streamed = facts.stream == Some(true);
        self.model.settle(facts.model.take(), None, true);
        self.request = RequestState::Read(RequestFacts::default());
        self.role.settle(&facts, self.dialect);
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.requested(facts, at);
            if is_streamed {
                meter.answered(0, Body::Frames);
            }
        }
    }
}
