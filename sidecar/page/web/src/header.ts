// The top line: the program, its state, what part of the traffic is shown, and the switches.

import { button, make, mark, show, write } from "./element.ts";
import type { FeedState } from "./feed.ts";
import type { Now } from "./json.ts";
import { visible } from "./name.ts";
import { ALL, linkTo, type Place } from "./place.ts";
import { span } from "./quantity.ts";
import { speak } from "./speech.ts";
import { themeSwitch } from "./theme.ts";
import type { Step } from "./trail.ts";

export class Header {
  readonly element: HTMLElement;
  readonly #version = make("span", { class: "version" });
  readonly #state = make("p", { class: "condition" }, "○ connecting");
  readonly #place = make("p", { class: "place" });
  readonly #steps: HTMLButtonElement[];
  #now: Now | null = null;
  #feed: FeedState = { kind: "connecting" };
  #lostAt = 0;

  constructor(acts: { step: (step: Step) => void; save: () => void; repaint: () => void }) {
    this.#steps = (
      [
        [1, "15 min"],
        [60, "24 h"],
      ] as const
    ).map(([step, label]) => {
      const element = make("button", { type: "button", "aria-pressed": String(step === 1) }, label);
      element.addEventListener("click", () => {
        for (const other of this.#steps) mark(other, "aria-pressed", String(other === element));
        acts.step(step);
      });
      return element;
    });
    const switches = make(
      "div",
      { class: "switches" },
      make("div", { class: "segments", role: "group", "aria-label": "Time shown" }, ...this.#steps),
      button("CSV", "Save the charts’ values as a CSV file", acts.save),
      themeSwitch(acts.repaint),
    );
    const name = make("h1", {}, "tokenmeter");
    this.element = make(
      "header",
      {},
      make("div", { class: "name" }, name, this.#version),
      this.#state,
      switches,
      this.#place,
    );
    show(this.#place, false);
    setInterval(() => this.#condition(), 1000);
  }

  now(now: Now): void {
    this.#now = now;
    write(this.#version, now.version);
    this.#condition();
  }

  feed(state: FeedState): void {
    if (state.kind === "lost" && this.#feed.kind !== "lost") {
      this.#lostAt = Date.now();
      speak("The connection to tokenmeter is lost.");
    }
    if (state.kind === "live" && this.#feed.kind === "lost") speak("The connection to tokenmeter is back.");
    this.#feed = state;
    document.body.classList.toggle("stale", state.kind === "lost");
    this.#condition();
  }

  place(place: Place): void {
    show(this.#place, place.kind !== "all");
    if (place.kind === "all") return;
    this.#place.replaceChildren(
      make("span", { class: "kind" }, place.kind),
      make("strong", {}, visible(place.name)),
      make("a", { href: linkTo(ALL) }, "Show all traffic"),
    );
  }

  #condition(): void {
    const feed = this.#feed;
    const readiness = this.#now?.readiness.state;
    let text = "○ connecting";
    let kind: "good" | "bad" | "dim" = "dim";
    if (feed.kind === "denied") [text, kind] = ["✕ token needed", "bad"];
    else if (feed.kind === "lost") {
      const since = span((Date.now() - this.#lostAt) / 1000);
      [text, kind] = [`✕ connection lost ${since} ago: ${feed.why}. Values are old; trying again`, "bad"];
    } else if (feed.kind === "live" && this.#now) {
      const up = span((this.#now.at_unix_ms - this.#now.started_unix_ms) / 1000);
      const words = { ready: "● ready", impaired: "◐ ready, with warnings", not_ready: "✕ not ready" };
      text = `${words[readiness ?? "ready"]} · up ${up}`;
      kind = readiness === "not_ready" ? "bad" : "good";
    }
    write(this.#state, text);
    mark(this.#state, "data-kind", kind);
  }
}
