// The part of the traffic that the page shows, and its deep link: `#model=NAME`, `#tenant=NAME`, or none for all.

import type { Now, Scope } from "./json.ts";

export type Place = { readonly kind: "all" } | { readonly kind: "model" | "tenant"; readonly name: string };

export const ALL: Place = { kind: "all" };

/** Reads the place from the address. */
export function placeOf(hash: string): Place {
  const [, kind, encoded] = /^#(model|tenant)=(.*)$/s.exec(hash) ?? [];
  if (encoded === undefined) return ALL;
  try {
    return { kind: kind as "model" | "tenant", name: decodeURIComponent(encoded) };
  } catch {
    return ALL;
  }
}

export function linkTo(place: Place): string {
  return place.kind === "all" ? "#" : `#${place.kind}=${encodeURIComponent(place.name)}`;
}

/** Returns the place as the history's parameter `scope`. */
export function scopeName(place: Place): string {
  return place.kind === "all" ? "all" : `${place.kind}:${place.name}`;
}

/** Returns the numbers of the place; `null` if it is not listed. */
export function scopeIn(now: Now, place: Place): Scope | null {
  if (place.kind === "all") return now.all;
  const list = place.kind === "model" ? now.models : now.tenants;
  return list.find((scope) => scope.name === place.name) ?? null;
}
