// The page that the program itself serves, with the demonstration's traffic.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { numberIn, open, sees } from "./browser.js";
import { demo, guarded } from "./program.js";
import { HOSTILE } from "./world.js";

const VALUE = "[data-panel=output] .value";

let meter;
before(async () => {
  meter = await demo();
});
after(async () => meter?.stop());

/** Returns the sum of a metric's samples with these labels. */
async function metric(name, labels = "") {
  const page = await (await fetch(`${meter.admin}metrics`)).text();
  const lines = page.split("\n").filter((line) => line.startsWith(`${name}{`) && line.includes(labels));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf("} ") + 2).split(" ")[0]), 0);
}

/** Returns the text of a cell of the row of a name, by the column's name. */
const cell = (page, row, column) =>
  page.evaluate(
    ([name, id]) => {
      const line = [...document.querySelectorAll(".scopes tbody tr")].find(
        (tr) => tr.querySelector("a").textContent === name,
      );
      const heads = [...line.closest("table").querySelectorAll("thead th")];
      return line.children[heads.findIndex((th) => th.dataset.id === id)].textContent;
    },
    [row, column],
  );

test("numbers move and are those of /metrics", async () => {
  const { page, close } = await open(meter.admin);
  await sees(page, VALUE, /[1-9]/);
  await sees(page, ".scopes a", /simulated-8b/);
  const first = await page.textContent(VALUE);
  await page.waitForFunction(([to, old]) => document.querySelector(to).textContent !== old, [VALUE, first]);
  for (const [row, labels, name] of [
    ["simulated-8b", 'model="simulated-8b"', "tokenmeter_exchanges_total"],
    ["search", 'tenant="search"', "tokenmeter_tenant_exchanges_total"],
  ]) {
    // A counter only grows: the page's value lies between two readings of /metrics, once it is as new as the first.
    const least = await metric(name, labels);
    await page.waitForFunction(
      ([own, most]) => {
        const line = [...document.querySelectorAll(".scopes tbody tr")].find(
          (tr) => tr.querySelector("a").textContent === own,
        );
        const at = [...line.closest("table").querySelectorAll("thead th")].findIndex(
          (th) => th.dataset.id === "exchanges",
        );
        return Number(line.children[at].textContent.replaceAll("\u202f", "")) >= most;
      },
      [row, least],
    );
    const shown = numberIn(await cell(page, row, "exchanges"));
    const most = await metric(name, labels);
    assert.ok(shown >= least && shown <= most, `${row}: ${shown} is not within ${least} and ${most}`);
  }
  await sees(page, "[data-panel=spend] .figure", /\$\d/);
  await sees(page, ".curve .knees", /chat/);
  await close();
});

test("month is not below the spend since the start, from the first second on", async () => {
  const { page, close } = await open(meter.admin);
  await sees(page, "[data-panel=spend] .figures", /\$\d.* this month/);
  for (let second = 0; second < 5; second += 1) {
    const { all } = await (await fetch(`${meter.admin}api/now`)).json();
    await page.waitForTimeout(1500);
    const shown = numberIn((await page.locator("[data-panel=spend] .value").nth(1).textContent()).replace("$", ""));
    assert.ok(shown >= all.totals.spend * 0.99, `${shown} is below ${all.totals.spend}`);
  }
  await close();
});

test("hostile names of models and tenants are text", async () => {
  const ascii = HOSTILE.filter((name) => /^[\x20-\x7e]+$/.test(name));
  for (const model of HOSTILE) {
    const body = JSON.stringify({ model, max_tokens: 2, messages: [{ role: "user", content: "hi" }] });
    await (
      await fetch(`${meter.proxy}v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-tenant": ascii[0] },
        body,
      })
    ).text();
  }
  const { page, close } = await open(meter.admin, { width: 360 });
  // A row appears when its exchange is recorded, so the rows do not appear at once.
  await sees(page, ".scopes a", /^<img src=x/);
  await sees(page, ".scopes a", /^"} or vector/);
  const names = await page.locator(".scopes tbody a").allTextContents();
  assert.equal(names.filter((name) => name === ascii[0]).length, 2, "a model and a tenant");
  await page.goto(`${meter.admin}#model=${encodeURIComponent(HOSTILE[0])}`);
  await sees(page, ".place strong", /<img src=x/);
  await page.waitForTimeout(1500);
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(
    await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    0,
  );
  await close();
});

test("page is served with the policy that it was built for", async () => {
  const response = await fetch(meter.admin);
  const policy = response.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"])
    assert.ok(policy.includes(part), policy);
  assert.doesNotMatch(policy, /unsafe/);
});

test("token of the address opens the page of a guarded proxy", async () => {
  const token = "a-token-of-thirty-two-characters!";
  const other = await guarded(meter.proxy, token);
  try {
    const without = await open(other.admin, { allowed: /401/ });
    await sees(without.page, ".gate", /needs a token/);
    await without.close();
    const { page, close } = await open(`${other.admin}#token=${encodeURIComponent(token)}`);
    await sees(page, ".notice", /No traffic yet/);
    assert.doesNotMatch(page.url(), /token/);
    await close();
  } finally {
    await other.stop();
  }
});

test("page comes back when the program does", async () => {
  const address = new URL(meter.admin).host;
  const { page, close } = await open(meter.admin, { allowed: /ERR_|Failed to load/ });
  await sees(page, VALUE, /\d/);
  await meter.stop();
  await sees(page, ".condition", /connection lost/);
  meter = await demo(address);
  await sees(page, ".condition", /● ready/);
  await close();
});
