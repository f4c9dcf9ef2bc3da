// A list of names and values.

import { make, mark, write } from "./element.ts";

export class Facts {
  readonly element = make("dl", { class: "facts" });
  readonly #values = new Map<string, HTMLElement>();

  set(name: string, value: string, isBad = false): void {
    let element = this.#values.get(name);
    if (!element) {
      element = make("dd");
      this.#values.set(name, element);
      this.element.append(make("div", {}, make("dt", {}, name), element));
    }
    write(element, isBad ? `✕ ${value}` : value);
    mark(element, "class", isBad ? "bad" : null);
  }
}
