// The page's texts and lists, without a browser: its modules, bundled for Node.js.

import assert from "node:assert/strict";
import { test } from "node:test";

const WEB = new URL("../../sidecar/page/web/", import.meta.url);
const { build } = await import(new URL("node_modules/esbuild/lib/main.js", WEB)).catch(() =>
  assert.fail("missing: esbuild; install with: tests/page/install"),
);

/** Returns a module of the page. */
async function load(name) {
  const path = new URL(`src/${name}.ts`, WEB).pathname;
  const { outputFiles } = await build({ entryPoints: [path], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

test("numbers have three digits, thin separators and a unit", async () => {
  const { bytes, compact, count, energy, money, rate, say, seconds, share, span } = await load("quantity");
  const texts = [
    [rate(0), "0 tokens/s"],
    [rate(9.994), "9.99 tokens/s"],
    [rate(9.996), "10.0 tokens/s"],
    [rate(99.96), "100 tokens/s"],
    [rate(1594.4), "1 594 tokens/s"],
    [rate(null), "–"],
    [rate(Infinity), "–"],
    [count(999_999), "999 999"],
    [count(1_000_000), "1.00 M"],
    [count(2.5e9), "2.50 G"],
    [compact(99_999), "99 999"],
    [compact(812_138), "812 k"],
    [compact(999_499), "999 k"],
    [compact(999_500), "999 500"],
    [seconds(0), "0 s"],
    [seconds(0.000041), "41.0 µs"],
    [seconds(0.0972), "97.2 ms"],
    [seconds(0.9996), "1.00 s"],
    [share(0), "0 %"],
    [share(1), "100 %"],
    [share(0.99999), "> 99.9 %"],
    [share(0.0000001), "< 0.1 %"],
    [bytes(27.4 * 2 ** 20), "27.4 MiB"],
    [energy(3600), "1.00 Wh"],
    [energy(7.2e6), "2.00 kWh"],
  ];
  const spaced = (text) => text.replace(/[\u202f\u200a]/g, " ");
  for (const [quantity, text] of texts) assert.equal(spaced(say(quantity)), text);
  const amounts = [
    [0, "$0.00"],
    [0.00031, "$0.000310"],
    [0.0316, "$0.0316"],
    [0.999, "$0.999"],
    [1.846, "$1.85"],
    [-2.5, "$\u22122.50"],
    [12345.6, "$12 345.60"],
    [null, "–"],
  ];
  for (const [amount, text] of amounts) assert.equal(spaced(money(amount, "USD")), text);
  assert.equal(spaced(money(3, "CHF")), "CHF 3.00");
  assert.equal(spaced(money(3, "no code")), "no code 3.00");
  assert.deepEqual(
    [59, 60, 3600, 90_000, 200_000].map((s) => spaced(span(s))),
    ["59 s", "1 min", "1 h 0 min", "25 h 0 min", "2 days"],
  );
});

test("cells of a file cannot be formulas, and numbers stay numbers", async () => {
  const { csv } = await load("csv");
  const rows = [
    ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "-0.5", "12", "a=b"],
    [1.5, null, Infinity, -3, "", '"', ",", "\n", "é"],
  ];
  const expected = '\'=1+1,\'+a,\'-a,\'@a,\'\ta,"\'\ra",-0.5,12,a=b\r\n1.5,,,-3,,"""",",","\'\n",é\r\n';
  assert.equal(csv(rows), expected);
});

test("trail is the end of all seconds that it was given", async () => {
  const { Trail } = await load("trail");
  const point = (value) => new Proxy({}, { get: () => value });
  const history = { scope: "all", step_seconds: 1, last_unix_s: 1000, series: { in_flight: [null, 1, 2] } };
  const trail = Trail.of(history);
  const naive = new Map([
    [998, null],
    [999, 1],
    [1000, 2],
  ]);
  const check = () => {
    assert.equal(trail.times.length, 900);
    assert.deepEqual(
      trail.values("in_flight"),
      trail.times.map((second) => naive.get(second) ?? null),
    );
  };
  check();
  for (let second = 1001; second < 3000; second += 1) {
    const value = second % 7 ? second : null;
    assert.equal(trail.push(second, point(value)), true);
    naive.set(second, value);
  }
  check();
  assert.equal(trail.push(2999, point(5)), true, "a second that is there is not added again");
  assert.equal(trail.push(3001, point(5)), false, "a missing second is reported");
  check();
  assert.equal(trail.max("in_flight"), 2999);
  assert.deepEqual(
    [trail.since(2900).times.length, trail.since(2999).times.length, trail.since(0).times.length],
    [100, 60, 900],
  );
  for (let second = 3000; second < 4000; second += 1) trail.push(second, point(second % 11));
  const values = trail.values("in_flight");
  const means = trail.smooth("in_flight", 30);
  assert.deepEqual([means.length, means[10]], [900, null], "too few points have no mean");
  for (let at = 29; at < 900; at += 1) {
    const naive = values.slice(at - 29, at + 1).reduce((sum, value) => sum + value, 0) / 30;
    assert.ok(Math.abs(means[at] - naive) < 1e-9, `${at}: ${means[at]} is not ${naive}`);
  }
  // Of a process that began 100 s ago, each mean counts zeros before it.
  const young = trail.since(3900);
  const [own, first] = [young.values("in_flight"), young.smooth("in_flight", 30)];
  for (let at = 0; at < 100; at += 1) {
    const naive = own.slice(Math.max(0, at - 29), at + 1).reduce((sum, value) => sum + value, 0) / 30;
    assert.ok(Math.abs(first[at] - naive) < 1e-9, `${at}: ${first[at]} is not ${naive}`);
  }
});

test("month to date is never below the spend since the start", async () => {
  const { MonthToDate } = await load("month-to-date");
  const scope = (name, spend) => ({ name, totals: { spend } });
  const at = Date.UTC(2026, 10, 27, 12);
  const now = (all, tenants, started = at - 60_000) => ({
    at_unix_ms: at,
    started_unix_ms: started,
    currency: "USD",
    all: scope("", all),
    tenants: tenants.map(([name, spend]) => scope(name, spend)),
  });
  const tenant = (name, cost) => ({ name, cost, exchanges: 1, unpriced_exchanges: 0 });
  const days = [
    { day: "2026-11-03", cost: "2.50", tenants: [tenant("a", "2.50")] },
    { day: "2026-11-27", cost: "1.25", tenants: [tenant("a", "1.25")] },
  ];
  const november = {
    month: "2026-11",
    time_zone: "Europe/Berlin",
    since_unix_ms: Date.UTC(2026, 9, 31, 23),
    until_unix_ms: Date.UTC(2026, 10, 30, 23),
    today: "2026-11-27",
  };
  const read = { ...november, currency: "USD", cost: "3.75", days, included: { all: 0.25, tenants: { a: 0.25 } } };
  const month = new MonthToDate(
    read,
    now(0.5, [
      ["a", 0.375],
      ["__proto__", 0.125],
    ]),
  );
  assert.deepEqual(
    [null, "a", "__proto__", "none"].map((name) => month.sum(name)),
    [4, 3.875, 0.125, 0],
  );
  assert.deepEqual([month.days(null)[2], month.days(null)[26]], [2.5, 1.5], "the rest is of today");
  assert.deepEqual(month.tenants(), [
    ["a", 3.875],
    ["__proto__", 0.125],
  ]);
  const nothing = { ...november, currency: null, cost: "0", days: [], included: null };
  const young = new MonthToDate(nothing, now(0.5, [["a", 0.5]]));
  assert.deepEqual([young.sum(null), young.sum("a"), young.currency], [0.5, 0.5, "USD"]);
  const behind = new MonthToDate({ ...read, included: null }, now(9, [["a", 9]]));
  assert.deepEqual([behind.sum(null), behind.sum("a")], [9, 9], "rows wait for the disk");
  const old = new MonthToDate({ ...read, included: null }, now(9, [], Date.UTC(2026, 9, 3)));
  assert.equal(old.sum(null), 3.75, "its spend may be of the month before");
  const over = new MonthToDate({ ...read, until_unix_ms: at }, now(9, []));
  assert.equal(over.sum(null), 3.75, "what came later is of the next month");
  const other = new MonthToDate({ ...read, currency: "EUR" }, now(9, []));
  assert.deepEqual([other.sum(null), other.currency], [3.75, "EUR"]);
});

test("sources of counts add up, and only frames are an estimate", async () => {
  const { sourcesOf, words } = await load("provenance");
  assert.equal(sourcesOf(null), null);
  assert.equal(sourcesOf({ none: 5 }), null);
  const sources = sourcesOf({ engine: 30, reported: 40, running: 10, tokenized: 10, frames: 10, none: 99 });
  assert.deepEqual([sources.reported, sources.counted.toFixed(3), sources.estimated], [0.7, "0.200", 0.1]);
  assert.match(words(sources).replaceAll("\u202f", " "), /^70.0 % reported, 20.0 % counted here, 10.0 % estimated$/);
  assert.doesNotMatch(words(sourcesOf({ reported: 1 })), /estimated/);
});

test("place is read from its own link, whatever the name", async () => {
  const { linkTo, placeOf } = await load("place");
  for (const name of ["a", "", "#model=x", "%", "a b/&?=é\u202e", "\n"]) {
    for (const kind of ["model", "tenant"]) assert.deepEqual(placeOf(linkTo({ kind, name })), { kind, name });
  }
  for (const hash of ["", "#", "#other=x", "#model", "#model=%", "#token=x"])
    assert.deepEqual(placeOf(hash), { kind: "all" });
});
