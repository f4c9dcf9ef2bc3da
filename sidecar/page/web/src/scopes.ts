// The tables of models and of tenants.

import { button, make, mark, show, write } from "./element.ts";
import type { Cell } from "./csv.ts";
import type { Maybe, Now, Point, Scope } from "./json.ts";
import { Bar } from "./bar.ts";
import { visible } from "./name.ts";
import { ALL, linkTo, type Place } from "./place.ts";
import { sourcesOf, words } from "./provenance.ts";
import { compact, count, money, plain, rate, say, seconds, share, type Quantity } from "./quantity.ts";
import { Section } from "./section.ts";
import { Table, type Column } from "./table.ts";
import type { Reading, View } from "./view.ts";

const TYPES: Record<string, string> = {
  input: "Input",
  input_cached: "Cached",
  output: "Output",
  output_reasoning: "Reasoning",
};

export class Scopes implements View {
  readonly element: HTMLElement;
  readonly #table: Table<Scope>;
  readonly #rest = make("p", { class: "note" });
  readonly #section: Section;
  #place: Place = ALL;
  readonly #bars = new WeakMap<HTMLElement, Bar>();

  constructor(private readonly kind: "model" | "tenant") {
    const title = kind === "model" ? "Models" : "Tenants";
    this.#table = new Table<Scope>(
      title,
      ({ name }) => name,
      ({ name }) => this.#place.kind === kind && this.#place.name === name,
    );
    this.#section = new Section(title, "scopes", this.#table.element, this.#rest);
    this.#section.controls.append(
      button("CSV", `Save the table of ${title.toLowerCase()} as a CSV file`, () => this.#table.save(`${kind}s`)),
    );
    this.element = this.#section.element;
  }

  update({ now, place }: Reading): void {
    this.#place = place;
    const rows = this.kind === "model" ? now.models : now.tenants;
    this.#section.coversAll(place.kind === "all" || place.kind === this.kind ? ALL : place);
    this.#table.set(this.#columns(now, rows), rows);
    show(this.#rest, rows.length === 0 || now.unlisted > 0);
    write(
      this.#rest,
      rows.length === 0
        ? "None yet: a row appears with the first request."
        : `${say(count(now.unlisted))} more models and tenants are not listed; they are in the sums.`,
    );
  }

  #columns(now: Now, rows: readonly Scope[]): Column<Scope>[] {
    const isModel = this.kind === "model";
    const columns: Column<Scope>[] = [
      {
        id: this.kind,
        title: isModel ? "Model" : "Tenant",
        value: ({ name }) => name,
        text: ({ name }) => visible(name),
        link: ({ name }) => linkTo({ kind: this.kind, name }),
      },
    ];
    columns.push(
      of(
        "output_tokens_per_second_10s",
        "Tokens/s, 10\u202fs",
        ({ recent }) => recent.output_tokens_per_second_10s,
        plainOf(""),
      ),
    );
    if (isModel) {
      columns.push(
        of("in_flight", "In flight", (s) => s.point.in_flight, count),
        of("first_token_p50_seconds", "First token p50", point("first_token_p50_seconds"), seconds),
        of("request_tokens_per_second_p50", "Speed p50", point("request_tokens_per_second_p50"), rate),
      );
    }
    columns.push(
      of("exchanges", "Exchanges", ({ totals }) => totals.exchanges, count),
      of("errors", "Errors", ({ totals }) => totals.errors, count),
      of("aborts", "Aborts", ({ totals }) => totals.aborts, count),
    );
    if (rows.some(({ totals }) => totals.goodput_ratio !== null)) {
      columns.push(of("goodput_ratio", "Goodput", ({ totals }) => totals.goodput_ratio, share));
    }
    const currency = now.currency;
    if (currency) {
      const code = currency.toLowerCase();
      columns.push(
        {
          id: `spend_${code}`,
          title: "Spend",
          value: ({ totals }) => totals.spend,
          text: ({ totals }) =>
            money(totals.spend, currency) +
            (totals.unpriced_exchanges ? ` + ${say(count(totals.unpriced_exchanges))} unpriced` : ""),
        },
        {
          id: `${code}_per_million_tokens`,
          title: "Per 1M tokens",
          value: ({ totals }) => totals.cost_per_million_tokens,
          text: ({ totals }) => money(totals.cost_per_million_tokens, currency),
        },
      );
      if (rows.some(({ budget }) => budget)) columns.push(this.#budget(currency));
    }
    for (const type of typesOf(rows)) {
      columns.push(
        of(
          `tokens_${type}`,
          TYPES[type] ?? type.replaceAll("_", " "),
          ({ totals }) => totals.tokens[type] ?? 0,
          compact,
        ),
      );
    }
    if (isModel) columns.push(this.#provenance());
    return columns;
  }

  #provenance(): Column<Scope> {
    return {
      id: "output_estimated_ratio",
      title: "Counts",
      value: ({ totals }) => sourcesOf(totals.output_provenance)?.estimated ?? null,
      text: ({ totals }) => {
        const sources = sourcesOf(totals.output_provenance);
        return sources
          ? sources.estimated > 0
            ? `${say(share(sources.estimated))} estimated`
            : "none estimated"
          : "–";
      },
      adorn: (cell, { totals }) => {
        const sources = sourcesOf(totals.output_provenance);
        mark(cell, "class", "with-bar");
        mark(cell, "title", sources ? `Output tokens: ${words(sources)}` : null);
        this.#bar(cell).set(
          sources
            ? [
                { share: sources.reported, kind: "solid" },
                { share: sources.counted, kind: "soft" },
                { share: sources.estimated, kind: "hatched" },
              ]
            : [],
        );
      },
    };
  }

  #budget(currency: string): Column<Scope> {
    const used = (s: Scope): Maybe => (s.budget && s.budget.limit > 0 ? s.budget.used / s.budget.limit : null);
    return {
      id: "budget_used_ratio",
      title: "Budget",
      value: used,
      text: (scope) => {
        const { budget } = scope;
        if (!budget) return "–";
        const forecast = budget.forecast === null ? "" : `, ≈\u202f${money(budget.forecast, currency)} estimated`;
        return `${say(share(used(scope)))} of ${money(budget.limit, currency)} a ${budget.period}${forecast}`;
      },
      adorn: (cell, scope) => {
        const { budget } = scope;
        mark(cell, "class", "with-bar");
        const ratio = used(scope) ?? 0;
        const ahead = budget?.forecast != null && budget.limit > 0 ? budget.forecast / budget.limit : 0;
        this.#bar(cell).set(
          budget
            ? [
                { share: ratio, kind: ratio >= 1 ? "bad" : "solid" },
                { share: Math.min(1, ahead) - Math.min(1, ratio), kind: "hatched" },
              ]
            : [],
        );
      },
    };
  }

  /** Returns the bar of a cell. */
  #bar(cell: HTMLElement): Bar {
    let bar = this.#bars.get(cell);
    if (!bar) {
      bar = new Bar();
      this.#bars.set(cell, bar);
      cell.append(bar.element);
    }
    return bar;
  }
}

const point =
  (name: keyof Point) =>
  (scope: Scope): Maybe =>
    scope.point[name];
const plainOf =
  (unit: string) =>
  (value: Maybe): Quantity =>
    plain(value, unit);

function of(id: string, title: string, value: (s: Scope) => Maybe, form: (v: Maybe) => Quantity): Column<Scope> {
  return { id, title, value: value as (s: Scope) => Cell, text: (scope) => say(form(value(scope))) };
}

/** Returns the token types that occur, the known ones first. */
function typesOf(rows: readonly Scope[]): string[] {
  const found = new Set(rows.flatMap(({ totals }) => Object.keys(totals.tokens)));
  const known = Object.keys(TYPES);
  return [
    ...known.filter((type) => found.has(type) || type === "input" || type === "output"),
    ...[...found].filter((type) => !known.includes(type)).sort(),
  ];
}
