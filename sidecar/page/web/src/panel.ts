// A current number, large, above its history.

import { Chart, type Data, type Line, type Options } from "./chart.ts";
import { make, mark, write } from "./element.ts";
import { sign } from "./legend.ts";
import type { Place } from "./place.ts";
import { QueryButton } from "./query-button.ts";
import type { Quantity } from "./quantity.ts";

export type Verdict = "met" | "missed" | null;

class Figure {
  readonly #value = make("span", { class: "value" }, "–");
  readonly #unit = make("span", { class: "unit" });
  readonly element: HTMLElement;

  constructor(caption: string, line: Line | undefined) {
    this.element = make("p", { class: "figure" }, this.#value, " ", this.#unit);
    if (!caption) return;
    const signs = line?.label === caption ? [sign(line)] : [];
    this.element.append(" ", make("span", { class: "caption" }, ...signs, caption));
  }

  set(quantity: Quantity): void {
    write(this.#value, quantity.value);
    write(this.#unit, quantity.unit);
  }
}

export class Panel {
  readonly element: HTMLElement;
  readonly #chart: Chart;
  readonly #figures: Figure[];
  readonly #note = make("p", { class: "note" });
  readonly #query: QueryButton;

  constructor(id: string, title: string, captions: string[], options: Options, className = "") {
    this.#chart = new Chart(options);
    this.#figures = captions.map(
      (caption) =>
        new Figure(
          caption,
          options.lines.find(({ label }) => label === caption),
        ),
    );
    this.#query = new QueryButton(id, title);
    const figures = make("div", { class: "figures" }, ...this.#figures.map((figure) => figure.element));
    const head = make(
      "div",
      { class: "bar-of-title" },
      make("h3", {}, title),
      make("div", { class: "controls" }, this.#query.element),
    );
    this.element = make(
      "article",
      { class: `panel ${className}`, "data-panel": id },
      make("div", { class: "words" }, head, figures, this.#note),
      this.#chart.element,
    );
  }

  set(figures: Quantity[], note: string, verdict: Verdict = null): void {
    figures.forEach((quantity, at) => this.#figures[at]?.set(quantity));
    write(this.#note, note);
    mark(this.element, "data-verdict", verdict);
  }

  draw(data: Data): void {
    this.#chart.set(data);
  }

  /** Sets the place and the currency of the query. */
  about(place: Place, currency: string | null): void {
    this.#query.about(place, currency);
  }

  repaint(): void {
    this.#chart.repaint();
  }
}
