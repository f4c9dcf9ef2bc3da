// Numbers with units, as text: three significant digits, thin separators (U+202F), and a dash for what is not known.

import type { Maybe } from "./json.ts";

export interface Quantity {
  readonly value: string;
  readonly unit: string;
}

const THIN = "\u202f";
const NOT_KNOWN: Quantity = { value: "–", unit: "" };

const formats = new Map<number, Intl.NumberFormat>();

/** Returns the number with this many decimals and thin separators. */
export function fixed(value: number, decimals: number): string {
  let format = formats.get(decimals);
  if (!format) {
    format = new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    formats.set(decimals, format);
  }
  const text = format.format(value).replaceAll(",", THIN);
  return text.startsWith("-") ? `\u2212${text.slice(1)}` : text;
}

/** Returns three significant digits; of a number from 100 on, its integer. */
export function three(value: number): string {
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size === 0 ? 0 : 2);
}

function of(value: Maybe, format: (value: number) => Quantity): Quantity {
  return value === null || !Number.isFinite(value) ? NOT_KNOWN : format(value);
}

/** Returns the quantity as one text. */
export function say({ value, unit }: Quantity): string {
  return unit && unit !== "%" ? `${value}${THIN}${unit}` : unit ? `${value}${THIN}%` : value;
}

export const plain = (value: Maybe, unit: string): Quantity => of(value, (v) => ({ value: three(v), unit }));

export const rate = (value: Maybe): Quantity => plain(value, "tokens/s");

/** Returns a count: exact below a million. */
export function count(value: Maybe): Quantity {
  return of(value, (v) => {
    if (v < 1e6) return { value: fixed(v, Number.isInteger(v) ? 0 : 1), unit: "" };
    return v < 1e9 ? { value: three(v / 1e6), unit: "M" } : { value: three(v / 1e9), unit: "G" };
  });
}

/** Returns a count in three digits from 100 000 on. */
export function compact(value: Maybe): Quantity {
  return of(value, (v) => (v >= 1e5 && v < 999_500 ? { value: three(v / 1e3), unit: "k" } : count(v)));
}

export function seconds(value: Maybe): Quantity {
  return of(value, (v) => {
    if (v === 0) return { value: "0", unit: "s" };
    if (v < 0.000_999_5) return { value: three(v * 1e6), unit: "µs" };
    return v < 0.9995 ? { value: three(v * 1e3), unit: "ms" } : { value: three(v), unit: "s" };
  });
}

/** Returns a time of minutes, hours or days, in whole units. */
export function span(value: number): string {
  const whole = Math.max(0, Math.floor(value));
  if (whole < 60) return `${whole}${THIN}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}${THIN}min`;
  const hours = Math.floor(whole / 3600);
  return hours < 48
    ? `${hours}${THIN}h ${Math.floor((whole % 3600) / 60)}${THIN}min`
    : `${Math.floor(hours / 24)}${THIN}days`;
}

export const share = (ratio: Maybe): Quantity =>
  of(ratio, (v) => {
    const percent = v * 100;
    if (percent > 0 && percent < 0.1) return { value: "<\u200a0.1", unit: "%" };
    // 99.97 % is not all of it.
    if (percent < 100 && percent >= 99.95) return { value: ">\u200a99.9", unit: "%" };
    return { value: fixed(percent, percent === 100 || percent === 0 ? 0 : 1), unit: "%" };
  });

export function bytes(value: Maybe): Quantity {
  return of(value, (v) => {
    const step = v < 2 ** 20 ? 1 : v < 2 ** 30 ? 2 : 3;
    return { value: three(v / 1024 ** step), unit: ["KiB", "MiB", "GiB"][step - 1] ?? "" };
  });
}

export function energy(joules: Maybe): Quantity {
  return of(joules, (v) => {
    const hours = v / 3600;
    if (hours < 1) return { value: three(v), unit: "J" };
    return hours < 1000 ? { value: three(hours), unit: "Wh" } : { value: three(hours / 1000), unit: "kWh" };
  });
}

/** Returns an amount with at least two decimals and, below 1, with three significant digits. */
export function money(value: Maybe, currency: string | null): string {
  if (value === null || !Number.isFinite(value)) return NOT_KNOWN.value;
  const size = Math.abs(value);
  const digits = size >= 1 || size === 0 ? 2 : Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(size))));
  return `${symbol(currency)}${fixed(value, digits)}`;
}

function symbol(currency: string | null): string {
  if (!currency) return "";
  try {
    const format = new Intl.NumberFormat("en-US", { style: "currency", currency, currencyDisplay: "narrowSymbol" });
    const found = format.formatToParts(0).find((part) => part.type === "currency")?.value ?? currency;
    return /^[A-Za-z]/.test(found) ? `${found}${THIN}` : found;
  } catch {
    return `${currency}${THIN}`;
  }
}
