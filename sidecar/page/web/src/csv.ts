// A table as a CSV file (RFC 4180), made in the browser.

import { make } from "./element.ts";

export type Cell = string | number | null;

/** Returns the file's text. Spreadsheets would run text that begins with = + - @, a tab or a return: it gets a '. */
export function csv(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

function field(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return Number.isFinite(cell) ? String(cell) : "";
  const isHarmless = /^-?\d+(\.\d+)?$/.test(cell) || !/^[=+\-@\t\r\n]/.test(cell);
  const text = isHarmless ? cell : `'${cell}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Saves the rows as a file of this name. */
export function save(name: string, rows: readonly (readonly Cell[])[]): void {
  const url = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv;charset=utf-8" }));
  const link = make("a", { href: url, download: `tokenmeter-${name}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
