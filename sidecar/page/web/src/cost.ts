// What the metering itself costs and misses.

import { Facts } from "./facts.ts";
import { bytes, count, plain, say, seconds } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";

export class Cost implements View {
  readonly element: HTMLElement;
  readonly #facts = new Facts();
  readonly #section = new Section("The meter’s own cost", "block", this.#facts.element);

  constructor() {
    this.element = this.#section.element;
  }

  update({ now: { meter, ledger }, place }: Reading): void {
    this.#section.coversAll(place);
    const facts = this.#facts;
    facts.set(
      "Time added to an exchange, p50, p99",
      `${say(seconds(meter.overhead_p50_seconds))}, ${say(seconds(meter.overhead_p99_seconds))}`,
    );
    facts.set("CPU", say(plain(meter.cpu_cores, "cores")));
    facts.set("Memory", say(bytes(meter.resident_bytes)));
    facts.set("Connections of clients", say(count(meter.connections)));
    facts.set("Refused by the proxy", say(count(meter.refused)));
    facts.set("Forwarded unmetered", say(count(meter.passthrough)));
    facts.set("Lost telemetry", say(count(meter.dropped)), meter.dropped > 0);
    if (!ledger) {
      facts.set("Ledger", "none; --ledger FILE keeps a row per exchange");
      return;
    }
    facts.set(
      "Ledger",
      ledger.up
        ? `${say(count(ledger.rows))} rows, ${say(seconds(ledger.commit_lag_seconds))} behind`
        : "cannot be written",
      !ledger.up,
    );
    facts.set("Rows lost by the ledger", say(count(ledger.lost_rows)), ledger.lost_rows > 0);
  }
}
