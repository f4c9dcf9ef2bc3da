// The GPUs: use, memory, power, and where the energy went.

import { Chart, timeOfDay } from "./chart.ts";
import { make, mark, show, write } from "./element.ts";
import type { Energy, Gpu } from "./json.ts";
import { Bar, type Part } from "./bar.ts";
import { visible } from "./name.ts";
import { QueryButton } from "./query-button.ts";
import { bytes, energy, fixed, plain, say, share } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";

const KINDS: [keyof Energy, string, Part["kind"]][] = [
  ["attributed_joules", "of exchanges", "solid"],
  ["pending_joules", "of exchanges in flight", "soft"],
  ["idle_joules", "idle", "dim"],
  ["unattributed_joules", "unattributed", "bad"],
];

class Device {
  readonly element: HTMLElement;
  readonly #name = make("strong");
  readonly #state = make("span", { class: "state" });
  readonly #rows: { text: HTMLElement; bar: Bar }[] = [];

  constructor() {
    const rows = ["Use", "Memory", "Power"].map((word) => {
      const row = { text: make("span", { class: "number" }), bar: new Bar() };
      this.#rows.push(row);
      return make("li", {}, make("span", {}, word), row.text, row.bar.element);
    });
    this.element = make(
      "li",
      {},
      make("p", { class: "line" }, this.#name, " ", this.#state),
      make("ul", { class: "bars" }, ...rows),
    );
  }

  set(gpu: Gpu): void {
    write(this.#name, visible(`${gpu.id} ${gpu.name}`.trim()));
    const warm = gpu.temperature_celsius === null ? "" : say(plain(gpu.temperature_celsius, "°C"));
    write(this.#state, gpu.up ? warm : "✕ no fresh sample");
    mark(this.#state, "class", gpu.up ? "state" : "state bad");
    const part = (value: number | null, limit: number | null): number | null =>
      value !== null && limit ? value / limit : null;
    const limit = (text: string, most: string): string => (most === "–" ? text : `${text} of ${most}`);
    this.#row(0, say(share(gpu.utilization_ratio)), gpu.utilization_ratio);
    this.#row(
      1,
      limit(say(bytes(gpu.memory_used_bytes)), say(bytes(gpu.memory_limit_bytes))),
      part(gpu.memory_used_bytes, gpu.memory_limit_bytes),
    );
    this.#row(
      2,
      limit(say(plain(gpu.power_watts, "W")), say(plain(gpu.power_limit_watts, "W"))),
      part(gpu.power_watts, gpu.power_limit_watts),
    );
  }

  #row(at: number, text: string, ratio: number | null): void {
    const row = this.#rows[at];
    if (!row) return;
    write(row.text, text);
    row.bar.set(ratio === null ? [] : [{ share: ratio, kind: "solid" }]);
  }
}

export class Gpus implements View {
  readonly element: HTMLElement;
  readonly #query = new QueryButton("power", "Power of all GPUs");
  readonly #list = make("ul", { class: "devices" });
  readonly #split = new Bar();
  readonly #words = make("ul", { class: "legend" });
  readonly #energy = make(
    "div",
    { class: "energy" },
    make("h3", {}, "Energy since the start"),
    this.#split.element,
    this.#words,
  );
  readonly #power: Chart;
  readonly #section: Section;
  readonly #devices: Device[] = [];

  constructor() {
    this.#power = new Chart({
      name: "Power of all GPUs",
      sync: "time",
      lines: [{ label: "", role: "accent", shape: "area" }],
      floor: 10,
      value: (v) => say(plain(v, "W")),
      tick: (v) => fixed(v, 0),
      where: (x) => timeOfDay(x),
    });
    const power = make("div", { class: "power" }, make("h3", {}, "Power of all, watts"), this.#power.element);
    this.#section = new Section("GPUs", "gpus", this.#list, power, this.#energy);
    this.#section.controls.append(this.#query.element);
    this.element = this.#section.element;
    show(this.element, false);
  }

  update({ now, place, shown }: Reading): void {
    show(this.element, now.gpus.length > 0);
    if (now.gpus.length === 0) return;
    this.#section.coversAll(place);
    this.#query.about(place, null);
    while (this.#devices.length > now.gpus.length) this.#devices.pop()?.element.remove();
    now.gpus.forEach((gpu, at) => {
      let device = this.#devices[at];
      if (!device) {
        device = new Device();
        this.#devices.push(device);
        this.#list.append(device.element);
      }
      device.set(gpu);
    });
    // Power is measured for all traffic only.
    if (place.kind === "all") this.#power.set([shown.times, shown.values("watts")]);
    show(this.#power.element.parentElement as HTMLElement, place.kind === "all");
    this.#spread(now.energy);
  }

  repaint(): void {
    this.#power.repaint();
  }

  #spread(of: Energy | null): void {
    show(this.#energy, of !== null);
    if (!of) return;
    const sum = KINDS.reduce((all, [name]) => all + of[name], 0);
    this.#split.set(KINDS.map(([name, , kind]) => ({ share: sum ? of[name] / sum : 0, kind })));
    const words = KINDS.map(([name, word]) => `${say(energy(of[name]))} ${word}`);
    words.forEach((word, at) => {
      if (!this.#words.children[at]) {
        this.#words.append(
          make("li", {}, make("span", { class: `key ${KINDS[at]?.[2]}`, "aria-hidden": "true" }), make("span")),
        );
      }
      write(this.#words.children[at]?.lastElementChild as Element, word);
    });
  }
}
