// The button that copies the Prometheus query of a chart.

import { copy } from "./clipboard.ts";
import { button, show } from "./element.ts";
import { ALL, type Place } from "./place.ts";
import { queryOf } from "./promql.ts";

export class QueryButton {
  readonly element: HTMLButtonElement;
  #place: Place = ALL;
  #currency: string | null = null;

  constructor(
    private readonly id: string,
    chart: string,
  ) {
    this.element = button("PromQL", `Copy the Prometheus query of “${chart}”`, () => {
      const query = queryOf(this.id, this.#place, this.#currency);
      if (query !== null) void copy(query, this.element);
    });
  }

  /** Sets what the query is about; without a query the button is hidden. */
  about(place: Place, currency: string | null): void {
    this.#place = place;
    this.#currency = currency;
    show(this.element, queryOf(this.id, place, currency) !== null);
  }
}
