// A table that can be sorted; rows are kept and only changed cells are written.

import { make, mark, show, write } from "./element.ts";
import { save, type Cell } from "./csv.ts";

/** Rows of a table before the button that shows all. */
const ROWS_FIRST = 10;

export interface Column<Row> {
  /** Name in the CSV file, with the unit. */
  readonly id: string;
  readonly title: string;
  /** The value to sort by and to save. */
  readonly value: (row: Row) => Cell;
  /** The text; of a name, the name. */
  readonly text: (row: Row) => string;
  /** Adds to the cell what is not text. */
  readonly adorn?: (cell: HTMLElement, row: Row) => void;
  readonly link?: (row: Row) => string;
}

export class Table<Row> {
  readonly element: HTMLElement;
  readonly #body = make("tbody");
  readonly #head = make("tr");
  readonly #more = make("button", { type: "button", class: "quiet more" });
  readonly #lines = new Map<string, HTMLTableRowElement>();
  #columns: readonly Column<Row>[] = [];
  #rows: readonly Row[] = [];
  #sort: { id: string; isDown: boolean } | null = null;
  #isWhole = false;
  #isHeld = false;

  constructor(
    private readonly label: string,
    private readonly key: (row: Row) => string,
    private readonly isChosen: (row: Row) => boolean,
  ) {
    const table = make("table", {}, make("thead", {}, this.#head), this.#body);
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
    this.element = make("div", { class: "table" }, scroll, this.#more);
    this.#more.addEventListener("click", () => {
      this.#isWhole = !this.#isWhole;
      this.#render();
    });
    // Rows do not move under the pointer.
    this.#body.addEventListener("pointerenter", () => {
      this.#isHeld = true;
    });
    this.#body.addEventListener("pointerleave", () => {
      this.#isHeld = false;
    });
    this.#body.addEventListener("click", (event) => {
      const target = event.target as HTMLElement;
      if (target.closest("a, button") || getSelection()?.toString()) return;
      target.closest("tr")?.querySelector("a")?.click();
    });
  }

  set(columns: readonly Column<Row>[], rows: readonly Row[]): void {
    const isSame =
      columns.length === this.#columns.length && columns.every(({ id }, at) => id === this.#columns[at]?.id);
    this.#columns = columns;
    this.#rows = rows;
    if (!isSame) {
      this.#lines.clear();
      this.#body.replaceChildren();
      this.#title();
    }
    this.#render();
  }

  /** Saves what is visible, in its order. */
  save(name: string): void {
    const rows = this.#visible().map((row) => this.#columns.map((column) => column.value(row)));
    save(name, [this.#columns.map(({ id }) => id), ...rows]);
  }

  #title(): void {
    this.#head.replaceChildren(
      ...this.#columns.map(({ id, title }) => {
        const button = make("button", { type: "button" }, title);
        button.addEventListener("click", () => {
          const isDown = this.#sort?.id === id ? !this.#sort.isDown : id !== this.#columns[0]?.id;
          this.#sort = { id, isDown };
          this.#isHeld = false;
          this.#render();
        });
        return make("th", { scope: "col", "data-id": id }, button);
      }),
    );
  }

  #sorted(): readonly Row[] {
    const column = this.#columns.find(({ id }) => id === this.#sort?.id);
    if (!column) return this.#rows;
    const sign = this.#sort?.isDown ? -1 : 1;
    return [...this.#rows].sort((a, b) => {
      const x = column.value(a),
        y = column.value(b);
      // What is not known comes last in both directions.
      if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
    });
  }

  #visible(): readonly Row[] {
    const sorted = this.#sorted();
    if (this.#isWhole || sorted.length <= ROWS_FIRST + 2) return sorted;
    const first = sorted.slice(0, ROWS_FIRST);
    const chosen = sorted.find((row) => this.isChosen(row));
    return chosen && !first.includes(chosen) ? [...first, chosen] : first;
  }

  #render(): void {
    const rows = this.#visible();
    for (const th of this.#head.children) {
      const isSorted = th.getAttribute("data-id") === this.#sort?.id;
      mark(th, "aria-sort", isSorted ? (this.#sort?.isDown ? "descending" : "ascending") : null);
    }
    const keys = new Set(rows.map(this.key));
    for (const [key, line] of this.#lines) {
      if (!keys.has(key)) {
        line.remove();
        this.#lines.delete(key);
      }
    }
    rows.forEach((row, at) => {
      const line = this.#line(row);
      const isInPlace = line.parentElement === this.#body && (this.#isHeld || this.#body.children[at] === line);
      if (!isInPlace) this.#body.insertBefore(line, this.#body.children[at] ?? null);
    });
    const hidden = this.#rows.length - rows.length;
    show(this.#more, hidden > 0 || (this.#isWhole && this.#rows.length > ROWS_FIRST + 2));
    write(this.#more, this.#isWhole ? `Show ${ROWS_FIRST}` : `Show all ${this.#rows.length}`);
    this.#more.setAttribute("aria-label", `${this.#more.textContent}: ${this.label}`);
  }

  #line(row: Row): HTMLTableRowElement {
    const key = this.key(row);
    let line = this.#lines.get(key);
    if (!line) {
      line = make(
        "tr",
        {},
        ...this.#columns.map(({ link }, at) => {
          const text = link ? make("a", { href: link(row) }) : make("span");
          return make(at === 0 ? "th" : "td", at === 0 ? { scope: "row" } : {}, text);
        }),
      );
      this.#lines.set(key, line);
    }
    this.#columns.forEach((column, at) => {
      const cell = line.children[at] as HTMLElement;
      if (cell.firstElementChild) write(cell.firstElementChild, column.text(row));
      column.adorn?.(cell, row);
    });
    mark(line, "aria-current", this.isChosen(row) ? "true" : null);
    return line;
  }
}
