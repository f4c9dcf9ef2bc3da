// A part of the page with a heading, a line of controls, and a note of what it covers.

import { make, show } from "./element.ts";
import type { Place } from "./place.ts";

let ids = 0;

export class Section {
  readonly element: HTMLElement;
  readonly controls = make("div", { class: "controls" });
  /** Says that the part is not filtered by the chosen model or tenant. */
  readonly #whole = make("span", { class: "tag" }, "all traffic");

  constructor(title: string, className: string, ...children: (Node | string)[]) {
    ids += 1;
    const heading = make("h2", { id: `section-${ids}` }, title);
    show(this.#whole, false);
    this.element = make(
      "section",
      { class: className, "aria-labelledby": heading.id },
      make("div", { class: "bar-of-title" }, heading, this.#whole, this.controls),
      ...children,
    );
  }

  /** Marks the part as one of all traffic, if the page is filtered. */
  coversAll(place: Place): void {
    show(this.#whole, place.kind !== "all");
  }
}
