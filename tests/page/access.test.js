// The page without a mouse and without eyes.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { sees, withWorld } from "./browser.js";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const VALUE = "[data-panel=output] .value";

async function findings(page) {
  // The page's policy forbids scripts of others; the driver adds this one past it.
  await page.addScriptTag({ path: AXE }).catch(() => {});
  const result = await page.evaluate(() => globalThis.axe.run());
  return result.violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ html }) => html)
          .join(" | ")}`,
    );
}

const CASES = [
  ["light", {}, { colorScheme: "light" }],
  ["dark", {}, { colorScheme: "dark" }],
  ["narrow", {}, { width: 360, colorScheme: "dark" }],
  ["idle", { isIdle: true, currency: null, ledger: false, gpus: 0, objectives: false }, { colorScheme: "light" }],
  ["broken", { upstream: { up: false, fault: "it hides usage" }, dropped: 3 }, { colorScheme: "dark" }],
  ["a tenant", {}, { hash: "#tenant=research" }],
  ["token", { token: "x" }, { allowed: /401/ }],
];

for (const [name, world, options] of CASES) {
  test(`axe finds nothing serious: ${name}`, () =>
    withWorld(world, { bypassCSP: true, ...options }, async (page) => {
      await sees(page, name === "token" ? ".gate" : VALUE, name === "token" ? /token/ : /\d/);
      await page.waitForTimeout(500);
      assert.deepEqual(await findings(page), []);
    }));
}

test("charts are read with arrow keys", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, VALUE, /\d/);
    await page.waitForTimeout(1200);
    const spoken = () => page.textContent("p[aria-live]");
    for (const [chart, pattern] of [
      ["[data-panel=output] .frame", /^\d\d:\d\d:\d\d: .*tokens\/s$/],
      ["[data-panel=first_token] .frame", /p50 .*m?s, p99 .*m?s$/],
      [".curve .frame", /at once: half of the requests reach/],
      [".position .frame", /^Tokens .* of a response: .*tokens\/s$/],
    ]) {
      await page.locator(chart).first().focus();
      await page.keyboard.press("Home");
      const first = await spoken();
      assert.match(first, pattern);
      await page.keyboard.press("ArrowRight");
      assert.match(await spoken(), pattern);
      assert.notEqual(await spoken(), first);
    }
  }));

test("tab reaches everything that can be used, in the order of the page", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, VALUE, /\d/);
    const names = [];
    for (let step = 0; step < 90; step += 1) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => {
        const { activeElement: element } = document;
        return element === document.body ? null : (element.getAttribute("aria-label") ?? element.textContent);
      });
      if (name === null) break;
      names.push(name);
    }
    const at = (pattern) => {
      const found = names.findIndex((name) => pattern.test(name));
      assert.ok(found >= 0, `${pattern} is not reached: ${names.join(" / ")}`);
      return found;
    };
    const order = [
      /^15 min$/,
      /^24 h$/,
      /^Theme/,
      /^Output tokens per second. Arrow/,
      /^Speed of one request, median. Arrow/,
      /^Speed of one request by concurrency. Arrow/,
      /^Numbers$/,
      /^qwen3-8b$/,
      /^research$/,
      /^Power of all GPUs. Arrow/,
    ].map(at);
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    );
  }));

test("row is opened with the keyboard", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, ".scopes a", /research/);
    await page.getByRole("link", { name: "research" }).focus();
    await page.keyboard.press("Enter");
    await sees(page, ".place", /tenant.*research/);
  }));
