// Files that the page saves and texts that it copies.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { sees, withWorld } from "./browser.js";
import { HOSTILE, visible } from "./world.js";

const VALUE = "[data-panel=output] .value";

/** Reads RFC 4180: the twin of the page's writer. */
function parse(text) {
  const rows = [];
  let row = [],
    cell = "",
    isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const c = text[at];
    if (isQuoted) {
      if (c === '"' && text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else if (c === '"') isQuoted = false;
      else cell += c;
    } else if (c === '"') isQuoted = true;
    else if (c === ",") {
      row.push(cell);
      cell = "";
    } else if (c === "\r" && text[at + 1] === "\n") {
      rows.push([...row, cell]);
      row = [];
      cell = "";
      at += 1;
    } else cell += c;
  }
  assert.deepEqual([row, cell, isQuoted], [[], "", false], "the file ends with a whole row");
  return rows;
}

async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return { name: download.suggestedFilename(), rows: parse(await readFile(await download.path(), "utf8")) };
}

test("table is saved as it is visible, and spreadsheets run none of it", () =>
  withWorld({ tenants: HOSTILE.map((name, at) => [name, 0.1 + at / 50]) }, {}, async (page) => {
    await sees(page, ".scopes a", /<img/);
    const section = page.locator(".scopes").nth(1);
    await section.getByRole("button", { name: "Exchanges" }).click();
    const shown = await section.locator("tbody a").allTextContents();
    const {
      name,
      rows: [head, ...rows],
    } = await saved(page, section.getByRole("button", { name: "CSV" }));
    assert.equal(name, "tokenmeter-tenants.csv");
    assert.deepEqual(
      rows.map(([own]) => visible(own.replace(/^'(?=[=+\-@])/, ""))),
      shown,
    );
    assert.ok(
      rows.flat().every((cell) => !/^[=+@\t\r]/.test(cell)),
      "a cell begins a formula",
    );
    assert.ok(rows.some(([own]) => own.startsWith("'=HYPERLINK")));
    assert.ok(rows.every((row) => row.length === head.length));
    const counts = rows.map((row) => Number(row[head.indexOf("exchanges")]));
    assert.deepEqual(
      counts,
      [...counts].sort((a, b) => b - a),
    );
    assert.ok(head.includes("spend_usd") && head.includes("tokens_output"));
  }));

test("history and curve are saved with units in their heads", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, VALUE, /\d/);
    await page.waitForTimeout(1200);
    const { name, rows } = await saved(page, page.locator("header").getByRole("button", { name: "CSV" }));
    assert.equal(name, "tokenmeter-all-history.csv");
    assert.ok(rows.length > 800 && rows.length <= 901, `${rows.length} rows`);
    assert.equal(rows[0][1], "output_tokens_per_second");
    assert.match(rows[1][0], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
    const curve = await saved(page, page.locator(".curve").getByRole("button", { name: "CSV" }));
    assert.equal(curve.rows.length, 1 + 6 + 5 + 4);
    const month = await saved(page, page.locator(".blocks").getByRole("button", { name: "CSV" }));
    assert.equal(month.rows.length, 1 + 24 * 5);
  }));

test("query is copied with the quoted name", () =>
  withWorld(
    { models: HOSTILE.map((name) => [name, 0.2, 0]) },
    { hash: `#model=${encodeURIComponent(HOSTILE[5])}`, permissions: ["clipboard-read", "clipboard-write"] },
    async (page) => {
      await sees(page, VALUE, /\d/);
      await page
        .locator("[data-panel=output]")
        .getByRole("button", { name: /Prometheus/ })
        .click();
      await sees(page, "[data-panel=output] button", /Copied/);
      const text = await page.evaluate(() => navigator.clipboard.readText());
      assert.equal(text, 'sum(rate(tokenmeter_live_output_tokens_total{model="\\"} or vector(1) or {x=\\""}[1m]))');
    },
  ));
