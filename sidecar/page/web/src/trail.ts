// The last points of a place: the history that was loaded, and what the stream added since.

import type { History, Maybe, Point, SeriesName } from "./json.ts";

export type Step = 1 | 60;

export const POINTS: Record<Step, number> = { 1: 900, 60: 1440 };

const NAMES: SeriesName[] = [
  "output_tokens_per_second",
  "input_tokens_per_second",
  "in_flight",
  "exchanges_per_second",
  "errors_per_second",
  "aborts_per_second",
  "first_token_p50_seconds",
  "first_token_p99_seconds",
  "request_tokens_per_second_p50",
  "spend_per_hour",
  "watts",
];

export class Trail {
  /** Seconds since 1970 of each point, oldest first; all lists have its length. */
  readonly times: number[];
  readonly #values = new Map<SeriesName, Maybe[]>();

  private constructor(
    readonly step: Step,
    last: number,
    points = POINTS[step],
    /** The second in which the process began, if it is known. */
    private readonly begun = -Infinity,
  ) {
    this.times = Array.from({ length: points }, (_, at) => last - (points - 1 - at) * step);
    for (const name of NAMES) this.#values.set(name, new Array<Maybe>(points).fill(null));
  }

  static empty(step: Step, last: number): Trail {
    return new Trail(step, last);
  }

  static of(history: History): Trail {
    const trail = new Trail(history.step_seconds === 60 ? 60 : 1, history.last_unix_s);
    for (const name of NAMES) {
      const to = trail.values(name);
      const from = (history.series[name] ?? []).slice(-to.length);
      for (const [at, value] of from.entries()) to[to.length - from.length + at] = value;
    }
    return trail;
  }

  /** Returns the part since `second`, so that the charts of a young process are not empty; at least 60 s, or 10 min. */
  since(second: number): Trail {
    const least = this.step === 1 ? 60 : 10;
    const points = Math.min(this.times.length, Math.max(least, Math.ceil((this.last - second) / this.step) + 1));
    const part = new Trail(this.step, this.last, points, second);
    for (const name of NAMES) part.#values.set(name, this.values(name).slice(-points));
    return part;
  }

  get last(): number {
    return this.times[this.times.length - 1] ?? 0;
  }

  values(name: SeriesName): Maybe[] {
    return this.#values.get(name) ?? [];
  }

  /** Adds the point of a second. Returns false if seconds before it are missing. */
  push(second: number, point: Point): boolean {
    if (second <= this.last) return true;
    if (second > this.last + this.step) return false;
    this.times.shift();
    this.times.push(second);
    for (const [name, values] of this.#values) {
      values.shift();
      values.push(point[name] ?? null);
    }
    return true;
  }

  max(name: SeriesName): Maybe {
    return this.values(name).reduce<Maybe>((most, v) => (v !== null && (most === null || v > most) ? v : most), null);
  }

  /** Returns the series as trailing means of `points` points. Before the process began, there was nothing to count. */
  smooth(name: SeriesName, points: number): Maybe[] {
    const values = this.values(name);
    if (points <= 1) return values;
    const first = (this.begun - (this.times[0] ?? 0)) / this.step;
    let sum = 0,
      known = 0;
    return values.map((value, at) => {
      if (value !== null) {
        sum += value;
        known += 1;
      }
      const gone = at >= points ? (values[at - points] ?? null) : null;
      if (gone !== null) {
        sum -= gone;
        known -= 1;
      }
      const before = Math.min(points - 1, Math.max(0, Math.ceil(first) - (at - points + 1)));
      const all = known + before;
      // A mean of few points would jump at the window's edge.
      return value === null || all < points * 0.9 ? null : Math.max(0, sum / all);
    });
  }

  static get names(): readonly SeriesName[] {
    return NAMES;
  }
}
