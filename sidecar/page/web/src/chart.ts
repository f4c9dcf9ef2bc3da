// A chart that can be read with a pointer, a keyboard and a screen reader; uPlot draws it.

import uPlot from "uplot";

import { make, mark } from "./element.ts";
import type { Maybe } from "./json.ts";
import { colour, type Role } from "./palette.ts";
import { speak } from "./speech.ts";

export interface Line {
  readonly label: string;
  readonly role: Role;
  readonly shape?: "line" | "area" | "bars" | "dots";
  readonly isDashed?: boolean;
  readonly isThin?: boolean;
  /** True if the readout leaves it out, because it is a constant. */
  readonly isSilent?: boolean;
}

export interface Options {
  /** The chart's name for screen readers. */
  readonly name: string;
  readonly lines: readonly Line[];
  /** Text of a value, with its unit. */
  readonly value: (value: Maybe) => string;
  /** Text of a value on the axis. */
  readonly tick: (value: number) => string;
  /** Text of a place on the x axis, for the readout. */
  readonly where: (x: number) => string;
  /** Ticks of the x axis; without it, the time. */
  readonly ticks?: {
    at: () => number[];
    text: (x: number, isNarrow: boolean) => string;
    range: () => [number, number];
  };
  /** Lines between which the area is filled. */
  readonly band?: readonly [number, number];
  /** Draws below the lines. */
  readonly below?: (plot: uPlot) => void;
  /** Charts with one key share the cursor. */
  readonly sync?: string;
  /** The width of the y axis, in rem, where charts one above the other share the x axis. */
  readonly gutter?: number;
  /** The smallest top of the y axis. */
  readonly floor?: number;
}

export type Data = readonly (readonly Maybe[])[];

export class Chart {
  readonly element: HTMLElement;
  readonly #readout = make("p", { class: "readout", "aria-hidden": "true" });
  readonly #frame: HTMLElement;
  #plot: uPlot | null = null;
  #data: Data;
  #isSeen = false;
  #isDirty = false;
  #size = "";

  constructor(private readonly options: Options) {
    this.#data = [[], ...options.lines.map(() => [])];
    this.#frame = make("div", {
      class: "frame",
      tabindex: "0",
      role: "group",
      "aria-roledescription": "chart",
      "aria-label": `${options.name}. Arrow keys read the values.`,
    });
    this.element = make("div", { class: "chart" }, this.#frame, this.#readout);
    this.#frame.addEventListener("keydown", (event) => this.#key(event));
    this.#frame.addEventListener("blur", () => this.#plot?.setCursor({ left: -10, top: -10 }));
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    new IntersectionObserver(
      (entries) => {
        this.#isSeen = entries.some((entry) => entry.isIntersecting);
        if (this.#isSeen && this.#isDirty) this.#draw();
      },
      { rootMargin: "100px" },
    ).observe(this.#frame);
  }

  /** Shows these values: x, then each line. What is off the screen is drawn when it is scrolled to. */
  set(data: Data): void {
    this.#data = data;
    this.#isDirty = true;
    if (this.#isSeen) this.#draw();
  }

  /** Draws again, with new colours. */
  repaint(): void {
    this.#plot?.redraw(false);
  }

  #draw(): void {
    if (!this.#plot) return;
    this.#isDirty = false;
    this.#plot.setData(this.#data as uPlot.AlignedData);
    this.#read();
  }

  /** Fits the plot to its frame; a changed font size needs a new plot. */
  #fit(): void {
    const { clientWidth: width, clientHeight: height } = this.#frame;
    if (width < 20 || height < 20) return;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const size = `${width} ${height} ${rem}`;
    if (size === this.#size) return;
    this.#size = size;
    const isSame = this.#plot !== null && this.#frame.dataset["rem"] === String(rem);
    if (isSame) {
      this.#plot?.setSize({ width, height });
      return;
    }
    this.#frame.dataset["rem"] = String(rem);
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#plan(width, height, rem), this.#data as uPlot.AlignedData, this.#frame);
    // uPlot's table of values is not shown.
    mark(this.#plot.root, "aria-hidden", "true");
  }

  #plan(width: number, height: number, rem: number): uPlot.Options {
    const { lines, ticks, sync, below, band, tick, gutter } = this.options;
    const axis = {
      font: axisFont(rem),
      stroke: () => colour("muted"),
      ticks: { show: false },
    };
    return {
      width,
      height,
      legend: { show: false },
      padding: [rem * 0.6, ticks ? rem * 0.5 : rem * 1.1, 0, 0],
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { size: rem * 0.5, fill: (_, at) => colour(lines[at - 1]?.role ?? "ink") },
        ...(sync ? { sync: { key: sync } } : {}),
      },
      scales: {
        x: ticks ? { time: false, range: () => ticks.range() } : { time: true },
        y: { range: (_, __, max) => [0, roof(Math.max(max ?? 0, this.options.floor ?? 0))] },
      },
      ...(band ? { bands: [{ series: [band[0], band[1]], fill: () => colour("wash") }] } : {}),
      axes: [
        {
          ...axis,
          size: rem * 1.5,
          gap: rem * 0.3,
          space: rem * 4.5,
          grid: { show: false },
          ...(ticks
            ? { splits: () => ticks.at(), values: (plot, at) => at.map((x) => ticks.text(x, plot.width < rem * 28)) }
            : { values: clock }),
        },
        {
          ...axis,
          size: gutter ? rem * gutter : (plot, labels) => widest(plot, labels, rem),
          gap: rem * 0.4,
          space: rem * 1.8,
          grid: { stroke: () => colour("line"), width: 1 },
          values: (_, at) => at.map(tick),
        },
      ],
      series: [{}, ...lines.map((line) => series(line, rem))],
      hooks: { setCursor: [() => this.#read()], drawClear: below ? [below] : [] },
    };
  }

  /** Writes the values at the cursor. */
  #read(): void {
    const at = this.#plot?.cursor.idx;
    const text = at === null || at === undefined || (this.#plot?.cursor.left ?? -1) < 0 ? "" : this.#words(at);
    if (this.#readout.textContent !== text) this.#readout.textContent = text;
  }

  #words(at: number): string {
    const x = this.#data[0]?.[at];
    if (x === null || x === undefined) return "";
    const values = this.options.lines.flatMap(({ label, isSilent }, line) =>
      isSilent ? [] : [`${label} ${this.options.value(this.#data[line + 1]?.[at] ?? null)}`.trim()],
    );
    return `${this.options.where(x)}: ${values.join(", ")}`;
  }

  #key(event: KeyboardEvent): void {
    const plot = this.#plot;
    const xs = this.#data[0];
    if (!plot || !xs || xs.length === 0) return;
    const end = xs.length - 1;
    const isOff = (plot.cursor.left ?? -1) < 0;
    const at = isOff ? end : (plot.cursor.idx ?? end);
    const stride = event.shiftKey ? 10 : 1;
    const to: Record<string, number> = {
      ArrowLeft: isOff ? end : at - stride,
      ArrowRight: at + stride,
      Home: 0,
      End: end,
    };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(end, next));
    plot.setCursor({ left: plot.valToPos(xs[index] ?? 0, "x"), top: 1 });
    speak(this.#words(index));
  }
}

function series(line: Line, rem: number): uPlot.Series {
  const width = (rem / 16) * (line.isThin ? 1 : 1.75);
  const stroke = () => colour(line.role);
  const base: uPlot.Series = { label: line.label, stroke, width, points: { show: false }, spanGaps: false };
  if (line.isDashed) base.dash = [rem * 0.3, rem * 0.25];
  if (line.shape === "area") base.fill = () => colour("wash");
  if (line.shape === "dots") {
    // A range without a measurement has no dot; the line goes on.
    base.spanGaps = true;
    base.points = { show: true, size: rem * (line.isThin ? 0.3 : 0.5), width, stroke, fill: () => colour("paper") };
  }
  if (line.shape === "bars") {
    base.fill = stroke;
    base.width = 0;
    const paths = uPlot.paths.bars?.({ size: [0.62, rem * 4], align: 0 });
    if (paths) base.paths = paths;
  }
  return base;
}

/** Returns the font of the axes; uPlot scales whole pixels only. */
export function axisFont(rem: number): string {
  return `${Math.round(rem * 0.75)}px system-ui, sans-serif`;
}

/** Returns the width of the labels, in steps, so that the chart's edge moves rarely. */
function widest(plot: uPlot, labels: string[] | null, rem: number): number {
  const { ctx } = plot;
  ctx.save();
  ctx.font = axisFont(rem * devicePixelRatio);
  const width = Math.max(0, ...(labels ?? []).map((label) => ctx.measureText(label).width)) / devicePixelRatio;
  ctx.restore();
  return Math.max(2, Math.ceil((width / rem + 0.5) * 2) / 2) * rem;
}

/** Returns the next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power of ten, so that the axis changes rarely. */
function roof(max: number): number {
  if (!(max > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(max));
  const steps = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
  return (steps.find((step) => max <= step * power * 0.96) ?? 12) * power;
}

/** Returns the times of day. */
function clock(_: uPlot, at: number[], __: number, ___: number, step: number): string[] {
  return at.map((second) => (step < 60 ? timeOfDay(second) : hourMinute(second)));
}

const HOUR_MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const WHOLE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const hourMinute = (second: number): string => HOUR_MINUTE.format(second * 1000);
export const timeOfDay = (second: number): string => WHOLE.format(second * 1000);
