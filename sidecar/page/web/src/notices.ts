// Sentences on what is wrong or missing, each with what to do.

import { copy } from "./clipboard.ts";
import { button, make, show } from "./element.ts";
import type { Now } from "./json.ts";
import { visible } from "./name.ts";
import { ALL, linkTo } from "./place.ts";
import { count, say } from "./quantity.ts";
import type { Reading, View } from "./view.ts";

interface Notice {
  readonly kind: "bad" | "hint";
  readonly text: string;
  /** A command that helps. */
  readonly command?: string;
  readonly link?: { readonly to: string; readonly text: string };
}

export class Notices implements View {
  readonly element = make("section", { class: "notices", "aria-label": "Notices", "aria-live": "polite" });
  #key = "";

  update(reading: Reading): void {
    const notices = [...faults(reading.now), ...hints(reading)];
    const key = JSON.stringify(notices);
    if (key === this.#key) return;
    this.#key = key;
    this.element.replaceChildren(...notices.map(line));
    show(this.element, notices.length > 0);
  }
}

function line({ kind, text, command, link }: Notice): HTMLElement {
  const element = make(
    "div",
    { class: `notice ${kind}` },
    make("p", {}, make("b", {}, kind === "bad" ? "✕ " : "→ "), visible(text)),
  );
  if (link) element.append(make("p", {}, make("a", { href: link.to }, link.text)));
  if (command !== undefined) {
    const act = button("Copy", "Copy the command", () => void copy(command, act));
    const code = make("code", { tabindex: "0" }, command);
    element.append(make("div", { class: "command" }, code, act));
  }
  return element;
}

function faults({ readiness, upstreams, meter, ledger }: Now): Notice[] {
  const bad: Notice[] = [];
  const reasons = readiness.state === "not_ready" ? [...readiness.reasons] : [];
  for (const { name, url, up } of upstreams) {
    if (up !== false) continue;
    // The reason that the process is not ready is the same fact; it has the error.
    const at = reasons.findIndex((reason) => reason.includes(url));
    const why = at < 0 ? `The server ${name} does not answer at ${url}` : `Not ready: ${reasons.splice(at, 1)[0]}`;
    bad.push({
      kind: "bad",
      command: `curl -v ${shell(`${url.replace(/\/$/, "")}/v1/models`)}`,
      text: `${why}. Start the server, or correct the upstream’s URL.`,
    });
  }
  for (const reason of reasons) bad.push({ kind: "bad", text: `Not ready: ${reason}` });
  for (const { name, fault, verified } of upstreams) {
    if (fault) bad.push({ kind: "bad", text: `Counts or prices of ${name} are wrong: ${fault}` });
    if (verified === false) {
      bad.push({
        kind: "bad",
        text:
          `The certificate of ${name} is not verified: anyone on the network path can read and change all requests. ` +
          "Set ca to its root, and remove insecure_skip_verify.",
      });
    }
  }
  if (readiness.state === "impaired") {
    for (const reason of readiness.reasons) bad.push({ kind: "hint", text: reason });
  }
  if (ledger && (!ledger.up || ledger.lost_rows > 0)) {
    bad.push({
      kind: "bad",
      text: ledger.up
        ? `The ledger lost ${say(count(ledger.lost_rows))} rows; tokenmeter spend names the gap.`
        : "The ledger cannot be written: check the disk; the log has the error.",
    });
  }
  if (meter.dropped > 0) {
    bad.push({
      kind: "hint",
      text: `Telemetry was lost ${say(count(meter.dropped))} times: tokenmeter_dropped_total names the kinds.`,
    });
  }
  return bad;
}

function hints({ now, place, scope }: Reading): Notice[] {
  const hints: Notice[] = [];
  const isIdle = now.all.totals.exchanges === 0 && !now.all.point.in_flight;
  if (place.kind !== "all" && !scope) {
    hints.push({
      kind: "hint",
      text: `No traffic of the ${place.kind} ${visible(place.name)} since the start, or it is not among those listed.`,
      link: { to: linkTo(ALL), text: "Show all traffic" },
    });
  }
  if (isIdle) {
    const listen = now.upstreams[0]?.listen ?? "127.0.0.1:9800";
    const body = '{"model":"MODEL","stream":true,"messages":[{"role":"user","content":"hi"}]}';
    const json = "-H 'Content-Type: application/json'";
    hints.push({
      kind: "hint",
      text: "No traffic yet. Point a client at tokenmeter, or send a request; replace MODEL with your model’s name:",
      command: `curl ${shell(`http://${reachable(listen)}/v1/chat/completions`)} ${json} -d '${body}'`,
    });
  }
  if (now.currency === null) {
    hints.push({
      kind: "hint",
      text: "Nothing is priced. Write a price book (prices per million tokens), then start with --prices prices.yaml:",
      command: "tokenmeter prices init --input 0.10 --output 0.40 --out prices.yaml",
    });
  } else if (now.all.totals.unpriced_exchanges) {
    hints.push({
      kind: "hint",
      text:
        `${say(count(now.all.totals.unpriced_exchanges))} exchanges have no price and are not in the spend. ` +
        "tokenmeter_unpriced_exchanges_total names the reasons; correct the price book, then charge them:",
      command: "tokenmeter ledger reprice --help",
    });
  }
  return hints;
}

/** Quotes a word for a shell. */
function shell(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns an address that this browser's machine can reach, if the proxy listens on all. */
function reachable(listen: string): string {
  return listen.replace(/^(0\.0\.0\.0|\[::\])(?=:\d+$)/, location.hostname || "127.0.0.1");
}
