// The month's spend up to now: the ledger's sums, and what this process has charged since they were read.

import type { MonthSpend, Now } from "./json.ts";

export class MonthToDate {
  readonly currency: string | null;
  /** By tenant; `null` is all. */
  readonly #later = new Map<string | null, number>();
  /** The index of today. */
  readonly #today: number;

  constructor(
    readonly read: MonthSpend,
    now: Now,
  ) {
    const isThisMonth = now.at_unix_ms < read.until_unix_ms;
    const isSameCurrency = read.currency === null || read.currency === now.currency;
    this.#today = Number(read.today.slice(8)) - 1;
    if (isThisMonth && isSameCurrency) {
      const isYoung = now.started_unix_ms >= read.since_unix_ms;
      const add = (tenant: string | null, total: number | null, included: number | null): void => {
        // Without it, the sum is at least the spend of a process that began in this month.
        const least = isYoung ? (total ?? 0) - sumOf(this.#read(tenant)) : 0;
        this.#later.set(tenant, Math.max(0, included === null ? least : (total ?? 0) - included));
      };
      const { included } = read;
      add(null, now.all.totals.spend, included?.all ?? null);
      for (const { name, totals } of now.tenants)
        add(
          name,
          totals.spend,
          included ? (Object.hasOwn(included.tenants, name) ? (included.tenants[name] ?? 0) : 0) : null,
        );
    }
    this.currency = read.currency ?? (this.sum(null) > 0 ? now.currency : null);
  }

  sum(tenant: string | null): number {
    return sumOf(this.#read(tenant)) + (this.#later.get(tenant) ?? 0);
  }

  /** Returns the spend by day of the month, from the first on. */
  days(tenant: string | null): number[] {
    const days = this.#read(tenant);
    days[this.#today] = (days[this.#today] ?? 0) + (this.#later.get(tenant) ?? 0);
    return days;
  }

  /** Returns the tenants with spend, the highest first. */
  tenants(): [string, number][] {
    const names = new Set(this.read.days.flatMap(({ tenants }) => tenants.map(({ name }) => name)));
    for (const name of this.#later.keys()) if (name !== null) names.add(name);
    const sums = [...names].map((name): [string, number] => [name, this.sum(name)]);
    return sums.filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
  }

  #read(tenant: string | null): number[] {
    const days = new Array<number>(31).fill(0);
    for (const { day, cost, tenants } of this.read.days) {
      const own = tenant === null ? cost : tenants.find(({ name }) => name === tenant)?.cost;
      days[Number(day.slice(8)) - 1] = Number(own ?? 0);
    }
    return days;
  }
}

const sumOf = (days: number[]): number => days.reduce((sum, day) => sum + day, 0);
