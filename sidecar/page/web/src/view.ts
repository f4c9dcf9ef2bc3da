// What a part of the page is given to show.

import type { Curves, Now, Scope } from "./json.ts";
import type { MonthToDate } from "./month-to-date.ts";
import type { Place } from "./place.ts";
import type { Trail } from "./trail.ts";

export interface Reading {
  readonly now: Now;
  readonly place: Place;
  /** The place's numbers; `null` if it is not listed. */
  readonly scope: Scope | null;
  /** The last 15 minutes by the second. */
  readonly near: Trail;
  /** What the charts show: `near`, or the day by the minute. */
  readonly shown: Trail;
  readonly curves: Curves | null;
  /** `null` before the first answer and without a ledger. */
  readonly month: MonthToDate | null;
}

export interface View {
  readonly element: HTMLElement;
  update(reading: Reading): void;
  /** The colours have changed. */
  repaint?(): void;
}
