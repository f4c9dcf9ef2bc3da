// A line of a chart as a sign beside its name.

import type { Line } from "./chart.ts";
import { make } from "./element.ts";

/** Returns the sign of a line: its colour, and dashes if it has them. */
export function sign({ role, isDashed, isThin }: Line): HTMLElement {
  const shape = `${isDashed ? " dashed" : ""}${isThin ? " thin" : ""}`;
  return make("span", { class: `sign of-${role}${shape}`, "aria-hidden": "true" });
}

/** Returns the names of the lines with their signs. */
export function legend(lines: readonly Line[]): HTMLElement {
  return make("ul", { class: "legend" }, ...lines.map((line) => make("li", {}, sign(line), line.label)));
}
