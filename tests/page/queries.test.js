// The queries that the page copies, run by a Prometheus that scrapes the demonstration.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { sees, withWorld } from "./browser.js";
import { demo, eventually, prometheus } from "./program.js";
import { HOSTILE } from "./world.js";

const QUERIES = JSON.parse(readFileSync(new URL("../../sidecar/page/web/src/queries.json", import.meta.url)));
/** The demonstration has no GPU. */
const WITHOUT_RESULT = ["power"];
const NAMES = { model: "simulated-8b", tenant: "search" };

let meter, store;
before(async () => {
  meter = await demo();
  store = await prometheus(meter.admin);
});
after(async () => {
  await store?.stop();
  await meter?.stop();
});

/** Returns the queries that the page's buttons copy. */
async function copied(world, hash) {
  const found = new Map();
  const options = { hash, permissions: ["clipboard-read", "clipboard-write"] };
  await withWorld(world, options, async (page) => {
    await sees(page, "[data-panel=output] .value", /\d/);
    for (const button of await page.getByRole("button", { name: /Prometheus query of/ }).all()) {
      const name = await button.getAttribute("title");
      await button.click();
      await page.waitForFunction(() =>
        [...document.querySelectorAll("button")].some(({ textContent }) => textContent === "Copied"),
      );
      found.set(name, await page.evaluate(() => navigator.clipboard.readText()));
    }
  });
  return found;
}

for (const scope of ["all", "model", "tenant"]) {
  test(`queries of ${scope} are valid and have results`, async () => {
    const models = [[NAMES.model, 1, 0]],
      tenants = [[NAMES.tenant, 1]];
    const hash = scope === "all" ? "" : `#${scope}=${NAMES[scope]}`;
    const texts = await copied({ models, tenants }, hash);
    const own = QUERIES.filter((query) => query.scope === scope);
    assert.equal(texts.size, own.length, `${[...texts.keys()]}`);
    for (const query of own) {
      // The page's own text, found by the query's beginning: up to its first placeholder.
      const start = query.query.split("$")[0];
      const text = [...texts.values()].find((copy) => copy.startsWith(start));
      assert.ok(text, `no button copies ${query.query}`);
      assert.doesNotMatch(text, /\$/);
      if (WITHOUT_RESULT.includes(query.id)) assert.deepEqual(await store.query(text), [], text);
      else assert.ok((await eventually(() => store.query(text))).length > 0, `${text} has no result`);
    }
  });
}

test("queries of hostile names are valid", async () => {
  for (const name of [HOSTILE[0], HOSTILE[2], HOSTILE[3], HOSTILE[5], HOSTILE[7]]) {
    const texts = await copied({ models: [[name, 1, 0]], tenants: [] }, `#model=${encodeURIComponent(name)}`);
    assert.ok(texts.size >= 6);
    for (const text of texts.values()) {
      assert.deepEqual(await store.query(text), [], text);
      const quoted = /model=("(?:[^"\\]|\\.)*")/.exec(text)[1];
      const label = await store.query(`label_replace(vector(1), "model", ${quoted.replaceAll("$", "$$$$")}, "", "")`);
      assert.equal(label[0].metric.model, name);
    }
  }
});
