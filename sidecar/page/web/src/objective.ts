// The objective that applies to a place.

import type { Objective } from "./json.ts";
import type { Reading } from "./view.ts";

/** Returns the objective of the place; `null` if it has none, or several. */
export function objectiveOf({ now, place, curves }: Reading): Objective | null {
  if (place.kind === "tenant") return null;
  const models = (curves?.models ?? []).filter(({ model }) => place.kind === "all" || model === place.name);
  const applies = ({ name }: Objective): boolean =>
    models.every(({ knees }) => knees.some((knee) => knee.basis === "configured" && knee.objective === name));
  const found = now.objectives.filter(applies);
  return found.length === 1 ? (found[0] ?? null) : null;
}
