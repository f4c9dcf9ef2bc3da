// Headless Chromium, and a page of it that fails its test on an error in the console.

import assert from "node:assert/strict";
import { after } from "node:test";
import { chromium } from "playwright-core";
import { fixture } from "./fixture.js";

let started;

/** Returns the browser of this file's tests. */
export async function browser() {
  started ??= chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  return started;
}

after(async () => (await started)?.close());

/**
 * Opens the page of a server. `faults` collects what the console and the page reported as an error; `allowed` matches
 * those that the test provokes. `init` runs before the page.
 */
export async function open(url, { width = 1280, height = 900, allowed = /^$/, init, ...options } = {}) {
  const context = await (
    await browser()
  ).newContext({ viewport: { width, height }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  if (init) await page.addInitScript(init);
  const faults = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !allowed.test(message.text())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error.stack)));
  await page.goto(url);
  return {
    page,
    faults,
    close: async () => {
      await context.close();
      assert.deepEqual(faults, []);
    },
  };
}

/** Runs a test with a made-up world and its page. */
export async function withWorld(changes, options, test) {
  const server = await fixture(changes);
  const opened = await open(server.url + (options.hash ?? ""), options);
  let isDone = false;
  try {
    await test(opened.page, server, opened);
    isDone = true;
  } finally {
    if (isDone) await opened.close();
    await server.close();
  }
}

/** Waits until the text of an element matches. */
export async function sees(page, selector, pattern) {
  try {
    await page.waitForFunction(
      ([to, source]) =>
        [...document.querySelectorAll(to)].some(
          (element) =>
            element.checkVisibility() && new RegExp(source, "s").test(element.textContent.replaceAll("\u202f", " ")),
        ),
      [selector, pattern.source],
      { timeout: 15_000 },
    );
  } catch {
    const found = await page.locator(selector).allTextContents();
    assert.fail(`${selector} does not show ${pattern}: ${JSON.stringify(found.slice(0, 20))}`);
  }
}

/** Returns the number that a text begins with. */
export const numberIn = (text) =>
  Number(
    text
      .replaceAll(/[\u202f ]/g, "")
      .replace("\u2212", "-")
      .match(/-?[\d.]+/)?.[0],
  );
