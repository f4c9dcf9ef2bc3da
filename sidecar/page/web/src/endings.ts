// How the exchanges ended.

import { make, mark, write } from "./element.ts";
import { Bar } from "./bar.ts";
import { count, say, share } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";

const WORDS: Record<string, string> = {
  complete: "complete",
  length: "complete, at the length limit",
  client_abort: "left by the client",
  detached: "accepted, fetched later",
  upstream_cut: "cut by the server",
  error_in_band: "error within the stream",
  error_status: "error status",
  no_output: "no output",
  proxy_error: "error of the proxy",
};
const FINE = ["complete", "length"];
const SOFT = ["client_abort", "detached"];

export class Endings implements View {
  readonly element: HTMLElement;
  readonly #list = make("ul", { class: "bars" });
  readonly #lines = new Map<string, { text: HTMLElement; bar: Bar }>();
  readonly #section = new Section("Endings", "block", this.#list);

  constructor() {
    this.element = this.#section.element;
    for (const name of Object.keys(WORDS)) this.#line(name);
  }

  update({ now, place }: Reading): void {
    this.#section.coversAll(place);
    const sum = Object.values(now.endings).reduce((all, n) => all + n, 0);
    for (const name of new Set([...this.#lines.keys(), ...Object.keys(now.endings)])) {
      const n = now.endings[name] ?? 0;
      const { text, bar } = this.#line(name);
      const part = sum ? n / sum : 0;
      mark(text.parentElement as Element, "class", n ? null : "none");
      write(text, n ? `${say(count(n))} · ${say(share(part))}` : "0");
      bar.set([{ share: part, kind: SOFT.includes(name) ? "soft" : FINE.includes(name) ? "solid" : "bad" }]);
    }
  }

  #line(name: string): { text: HTMLElement; bar: Bar } {
    let line = this.#lines.get(name);
    if (!line) {
      line = { text: make("span", { class: "number" }), bar: new Bar() };
      this.#lines.set(name, line);
      const word = make("span", {}, WORDS[name] ?? name.replaceAll("_", " "));
      this.#list.append(make("li", {}, word, line.text, line.bar.element));
    }
    return line;
  }
}
