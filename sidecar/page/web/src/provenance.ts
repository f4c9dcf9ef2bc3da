// The sources of the token counts. Only the server's own counts are `reported`; the only estimate is one token a frame.

import { share, say } from "./quantity.ts";

export interface Sources {
  /** Shares of all, 0 to 1. */
  readonly reported: number;
  readonly counted: number;
  readonly estimated: number;
}

const REPORTED = ["engine", "reported"];
const ESTIMATED = ["frames", "estimated"];

export function sourcesOf(provenance: Record<string, number> | null): Sources | null {
  const entries = Object.entries(provenance ?? {}).filter(([name]) => name !== "none");
  const sum = entries.reduce((all, [, tokens]) => all + tokens, 0);
  if (sum === 0) return null;
  const of = (names: string[]): number =>
    entries.reduce((all, [name, tokens]) => (names.includes(name) ? all + tokens : all), 0) / sum;
  const reported = of(REPORTED),
    estimated = of(ESTIMATED);
  return { reported, counted: Math.max(0, 1 - reported - estimated), estimated };
}

/** Returns the shares as words: what is estimated is always named. */
export function words({ reported, counted, estimated }: Sources): string {
  const parts = [`${say(share(reported))} reported`];
  if (counted > 0.0005) parts.push(`${say(share(counted))} counted here`);
  if (estimated > 0) parts.push(`${say(share(estimated))} estimated`);
  return parts.join(", ");
}
