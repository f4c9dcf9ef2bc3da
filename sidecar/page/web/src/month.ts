// The spend of this month by day and by tenant, from the ledger.

import { Chart } from "./chart.ts";
import { make, show, write } from "./element.ts";
import { save, type Cell } from "./csv.ts";
import type { MonthToDate } from "./month-to-date.ts";
import { visible } from "./name.ts";
import { money } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";
import { button } from "./element.ts";

const DAYS = Array.from({ length: 31 }, (_, at) => at + 1);
const TENANTS_SHOWN = 5;

export class Month implements View {
  readonly element: HTMLElement;
  readonly #sum = make("p", { class: "figure" });
  readonly #list = make("ul", { class: "sums" });
  readonly #chart: Chart;
  readonly #section: Section;
  #month: MonthToDate | null = null;
  #key = "";

  constructor() {
    this.#chart = new Chart({
      name: "Spend by day of this month",
      lines: [{ label: "", role: "accent", shape: "bars" }],
      value: (v) => money(v, this.#month?.currency ?? null),
      tick: (v) => (v === 0 ? "0" : String(+v.toPrecision(2))),
      where: (x) =>
        `${this.#month?.read.month ?? ""}-${String(x).padStart(2, "0")} (${this.#month?.read.time_zone ?? ""})`,
      floor: 0.000001,
      ticks: { at: () => [1, 8, 15, 22, 29], text: String, range: () => [0.5, 31.5] },
    });
    this.#section = new Section(
      "Spend this month",
      "block",
      this.#sum,
      this.#chart.element,
      this.#list,
      make(
        "p",
        { class: "note" },
        "From the ledger and, since its last reading, from this process; by day in its time zone. Not a bill.",
      ),
    );
    this.#section.controls.append(button("CSV", "Save the month’s spend as a CSV file", () => this.#save()));
    this.element = this.#section.element;
    show(this.element, false);
  }

  update({ month, place }: Reading): void {
    show(this.element, month !== null && month.currency !== null);
    if (!month) return;
    this.#section.coversAll(place.kind === "model" ? place : { kind: "all" });
    const only = place.kind === "tenant" ? place.name : null;
    const [sum, days, tenants] = [month.sum(only), month.days(only), month.tenants()];
    const key = JSON.stringify([month.read.month, only, sum, days, tenants]);
    if (key === this.#key) return;
    this.#key = key;
    this.#month = month;
    write(this.#sum, money(sum, month.currency));
    this.#chart.set([DAYS, days.map((cost) => cost || null)]);
    this.#list.replaceChildren(
      ...(only === null ? tenants.slice(0, TENANTS_SHOWN) : []).map(([name, sum]) =>
        make("li", {}, make("span", {}, visible(name)), make("span", { class: "number" }, money(sum, month.currency))),
      ),
    );
  }

  repaint(): void {
    this.#chart.repaint();
  }

  #save(): void {
    const head: Cell[] = ["day", "tenant", "cost", "currency", "exchanges", "unpriced_exchanges"];
    const rows = (this.#month?.read.days ?? []).flatMap(({ day, tenants }) =>
      tenants.map((tenant): Cell[] => [
        day,
        tenant.name,
        tenant.cost,
        this.#month?.currency ?? null,
        tenant.exchanges,
        tenant.unpriced_exchanges,
      ]),
    );
    save("month", [head, ...rows]);
  }
}
