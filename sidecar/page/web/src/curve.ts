// The degradation curve: what one request gets while so many share the server, with its knee.

import type uPlot from "uplot";

import { axisFont, Chart, type Options } from "./chart.ts";
import { save, type Cell } from "./csv.ts";
import { button, make, mark, show, write } from "./element.ts";
import { legend } from "./legend.ts";
import type { ConcurrencyPoint, Curves, Knee, Maybe, ModelCurves } from "./json.ts";
import { colour } from "./palette.ts";
import { visible } from "./name.ts";
import { ALL, type Place } from "./place.ts";
import { QueryButton } from "./query-button.ts";
import { count, fixed, rate, say, seconds, share, three } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";

/** The ranges of concurrency, all of them from the start, so that the curve grows on fixed axes. */
const RANGES = ["1", "2-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+"];

const MEANING =
  "The knee: up to this many requests at once, at least half of them keep the objective’s speed. " +
  "Beyond it, send the server fewer requests at once, or add a server.";

export class Curve implements View {
  readonly element: HTMLElement;
  readonly #query = new QueryButton("curve", "Degradation curve");
  readonly #choice = make("select", { "aria-label": "Model and server of the curve" });
  readonly #words = make("ul", { class: "knees" });
  readonly #meaning = make("p", { class: "note" });
  readonly #empty = make(
    "p",
    { class: "note" },
    "The curve comes from traffic: a point needs streams at that concurrency.",
  );
  readonly #rows = make("tbody");
  readonly #section: Section;
  readonly #speed: Chart;
  readonly #firstToken: Chart;
  #curves: ModelCurves[] = [];
  #shown: ModelCurves | null = null;
  #ranges = RANGES;
  #key = "";

  constructor() {
    const ticks = {
      at: () => this.#ranges.map((_, at) => at),
      text: (x: number, isNarrow: boolean) => (this.#ranges[x] ?? "").replace(isNarrow ? /-.*/ : /^$/, ""),
      range: (): [number, number] => [-0.5, this.#ranges.length - 0.5],
    };
    const where = (x: number): string => `${this.#ranges[x] ?? ""} at once`;
    const speed: Options = {
      name: "Speed of one request by concurrency",
      where,
      ticks,
      sync: "curve",
      gutter: 3.25,
      band: [1, 3],
      floor: 10,
      lines: [
        { label: "half of the requests reach", role: "accent", shape: "dots" },
        { label: "9 of 10", role: "ink", shape: "dots", isThin: true },
        { label: "99 of 100", role: "muted", shape: "dots", isThin: true },
      ],
      value: (v) => say(rate(v)),
      tick: (v) => fixed(v, v % 1 ? 1 : 0),
      below: (plot) => this.#knee(plot),
    };
    const firstToken: Options = {
      name: "Time to first token by concurrency",
      where,
      ticks,
      sync: "curve",
      gutter: 3.25,
      band: [2, 1],
      floor: 0.01,
      lines: [
        { label: "p50", role: "accent", shape: "dots" },
        { label: "p99", role: "ink", shape: "dots", isThin: true },
      ],
      value: (v) => say(seconds(v)),
      tick: (v) => (v === 0 ? "0" : v < 1 ? `${+(v * 1e3).toPrecision(3)} ms` : `${+v.toPrecision(3)} s`),
      below: (plot) => this.#knee(plot),
    };
    this.#speed = new Chart(speed);
    this.#firstToken = new Chart(firstToken);
    const head = [
      "At once",
      "Requests",
      "Speed p50",
      "p90",
      "p99",
      "First token p50",
      "p99",
      "All together, estimated",
    ];
    const table = make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
      this.#rows,
    );
    const numbers = make(
      "details",
      {},
      make("summary", {}, "Numbers"),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the curve" }, table),
    );
    this.#section = new Section(
      "Degradation curve",
      "curve",
      this.#words,
      this.#meaning,
      make("div", { class: "bar-of-title" }, make("h3", {}, "Speed of one request, tokens/s"), legend(speed.lines)),
      this.#speed.element,
      make("div", { class: "bar-of-title" }, make("h3", {}, "Time to first token"), legend(firstToken.lines)),
      this.#firstToken.element,
      make("p", { class: "axis" }, "requests at once"),
      this.#empty,
      numbers,
    );
    this.#section.controls.append(
      this.#choice,
      this.#query.element,
      button("CSV", "Save the curve as a CSV file", () => this.#save()),
    );
    this.element = this.#section.element;
    this.#choice.addEventListener("change", () => this.#draw());
    show(this.#choice, false);
  }

  update({ curves, place, now }: Reading): void {
    const key = JSON.stringify([place, curves]);
    if (key !== this.#key) {
      this.#key = key;
      this.#take(curves, place);
    }
    const model = now.models.find(({ name }) => name === this.#shown?.model);
    this.#explain(model?.point.in_flight ?? null);
  }

  #take(curves: Curves | null, place: Place): void {
    this.#query.about(place, null);
    this.#section.coversAll(place.kind === "tenant" ? place : ALL);
    const all = curves?.models ?? [];
    this.#curves = place.kind === "model" ? all.filter(({ model }) => model === place.name) : all;
    this.#offer();
    this.#draw();
  }

  repaint(): void {
    this.#speed.repaint();
    this.#firstToken.repaint();
  }

  /** Offers a choice among the curves, the one with the most exchanges first. */
  #offer(): void {
    const weight = (of: ModelCurves): number => of.by_concurrency.reduce((sum, { exchanges }) => sum + exchanges, 0);
    this.#curves = [...this.#curves].sort((a, b) => weight(b) - weight(a));
    const names = this.#curves.map(nameOf);
    const has = [...this.#choice.options].map(({ value }) => value);
    if (names.length === has.length && names.every((name) => has.includes(name))) return;
    const chosen = this.#choice.value;
    this.#choice.replaceChildren(...names.map((name) => make("option", { value: name }, visible(name))));
    if (names.includes(chosen)) this.#choice.value = chosen;
    show(this.#choice, names.length > 1);
  }

  #draw(): void {
    const chosen = this.#choice.value;
    this.#shown = this.#curves.find((curves) => nameOf(curves) === chosen) ?? this.#curves[0] ?? null;
    const points = this.#shown?.by_concurrency ?? [];
    const isKnown = points.every(({ concurrency }) => RANGES.includes(concurrency));
    this.#ranges = isKnown ? RANGES : points.map(({ concurrency }) => concurrency);
    const by = (value: (point: ConcurrencyPoint) => Maybe): Maybe[] =>
      this.#ranges.map((range) => {
        const point = points.find(({ concurrency }) => concurrency === range);
        return point ? value(point) : null;
      });
    const xs = this.#ranges.map((_, at) => at);
    this.#speed.set([
      xs,
      by((p) => p.speed_tokens_per_second.p50),
      by((p) => p.speed_tokens_per_second.p90),
      by((p) => p.speed_tokens_per_second.p99),
    ]);
    this.#firstToken.set([xs, by((p) => p.first_token_seconds.p50), by((p) => p.first_token_seconds.p99)]);
    show(this.#empty, points.length === 0);
    this.#list(points);
    this.#say(this.#shown?.knees ?? []);
  }

  /** Says what the knee is, what to do, and how far it is from there. */
  #explain(inFlight: Maybe): void {
    const knee = judged(this.#shown?.knees ?? [])[0];
    const now = `${say(count(inFlight))} of this model now`;
    write(this.#meaning, knee ? `${MEANING} In flight: ${placeOf(knee)}, ${now}.` : MEANING);
  }

  #say(knees: Knee[]): void {
    const configured = knees.filter(({ basis }) => basis === "configured");
    const lines = judged(knees).map((knee) => {
      const met =
        knee.judged_exchanges && knee.met_exchanges !== null
          ? `; ${say(share(knee.met_exchanges / knee.judged_exchanges))} of ` +
            `${say(count(knee.judged_exchanges))} exchanges met it`
          : "";
      return `${knee.missed_at ? "✕" : "✓"} ${knee.words}${met}`;
    });
    const old = [...this.#words.children].map(({ textContent }) => textContent);
    if (old.join("\n") !== lines.join("\n")) this.#words.replaceChildren(...lines.map((line) => make("li", {}, line)));
    mark(this.#words, "data-basis", configured.length || !knees.length ? null : "preset");
  }

  #list(points: ConcurrencyPoint[]): void {
    const rows = points.map((point) => {
      const speed = point.speed_tokens_per_second,
        first = point.first_token_seconds;
      const cells = [
        say(count(point.exchanges)),
        ...[speed.p50, speed.p90, speed.p99].map((v) => say(rate(v))),
        ...[first.p50, first.p99].map((v) => say(seconds(v))),
      ].map((text) => make("td", {}, text));
      const all = point.aggregate_tokens_per_second_estimate;
      const estimate = make(
        "td",
        {},
        make("span", { class: "estimated" }, all === null ? "–" : `≈\u202f${three(all)}\u202ftokens/s`),
      );
      return make("tr", {}, make("th", { scope: "row" }, point.concurrency), ...cells, estimate);
    });
    this.#rows.replaceChildren(...rows);
  }

  /** Draws the objectives' speeds, and hatches the concurrencies beyond the knee. */
  #knee(plot: uPlot): void {
    const knees = (this.#shown?.knees ?? []).filter(({ basis }) => basis === "configured");
    const { ctx, bbox } = plot;
    ctx.save();
    for (const knee of knees) {
      const from = knee.missed_at === null ? -1 : this.#ranges.indexOf(knee.missed_at);
      if (from >= 0) {
        const left = plot.valToPos(from - 0.5, "x", true);
        hatch(ctx, left, bbox.top, bbox.left + bbox.width - left, bbox.height);
        ctx.fillStyle = colour("bad");
        ctx.fillRect(left, bbox.top, 1.5 * devicePixelRatio, bbox.height);
      }
    }
    ctx.restore();
    if (plot.series.length === 4) for (const knee of knees) this.#bound(plot, knee);
  }

  #bound(plot: uPlot, knee: Knee): void {
    const { ctx, bbox } = plot;
    const y = plot.valToPos(knee.tokens_per_second, "y", true);
    if (y < bbox.top) return;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour("muted");
    ctx.fillStyle = colour("muted");
    ctx.setLineDash([rem * 0.3, rem * 0.25]);
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.font = axisFont(rem);
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    ctx.fillText(
      `${knee.objective}: ${+knee.tokens_per_second.toPrecision(3)}`,
      bbox.left + bbox.width - rem * 0.2,
      y - rem * 0.1,
    );
    ctx.restore();
  }

  #save(): void {
    const head: Cell[] = [
      "model",
      "upstream",
      "concurrency",
      "exchanges",
      "speed_tokens_per_second_p50",
      "speed_tokens_per_second_p90",
      "speed_tokens_per_second_p99",
      "first_token_seconds_p50",
      "first_token_seconds_p99",
      "aggregate_tokens_per_second_estimate",
    ];
    const rows = this.#curves.flatMap(({ model, upstream, by_concurrency }) =>
      by_concurrency.map((p): Cell[] => [
        model,
        upstream,
        p.concurrency,
        p.exchanges,
        p.speed_tokens_per_second.p50,
        p.speed_tokens_per_second.p90,
        p.speed_tokens_per_second.p99,
        p.first_token_seconds.p50,
        p.first_token_seconds.p99,
        p.aggregate_tokens_per_second_estimate,
      ]),
    );
    save("curve", [head, ...rows]);
  }
}

/** Returns the knees of the configured objectives; without one, those of the presets. */
function judged(knees: Knee[]): Knee[] {
  const configured = knees.filter(({ basis }) => basis === "configured");
  return configured.length ? configured : knees;
}

/** Returns where the knee is, as a part of a sentence. */
function placeOf({ objective, kept_up_to, missed_at }: Knee): string {
  if (missed_at !== null) return `${kept_up_to ?? `below ${missed_at}`} at the knee of ${objective}`;
  return kept_up_to === null ? `no knee of ${objective} yet` : `the knee of ${objective} is above ${kept_up_to}`;
}

function nameOf({ model, upstream }: ModelCurves): string {
  return upstream ? `${model} at ${upstream}` : model;
}

function hatch(ctx: CanvasRenderingContext2D, left: number, top: number, width: number, height: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.strokeStyle = colour("line");
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  for (let x = left - height; x < left + width; x += 8 * devicePixelRatio) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.stroke();
  ctx.restore();
}
