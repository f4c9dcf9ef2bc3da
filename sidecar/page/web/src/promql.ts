// The queries of the charts for Prometheus.

import { INVISIBLE } from "./name.ts";
import type { Place } from "./place.ts";
import queries from "./queries.json";

/** Returns the query of a chart for a place; `null` if there is none. */
export function queryOf(id: string, place: Place, currency: string | null): string | null {
  const found = queries.find((query) => query.id === id && query.scope === place.kind);
  // The metrics of money are named by their currency.
  if (!found || (currency === null && found.query.includes("$currency"))) return null;
  const name = place.kind === "all" ? "" : quoted(place.name);
  // One pass: a name may itself contain a placeholder.
  return found.query.replace(/\$(model|tenant|currency)/g, (_, word: string) =>
    word === "currency" ? (currency ?? "").toLowerCase() : name,
  );
}

/** Quotes a label value as PromQL does. What cannot be seen is escaped. */
export function quoted(value: string): string {
  const escaped = value.replace(/[\\"\u0000-\u001f\u007f]/g, (c) =>
    c === "\\" || c === '"' ? `\\${c}` : `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  const seen = escaped.replace(INVISIBLE, (c) => `\\U${(c.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`);
  return `"${seen}"`;
}
