// The upstreams, and the queue and the KV cache of the servers behind them.

import { make, mark, show, write } from "./element.ts";
import type { Upstream } from "./json.ts";
import { Bar } from "./bar.ts";
import { visible } from "./name.ts";
import { count, say, share, span } from "./quantity.ts";
import { Section } from "./section.ts";
import type { Reading, View } from "./view.ts";

class Server {
  readonly element: HTMLElement;
  readonly #name = make("strong");
  readonly #state = make("span", { class: "state" });
  readonly #url = make("span", { class: "address" });
  readonly #queue = make("span");
  readonly #kv = make("span");
  readonly #bar = new Bar();

  constructor() {
    this.element = make(
      "li",
      {},
      make("p", { class: "line" }, this.#name, " ", this.#state),
      this.#url,
      make("p", { class: "line" }, this.#queue),
      make("p", { class: "line" }, this.#kv, this.#bar.element),
    );
  }

  set({ name, url, listen, up, engine }: Upstream, now: number): void {
    write(this.#name, visible(name));
    write(this.#state, up === null ? "○ not probed yet" : up ? "● up" : "✕ down");
    mark(this.#state, "class", up === false ? "state bad" : "state");
    write(this.#url, visible(`${listen} → ${url}`));
    if (!engine) {
      write(
        this.#queue,
        "Queue and KV cache: the server’s metrics page is not read; if it has one, start with --engine-metrics on",
      );
      write(this.#kv, "");
    } else {
      const read = engine.read_unix_ms === null ? "" : `, read ${span((now - engine.read_unix_ms) / 1000)} ago`;
      const kind = engine.kind ? `${visible(engine.kind)}: ` : "";
      write(
        this.#queue,
        engine.up
          ? `${kind}${say(count(engine.running_requests))} running, ${say(count(engine.waiting_requests))} waiting${read}`
          : `${kind}✕ its metrics page does not answer; tokenmeter’s log has the reason`,
      );
      const prefix =
        engine.prefix_cache_hit_ratio === null
          ? ""
          : `, prefix cache hits ${say(share(engine.prefix_cache_hit_ratio))}`;
      const isKnown = engine.kv_cache_usage_ratio !== null || prefix !== "";
      write(
        this.#kv,
        isKnown
          ? `KV cache ${say(share(engine.kv_cache_usage_ratio))}${prefix}`
          : "KV cache: not on the server’s metrics page",
      );
    }
    const usage = engine?.kv_cache_usage_ratio ?? null;
    show(this.#bar.element, usage !== null);
    this.#bar.set(usage === null ? [] : [{ share: usage, kind: usage > 0.95 ? "bad" : "solid" }]);
  }
}

export class Engines implements View {
  readonly element: HTMLElement;
  readonly #list = make("ul", { class: "servers" });
  readonly #section = new Section("Servers", "block", this.#list);
  readonly #servers: Server[] = [];

  constructor() {
    this.element = this.#section.element;
  }

  update({ now, place }: Reading): void {
    this.#section.coversAll(place);
    while (this.#servers.length > now.upstreams.length) this.#servers.pop()?.element.remove();
    now.upstreams.forEach((upstream, at) => {
      let server = this.#servers[at];
      if (!server) {
        server = new Server();
        this.#servers.push(server);
        this.#list.append(server.element);
      }
      server.set(upstream, now.at_unix_ms);
    });
  }
}
