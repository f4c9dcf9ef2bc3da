// The speed by position in the response: a fall means that long contexts are slow.

import { Chart } from "./chart.ts";
import { make } from "./element.ts";
import { ALL } from "./place.ts";
import { QueryButton } from "./query-button.ts";
import { fixed, rate, say } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";

const POSITIONS = ["1-64", "65-256", "257-1024", "1025-4096", "4097-16384", "16385+"];
const SHORT = ["1", "65", "257", "1025", "4097", "16385"];

export class Position implements View {
  readonly element: HTMLElement;
  readonly #query = new QueryButton("position", "Speed by position");
  readonly #section: Section;
  readonly #chart: Chart;
  #key = "";

  constructor() {
    this.#chart = new Chart({
      name: "Speed by position in the response",
      lines: [{ label: "", role: "accent", shape: "bars" }],
      value: (v) => say(rate(v)),
      tick: (v) => fixed(v, v % 1 ? 1 : 0),
      floor: 10,
      where: (x) => `Tokens ${POSITIONS[x] ?? ""} of a response`,
      ticks: {
        at: () => POSITIONS.map((_, at) => at),
        text: (x) => SHORT[x] ?? "",
        range: () => [-0.5, POSITIONS.length - 0.5],
      },
    });
    this.#section = new Section(
      "Speed by position in the response",
      "position",
      make("h3", {}, "Tokens/s of one request"),
      this.#chart.element,
      make("p", { class: "axis" }, "from this token of the response on"),
    );
    this.#section.controls.append(this.#query.element);
    this.element = this.#section.element;
  }

  update({ curves, place }: Reading): void {
    const models = (curves?.models ?? []).filter(({ model }) => place.kind !== "model" || model === place.name);
    const key = JSON.stringify([place, models.map(({ by_position }) => by_position)]);
    if (key === this.#key) return;
    this.#key = key;
    this.#query.about(place, null);
    this.#section.coversAll(place.kind === "tenant" ? place : ALL);
    const speeds = POSITIONS.map((position) => {
      let tokens = 0,
        seconds = 0;
      for (const point of models.flatMap(({ by_position }) => by_position)) {
        if (point.position !== position) continue;
        tokens += point.tokens;
        seconds += point.seconds ?? 0;
      }
      return seconds > 0 ? tokens / seconds : null;
    });
    this.#chart.set([POSITIONS.map((_, at) => at), speeds]);
  }

  repaint(): void {
    this.#chart.repaint();
  }
}
