// The stream of readings, one a second: fetch and not EventSource, which cannot send the token.

import { ask } from "./answer.ts";
import type { Now } from "./json.ts";
import { authorization } from "./token.ts";

export type FeedState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "lost"; readonly why: string }
  | { readonly kind: "denied" };

const SILENCE_MAX_MS = 5000;
const RETRY_MS = 2000;
/** Between readings when the listener has no stream left. */
const POLL_MS = 2000;

export class Feed {
  #abort: AbortController | null = null;

  constructor(
    private readonly onNow: (now: Now) => void,
    private readonly onState: (state: FeedState) => void,
  ) {}

  start(): void {
    if (this.#abort) return;
    this.#abort = new AbortController();
    void this.#run(this.#abort.signal);
  }

  stop(): void {
    this.#abort?.abort();
    this.#abort = null;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const why = await this.#read(signal);
      if (signal.aborted) return;
      if (why === null) {
        this.stop();
        this.onState({ kind: "denied" });
        return;
      }
      if (why !== "") this.onState({ kind: "lost", why });
      await pause(why === "" ? POLL_MS : RETRY_MS, signal);
    }
  }

  /** Reads until the stream ends. Returns why: `null` if the token was refused, "" if a single reading worked. */
  async #read(signal: AbortSignal): Promise<string | null> {
    const silence = new AbortController();
    const end = () => silence.abort();
    signal.addEventListener("abort", end, { once: true });
    let timer = setTimeout(end, SILENCE_MAX_MS);
    try {
      const options = { headers: authorization(), signal: silence.signal, cache: "no-store" } as const;
      const response = await fetch("api/stream", options);
      if (response.status === 401) return null;
      if (response.status === 503) return await this.#poll();
      if (!response.ok || !response.body) return `tokenmeter answered ${response.status}`;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "tokenmeter ended the stream";
        clearTimeout(timer);
        timer = setTimeout(end, SILENCE_MAX_MS);
        const events = (rest + value).replaceAll("\r", "").split("\n\n");
        rest = events.pop() ?? "";
        this.#take(events);
      }
    } catch {
      return "tokenmeter does not answer";
    } finally {
      clearTimeout(timer);
      end();
      signal.removeEventListener("abort", end);
    }
  }

  async #poll(): Promise<string | null> {
    const answer = await ask<Now>("now");
    if (answer.kind === "unreachable") return "tokenmeter does not answer";
    if (answer.kind === "refused") return answer.status === 401 ? null : answer.why;
    this.onState({ kind: "live" });
    this.onNow(answer.body);
    return "";
  }

  /** Takes the last reading of a batch: an older one would be drawn over at once. */
  #take(events: string[]): void {
    const last = events.filter((event) => /^event: ?now$/m.test(event)).pop();
    const data = last?.split("\n").filter((line) => line.startsWith("data:"));
    if (!data) return;
    const now = JSON.parse(data.map((line) => line.slice(5)).join("\n")) as Now;
    this.onState({ kind: "live" });
    this.onNow(now);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        done();
      },
      { once: true },
    );
  });
}
