// The page: its parts, and the readings that they show.

import { ask } from "./answer.ts";
import { Cost } from "./cost.ts";
import { save, type Cell } from "./csv.ts";
import { Curve } from "./curve.ts";
import { make, show } from "./element.ts";
import { Endings } from "./endings.ts";
import { Engines } from "./engines.ts";
import { Feed, type FeedState } from "./feed.ts";
import { footer } from "./footer.ts";
import { Gate } from "./gate.ts";
import { Gpus } from "./gpus.ts";
import { Header } from "./header.ts";
import type { Curves, History, MonthSpend, Now } from "./json.ts";
import { Month } from "./month.ts";
import { MonthToDate } from "./month-to-date.ts";
import { Notices } from "./notices.ts";
import { Panels } from "./panels.ts";
import { placeOf, scopeIn, scopeName, type Place } from "./place.ts";
import { Position } from "./position.ts";
import { Scopes } from "./scopes.ts";
import { speech } from "./speech.ts";
import { Trail, type Step } from "./trail.ts";
import type { View } from "./view.ts";

const CURVE_EVERY_MS = 5000;
const MONTH_EVERY_MS = 30_000;
/** Between loads of a history because seconds are missing. */
const RELOAD_MIN_MS = 5000;

export class Page {
  readonly #parts = {
    notices: new Notices(),
    panels: new Panels(),
    curve: new Curve(),
    position: new Position(),
    endings: new Endings(),
    models: new Scopes("model"),
    tenants: new Scopes("tenant"),
    gpus: new Gpus(),
    month: new Month(),
    engines: new Engines(),
    cost: new Cost(),
  };
  readonly #views: View[] = Object.values(this.#parts);
  readonly #header = new Header({
    step: (step) => {
      this.#step = step;
      void this.#load();
    },
    save: () => this.#save(),
    repaint: () => {
      for (const view of this.#views) view.repaint?.();
    },
  });
  readonly #gate = new Gate(() => {
    this.#gate.close();
    show(this.#main, true);
    this.#start();
  });
  readonly #feed = new Feed(
    (now) => this.#take(now),
    (state) => this.#state(state),
  );
  readonly #main = make("main");
  #now: Now | null = null;
  #place: Place = placeOf(location.hash);
  #step: Step = 1;
  #near: Trail = Trail.empty(1, Math.floor(Date.now() / 1000));
  #day: Trail | null = null;
  #curves: Curves | null = null;
  #month: MonthSpend | null = null;
  #hasCurve = true;
  #loadedAt = 0;
  /** True until the first reading of a stream, which shows that the token is right. */
  #isFirst = true;
  #timers: ReturnType<typeof setInterval>[] = [];

  /** Puts the page into the document and starts reading. */
  open(): void {
    const { notices, panels, curve, position, endings, models, tenants, gpus, month, engines, cost } = this.#parts;
    this.#main.append(
      notices.element,
      panels.element,
      make("div", { class: "beside" }, curve.element, make("div", {}, position.element, endings.element)),
      models.element,
      tenants.element,
      gpus.element,
      make("div", { class: "blocks" }, month.element, engines.element, cost.element),
    );
    document.body.replaceChildren(this.#header.element, this.#gate.element, this.#main, footer, speech);
    this.#header.place(this.#place);
    addEventListener("hashchange", () => this.#move());
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#stop() : this.#start()));
    if (!document.hidden) this.#start();
  }

  #start(): void {
    this.#stop();
    this.#isFirst = true;
    this.#feed.start();
    this.#timers = [
      setInterval(() => void this.#loadCurve(), CURVE_EVERY_MS),
      setInterval(() => void this.#loadMonth(), MONTH_EVERY_MS),
      setInterval(() => void (this.#step === 60 && this.#load()), 60_000),
    ];
  }

  /** Stops all requests: a hidden page costs nothing. */
  #stop(): void {
    this.#feed.stop();
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  #state(state: FeedState): void {
    this.#header.feed(state);
    if (state.kind !== "denied") return;
    this.#stop();
    this.#gate.open();
    show(this.#main, false);
  }

  #take(now: Now): void {
    this.#now = now;
    this.#header.now(now);
    if (this.#isFirst) {
      this.#isFirst = false;
      void this.#load();
      void this.#loadCurve();
      void this.#loadMonth();
    }
    const scope = scopeIn(now, this.#place);
    const second = Math.floor(now.at_unix_ms / 1000);
    if (scope && !this.#near.push(second, scope.point) && Date.now() - this.#loadedAt > RELOAD_MIN_MS)
      void this.#load();
    this.#show();
  }

  #show(): void {
    const now = this.#now;
    if (!now) return;
    const reading = {
      now,
      place: this.#place,
      scope: scopeIn(now, this.#place),
      near: this.#near,
      shown: (this.#step === 60 && this.#day ? this.#day : this.#near).since(Math.floor(now.started_unix_ms / 1000)),
      curves: this.#curves,
      month: this.#month && new MonthToDate(this.#month, now),
    };
    for (const view of this.#views) view.update(reading);
  }

  #move(): void {
    this.#place = placeOf(location.hash);
    this.#header.place(this.#place);
    this.#near = Trail.empty(1, Math.floor((this.#now?.at_unix_ms ?? Date.now()) / 1000));
    this.#day = null;
    this.#show();
    void this.#load();
  }

  /** Loads the histories that are shown. */
  async #load(): Promise<void> {
    this.#loadedAt = Date.now();
    const place = this.#place;
    const steps: Step[] = this.#step === 60 ? [1, 60] : [1];
    const scope = encodeURIComponent(scopeName(place));
    const answers = await Promise.all(steps.map((step) => ask<History>(`history?scope=${scope}&step=${step}`)));
    if (place !== this.#place) return;
    for (const answer of answers) {
      if (answer.kind !== "ok") continue;
      const trail = Trail.of(answer.body);
      if (trail.step === 1) this.#near = trail;
      else this.#day = trail;
    }
    this.#show();
  }

  async #loadCurve(): Promise<void> {
    if (!this.#now || !this.#hasCurve) return;
    const answer = await ask<Curves>("curve");
    if (answer.kind === "ok") this.#curves = answer.body;
    // The page of an embedded meter has no curve.
    else if (answer.kind === "refused" && answer.status === 404) this.#hasCurve = false;
  }

  async #loadMonth(): Promise<void> {
    if (!this.#now?.ledger) return;
    const answer = await ask<MonthSpend>("spend");
    if (answer.kind === "ok") this.#month = answer.body;
    else if (answer.kind === "refused" && answer.status === 404) this.#month = null;
  }

  /** Saves the values of the charts. */
  #save(): void {
    const trail = this.#step === 60 && this.#day ? this.#day : this.#near;
    const rows = trail.times.map((second, at): Cell[] => [
      new Date(second * 1000).toISOString(),
      ...Trail.names.map((name) => trail.values(name)[at] ?? null),
    ]);
    const isKnown = (row: Cell[]): boolean => row.slice(1).some((cell) => cell !== null);
    save(`${this.#place.kind === "all" ? "all" : this.#place.kind}-history`, [
      ["time", ...Trail.names],
      ...rows.filter(isKnown),
    ]);
  }
}
