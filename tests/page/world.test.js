// What the page shows of a made-up world.

import assert from "node:assert/strict";
import { test } from "node:test";
import { numberIn, sees, withWorld } from "./browser.js";
import { HOSTILE, now, visible } from "./world.js";

const VALUE = "[data-panel=output] .value";

test("numbers move and are those of the stream", () =>
  withWorld({}, {}, async (page, server) => {
    await sees(page, VALUE, /\d/);
    const first = await page.textContent(VALUE);
    await page.waitForFunction(([to, old]) => document.querySelector(to).textContent !== old, [VALUE, first]);
    const row = page.locator(".scopes tbody tr").first();
    const name = await row.locator("a").textContent();
    const shown = numberIn((await row.locator("td").allTextContents())[4]);
    const own = now(Date.now(), server.world).models.find((model) => model.name === name);
    assert.ok(Math.abs(shown - own.totals.exchanges) <= 20, `${shown} is not ${own.totals.exchanges}`);
    assert.equal(server.streams.size, 1);
  }));

test("hostile names are text", () =>
  withWorld(
    { models: HOSTILE.map((name, at) => [name, 0.2, at / 10]), tenants: HOSTILE.map((name) => [name, 0.2]) },
    { width: 360 },
    async (page) => {
      await sees(page, ".scopes a", /<img src=x/);
      const shown = await page.locator(".scopes >> nth=0").locator("tbody a").allTextContents();
      assert.deepEqual([...shown].sort(), HOSTILE.map(visible).sort());
      for (const name of HOSTILE) {
        await page.goto(`${page.url().split("#")[0]}#model=${encodeURIComponent(name)}`);
        await page.waitForFunction(
          (text) => document.querySelector(".place strong")?.textContent === text,
          visible(name),
        );
        const wide = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(wide, 0, name);
      }
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
      assert.equal(await page.locator("img").count(), 0);
    },
  ));

for (const colorScheme of ["light", "dark"]) {
  test(`theme of a ${colorScheme} system is ${colorScheme}, and the switch overrides it`, () =>
    withWorld({}, { colorScheme }, async (page) => {
      await sees(page, VALUE, /\d/);
      const isDark = () =>
        page.evaluate(
          () =>
            getComputedStyle(document.body)
              .backgroundColor.match(/\d+/g)
              .reduce((sum, part) => sum + Number(part), 0) < 380,
        );
      assert.equal(await isDark(), colorScheme === "dark");
      const button = page.getByRole("button", { name: /Theme/ });
      await button.click();
      assert.equal(await isDark(), true);
      await button.click();
      assert.equal(await isDark(), false);
      await page.reload();
      await sees(page, VALUE, /\d/);
      assert.equal(await isDark(), false);
    }));
}

for (const width of [360, 768, 1280, 3840]) {
  test(`page of ${width} pixels does not scroll sideways, and nothing moves when the numbers come`, () =>
    withWorld({}, { width }, async (page) => {
      await sees(page, VALUE, /\d/);
      await page.waitForTimeout(1500);
      const at = () =>
        page.evaluate(() =>
          [...document.querySelectorAll(".panel, .curve")].map((element) =>
            Math.round(element.getBoundingClientRect().top),
          ),
        );
      const before = await at();
      await page.waitForTimeout(2500);
      assert.deepEqual(await at(), before);
      assert.equal(
        await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
        0,
      );
    }));
}

test("row is a deep link that filters the page", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, ".scopes a", /gemma/);
    await page.locator(".scopes tbody tr", { hasText: "gemma-3-4b" }).locator("td").nth(2).click();
    await sees(page, ".place", /gemma-3-4b/);
    assert.match(page.url(), /#model=gemma-3-4b$/);
    await page.reload();
    await sees(page, ".place", /gemma-3-4b/);
    await sees(page, ".curve .knees", /chat/);
    await sees(page, ".tag", /all traffic/);
    await page.getByRole("link", { name: "Show all traffic" }).click();
    await page.waitForFunction(() => document.querySelector(".place").hidden);
    await page.goto(`${page.url().split("#")[0]}#tenant=batch`);
    await sees(page, "[data-panel=first_token] .note", /by model only/);
  }));

test("column head sorts, and what is not known comes last", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, ".scopes a", /research/);
    const table = page.locator(".scopes").nth(1);
    const names = () => table.locator("tbody a").allTextContents();
    await table.getByRole("button", { name: "Tenant", exact: true }).click();
    assert.deepEqual(await names(), ["batch", "default", "research", "support-bot", "trial-7"]);
    assert.equal(await table.locator("th[aria-sort]").getAttribute("aria-sort"), "ascending");
    await table.getByRole("button", { name: "Budget", exact: true }).click();
    assert.deepEqual((await names()).slice(0, 3), ["default", "trial-7", "research"]);
    await table.getByRole("button", { name: "Budget", exact: true }).click();
    assert.deepEqual((await names()).slice(0, 3), ["research", "trial-7", "default"]);
  }));

test("estimates are hatched and named", () =>
  withWorld({}, {}, async (page) => {
    const cell = page.locator(".scopes tbody tr", { hasText: "gemma-3-4b" }).locator(".with-bar");
    await sees(page, ".scopes .with-bar", /24.0 % estimated/);
    assert.equal(await cell.locator(".hatched").count(), 1);
    await sees(page, ".scopes .with-bar", /≈ \$31.50 estimated/);
  }));

test("day is shown by the minute", () =>
  withWorld({ startedAgo: 90_000 }, {}, async (page, server) => {
    await sees(page, VALUE, /\d/);
    const before = server.counts.history;
    await page.getByRole("button", { name: "24 h" }).click();
    await page.waitForFunction(() => document.querySelector("[aria-pressed=true]").textContent === "24 h");
    await page.locator("[data-panel=in_flight] .frame").focus();
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelector("[data-panel=in_flight] .readout").textContent !== "");
    assert.ok(server.counts.history > before);
  }));

test("bound that is missed has a sign and a word", () =>
  withWorld({}, {}, async (page) => {
    await sees(page, "[data-panel=speed] .note", /(✓ meets|✕ below) chat: at least 30/);
    await sees(page, ".curve .knees", /✕ chat .*no longer at 33-64.* exchanges met it/);
  }));

test("knee is explained beside the curve, with the requests in flight", () =>
  withWorld({}, {}, async (page) => {
    const meaning = /The knee: up to this many requests at once, .* send the server fewer .* or add a server\./;
    await sees(page, ".curve .note", meaning);
    await sees(page, ".curve .note", /In flight: 17-32 at the knee of chat, \d+ of this model now\.$/);
  }));

test("charts of errors and money begin with the process", () =>
  withWorld({ startedAgo: 20 }, {}, async (page) => {
    await sees(page, VALUE, /\d/);
    for (const [panel, value] of [
      ["errors", /: errors [\d.]+ \/min, aborts [\d.]+ \/min$/],
      ["spend", /: \$[\d.]+ per hour$/],
    ]) {
      await page.locator(`[data-panel=${panel}] .frame`).focus();
      await page.keyboard.press("End");
      for (let at = 0; at < 15; at += 1) await page.keyboard.press("ArrowLeft");
      await sees(page, `[data-panel=${panel}] .readout`, value);
    }
  }));

test("charts of a young process begin with it", () =>
  withWorld({ startedAgo: 90 }, {}, async (page) => {
    await sees(page, VALUE, /\d/);
    await page.waitForTimeout(1200);
    const at = async (key) => {
      await page.locator("[data-panel=output] .frame").focus();
      await page.keyboard.press(key);
      const [hours, minutes, seconds] = (await page.textContent("p[aria-live]")).split(":");
      return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    };
    const first = await at("Home");
    const width = ((await at("End")) - first + 86_400) % 86_400;
    assert.ok(width >= 85 && width <= 95, `${width} s`);
  }));
