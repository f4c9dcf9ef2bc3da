// The rate of each model and tenant over the last readings: that of a single second jumps with each exchange that ends.

import type { Maybe, Scope } from "./json.ts";

export const READINGS = 10;

export class Recent {
  #rates = new Map<string, Maybe[]>();

  /** Adds the readings of a second; who is not listed is forgotten. */
  add(scopes: readonly Scope[]): void {
    this.#rates = new Map(
      scopes.map(({ name, point }) => [
        name,
        [...(this.#rates.get(name) ?? []), point.output_tokens_per_second].slice(-READINGS),
      ]),
    );
  }

  mean({ name }: Scope): Maybe {
    const known = (this.#rates.get(name) ?? []).filter((rate): rate is number => rate !== null);
    return known.length ? known.reduce((sum, rate) => sum + rate, 0) / known.length : null;
  }
}
