// The headline: six current numbers, each above its history.

import { timeOfDay, type Line, type Options } from "./chart.ts";
import { make } from "./element.ts";
import type { Maybe, SeriesName } from "./json.ts";
import { objectiveOf } from "./objective.ts";
import { Panel, type Verdict } from "./panel.ts";
import { count, fixed, money, plain, rate, say, seconds, share, three, type Quantity } from "./quantity.ts";
import type { Trail } from "./trail.ts";
import type { Reading, View } from "./view.ts";

/** Money and failures come in single exchanges: their charts are trailing means of as many seconds. */
const SMOOTH_POINTS = 30;

const short = (value: number): string =>
  value >= 1e6 ? `${three(value / 1e6)}M` : value >= 1e4 ? `${three(value / 1e3)}k` : fixed(value, value % 1 ? 1 : 0);
const inSeconds = (value: number): string =>
  value === 0 ? "0" : value < 1 ? `${+(value * 1000).toPrecision(3)} ms` : `${+value.toPrecision(3)} s`;
const TWO_DIGITS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2, useGrouping: false });
const small = (value: number): string => TWO_DIGITS.format(value);

function timed(name: string, lines: Line[], value: Options["value"], tick: Options["tick"], more = {}): Options {
  return { name, lines, value, tick, where: (x) => timeOfDay(x), sync: "time", ...more };
}

export class Panels implements View {
  readonly element: HTMLElement;
  #currency: string | null = null;

  readonly #output = new Panel(
    "output",
    "Output tokens per second",
    [""],
    timed("Output tokens per second", [{ label: "", role: "accent", shape: "area" }], (v) => say(rate(v)), short, {
      floor: 10,
    }),
    "hero",
  );
  readonly #inFlight = new Panel(
    "in_flight",
    "In flight",
    [""],
    timed("Requests in flight", [{ label: "", role: "accent", shape: "area" }], (v) => say(requests(v)), short, {
      floor: 4,
    }),
  );
  readonly #firstToken = new Panel(
    "first_token",
    "Time to first token",
    ["p50", "p99"],
    timed(
      "Time to first token",
      [
        { label: "p50", role: "accent" },
        { label: "p99", role: "ink", isThin: true },
      ],
      (v) => say(seconds(v)),
      inSeconds,
      { floor: 0.01 },
    ),
  );
  readonly #speed = new Panel(
    "speed",
    "Speed of one request",
    ["p50"],
    timed(
      "Speed of one request, median",
      [
        { label: "p50", role: "accent" },
        { label: "objective", role: "muted", isDashed: true, isThin: true, isSilent: true },
      ],
      (v) => say(rate(v)),
      short,
      { floor: 10 },
    ),
  );
  readonly #errors = new Panel(
    "errors",
    "Errors and aborts",
    ["errors", "aborts"],
    timed(
      "Errors and aborts per minute",
      [
        { label: "errors", role: "bad", shape: "line" },
        { label: "aborts", role: "ink", isDashed: true, isThin: true },
      ],
      (v) => say(plain(v, "/min")),
      small,
      { floor: 1 },
    ),
  );
  readonly #spend = new Panel(
    "spend",
    "Spend",
    ["", ""],
    timed(
      "Spend per hour",
      [{ label: "", role: "accent", shape: "area" }],
      (v) => `${money(v, this.#currency)} per hour`,
      small,
      { floor: 0.001 },
    ),
  );

  constructor() {
    const rest = [this.#inFlight, this.#firstToken, this.#speed, this.#errors, this.#spend];
    this.element = make(
      "section",
      { class: "panels", "aria-label": "Now and the last hours" },
      this.#output.element,
      ...rest.map((panel) => panel.element),
    );
  }

  get #all(): Panel[] {
    return [this.#output, this.#inFlight, this.#firstToken, this.#speed, this.#errors, this.#spend];
  }

  update(reading: Reading): void {
    this.#currency = reading.now.currency;
    for (const panel of this.#all) panel.about(reading.place, this.#currency);
    this.#numbers(reading);
    this.#charts(reading);
  }

  repaint(): void {
    for (const panel of this.#all) panel.repaint();
  }

  #numbers(reading: Reading): void {
    const { near, scope, place } = reading;
    const totals = scope?.totals;
    const recent = scope?.recent;
    const isTenant = place.kind === "tenant";
    const byModel = "counted by model only";
    const made = totals ? (totals.live_output_tokens ?? sumOf(totals.tokens, "output")) : null;
    const words = [
      `Mean of the last 10 s${isTenant ? ", of exchanges that ended" : ""}.`,
      `Prompts: ${say(rate(recent?.input_tokens_per_second_10s ?? null))}.`,
      `Since the start: ${say(count(made))} output tokens in ${say(count(totals?.exchanges ?? null))} exchanges.`,
    ];
    if (totals?.goodput_ratio != null) words.push(`Goodput: ${say(share(totals.goodput_ratio))} met the objective.`);
    this.#output.set([rate(recent?.output_tokens_per_second_10s ?? null)], words.join(" "));

    const inFlight = last(near, "in_flight");
    this.#inFlight.set(
      [requests(inFlight)],
      isTenant ? byModel : `Most in 15 min: ${say(count(near.max("in_flight")))}`,
    );

    const objective = objectiveOf(reading);
    const bound = objective?.first_token_seconds ?? null;
    this.#firstToken.set(
      [seconds(last(near, "first_token_p50_seconds")), seconds(last(near, "first_token_p99_seconds"))],
      isTenant
        ? byModel
        : bound === null
          ? "Exchanges of the last 10 s"
          : `Objective ${objective?.name}: at most ${say(seconds(bound))}`,
    );

    const speed = last(near, "request_tokens_per_second_p50");
    const least = objective?.request_tokens_per_second ?? null;
    const verdict: Verdict = speed === null || least === null ? null : speed >= least ? "met" : "missed";
    const said = { met: "✓ meets", missed: "✕ below" };
    this.#speed.set(
      [rate(speed)],
      isTenant
        ? byModel
        : least === null
          ? "Half of the requests are faster"
          : `${verdict ? said[verdict] : "Objective"} ${objective?.name}: at least ${say(rate(least))}`,
      verdict,
    );

    const errors = recent?.errors_60s ?? null;
    this.#errors.set(
      [count(errors), count(recent?.aborts_60s ?? null)],
      `Of ${say(count(recent?.exchanges_60s ?? null))} exchanges in the last 60 s. Since the start: ${total(totals?.errors)} and ${total(totals?.aborts)}`,
      errors ? "missed" : null,
    );

    const currency = this.#currency;
    const hourly = recent?.spend_per_hour_60s ?? null;
    const quantity: Quantity = { value: money(hourly, currency), unit: hourly === null ? "" : "per hour" };
    const month = monthOf(reading);
    this.#spend.set(
      [currency ? quantity : plain(null, ""), { value: month ?? "", unit: month ? "this month" : "" }],
      !currency
        ? "No price book: the notice above shows how to add one"
        : place.kind !== "model" && !reading.now.ledger
          ? "Mean of the last 60 s. With --ledger, also the sum of the month"
          : "Mean of the last 60 s",
    );
  }

  #charts(reading: Reading): void {
    const { shown } = reading;
    const at = (name: SeriesName): Maybe[] => shown.values(name);
    const points = shown.step === 1 ? SMOOTH_POINTS : 1;
    this.#output.draw([shown.times, at("output_tokens_per_second")]);
    this.#inFlight.draw([shown.times, at("in_flight")]);
    this.#firstToken.draw([shown.times, at("first_token_p50_seconds"), at("first_token_p99_seconds")]);
    const least = objectiveOf(reading)?.request_tokens_per_second ?? null;
    this.#speed.draw([shown.times, at("request_tokens_per_second_p50"), shown.times.map(() => least)]);
    const minutely = (name: SeriesName): Maybe[] => shown.smooth(name, points).map((v) => (v === null ? null : v * 60));
    this.#errors.draw([shown.times, minutely("errors_per_second"), minutely("aborts_per_second")]);
    this.#spend.draw([shown.times, shown.smooth("spend_per_hour", points)]);
  }
}

const total = (events: number | undefined): string => say(count(events ?? null));
const last = (trail: Trail, name: SeriesName): Maybe => trail.values(name).at(-1) ?? null;

export function sumOf(tokens: Record<string, number>, prefix: string): number {
  return Object.entries(tokens).reduce((sum, [type, n]) => (type.startsWith(prefix) ? sum + n : sum), 0);
}

/** Returns the month's spend of the place; `null` if the ledger has none by model, or there is no ledger. */
function monthOf({ month, place }: Reading): string | null {
  if (place.kind === "model" || !month?.currency) return null;
  return money(month.sum(place.kind === "tenant" ? place.name : null), month.currency);
}

function requests(value: Maybe): Quantity {
  if (value === null) return plain(null, "");
  return {
    value: Number.isInteger(value) ? fixed(value, 0) : three(value),
    unit: value === 1 ? "request" : "requests",
  };
}
