// What the page says when something is missing or broken, and what to do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sees, withWorld } from "./browser.js";

const VALUE = "[data-panel=output] .value";

test("without traffic it shows a request", () =>
  withWorld({ isIdle: true, upstream: { listen: "0.0.0.0:9800" } }, {}, async (page) => {
    await sees(page, ".notice code", /^curl http:\/\/127\.0\.0\.1:9800\/v1\/chat\/completions .*"stream":true/);
  }));

test("without prices it says how to add them", () =>
  withWorld({ currency: null }, {}, async (page) => {
    await sees(page, ".notice", /Nothing is priced.*--prices prices.yaml.*tokenmeter prices init/);
    await sees(page, "[data-panel=spend] .note", /No price book/);
  }));

test("without a ledger it does not ask for its sums", () =>
  withWorld({ ledger: false }, {}, async (page) => {
    await sees(page, "[data-panel=spend] .note", /With --ledger, also the sum of the month/);
  }));

test("upstream that is down and hides usage is named", () =>
  withWorld(
    {
      upstream: { up: false, fault: "it hides usage; remove --usage observe" },
      readiness: { state: "not_ready", reasons: ["no upstream answers"] },
    },
    {},
    async (page) => {
      await sees(page, ".notice.bad", /chat does not answer at http:\/\/127.0.0.1:8000. Start the server/);
      await sees(page, ".notice.bad", /hides usage; remove --usage observe/);
      await sees(page, ".notice.bad", /Not ready: no upstream answers/);
      await sees(page, ".condition", /✕ not ready/);
    },
  ));

test("upstream whose certificate is not verified is named, with what to do", async () => {
  await withWorld({ upstream: { verified: false } }, {}, (page) =>
    sees(page, ".notice.bad", /^✕ The certificate of chat is not verified.*Set ca .* remove insecure_skip_verify\.$/),
  );
  await withWorld({ upstream: { verified: true } }, {}, async (page) => {
    await sees(page, ".condition", /● ready/);
    assert.equal(await page.locator(".notice.bad").count(), 0);
  });
});

test("age of the server's own numbers is shown, and what to do without them", async () => {
  await withWorld({}, {}, (page) => sees(page, ".servers", /vllm: \d+ running, \d+ waiting, read (\d|1[0-5]) s ago/));
  await withWorld({ upstream: { engine: null } }, {}, (page) =>
    sees(page, ".servers", /metrics page is not read; if it has one, start with --engine-metrics on/),
  );
  const engine = {
    kind: "vllm",
    up: false,
    read_unix_ms: null,
    kv_cache_usage_ratio: null,
    prefix_cache_hit_ratio: null,
  };
  await withWorld({ upstream: { engine } }, {}, (page) =>
    sees(page, ".servers", /✕ its metrics page does not answer; tokenmeter’s log has the reason/),
  );
});

test("reason that names a server that is down is said once, with what to do", () => {
  const reason = "upstream chat at http://127.0.0.1:8000 is unreachable: Connection refused";
  const readiness = { state: "not_ready", reasons: [reason] };
  return withWorld({ upstream: { up: false }, readiness }, {}, async (page) => {
    await sees(page, ".notice.bad", /^✕ Not ready: upstream chat .* Connection refused. Start the server.*curl -v/);
    assert.equal(await page.locator(".notice.bad").count(), 1);
  });
});

test("warning is shown and traffic is ready", () =>
  withWorld({ readiness: { state: "impaired", reasons: ["the ledger is 9 s behind"] } }, {}, async (page) => {
    await sees(page, ".notice.hint", /9 s behind/);
    await sees(page, ".condition", /ready, with warnings/);
  }));

test("place without traffic is said, with a way back", () =>
  withWorld({}, { hash: "#model=gone", allowed: /404/ }, async (page) => {
    await sees(page, ".notice", /No traffic of the model gone/);
    await page.getByRole("link", { name: "Show all traffic" }).first().click();
    await page.waitForFunction(() => document.querySelector(".place").hidden);
  }));

test("lost connection greys the values, and they return", () =>
  withWorld({}, { allowed: /ERR_|Failed to load/ }, async (page, server) => {
    await sees(page, VALUE, /\d/);
    await server.close();
    await sees(page, ".condition", /connection lost \d+ s ago.*trying again/);
    assert.equal(await page.evaluate(() => document.body.classList.contains("stale")), true);
    await server.reopen();
    await sees(page, ".condition", /● ready/);
    assert.equal(await page.evaluate(() => document.body.classList.contains("stale")), false);
  }));

test("stream that falls silent is opened again", () =>
  withWorld({}, { allowed: /ERR_/ }, async (page, server) => {
    await sees(page, VALUE, /\d/);
    const before = server.counts.stream;
    for (const stream of server.streams) stream.write = () => true;
    await page.waitForFunction(() => /connection lost/.test(document.querySelector(".condition").textContent), null, {
      timeout: 20_000,
    });
    await sees(page, ".condition", /● ready/);
    assert.ok(server.counts.stream > before);
  }));

test("without a free stream the page asks for single readings", () =>
  withWorld({ isFull: true }, { allowed: /503/ }, async (page, server) => {
    await sees(page, VALUE, /\d/);
    await sees(page, ".condition", /● ready/);
    const first = await page.textContent(VALUE);
    await page.waitForFunction(([to, old]) => document.querySelector(to).textContent !== old, [VALUE, first]);
    assert.ok(server.counts.now >= 2);
  }));

test("token is asked for, refused, and taken", () =>
  withWorld({ token: "se-cret" }, { allowed: /401/ }, async (page) => {
    await sees(page, ".gate", /needs a token.*--admin-token-file/);
    await page.getByRole("textbox", { name: "Admin token" }).fill("wrong");
    await page.keyboard.press("Enter");
    await sees(page, ".gate", /refused the token/);
    await page.getByRole("textbox", { name: "Admin token" }).fill("se-cret");
    await page.keyboard.press("Enter");
    await sees(page, VALUE, /\d/);
    await page.reload();
    await sees(page, VALUE, /\d/);
  }));

test("token of the address is used once and removed", () =>
  withWorld({ token: "a/b+c=" }, { hash: "#token=a%2Fb%2Bc%3D" }, async (page) => {
    await sees(page, VALUE, /\d/);
    assert.doesNotMatch(page.url(), /token/);
    assert.equal(await page.evaluate(() => sessionStorage.getItem("tokenmeter-token")), "a/b+c=");
    assert.equal(await page.evaluate(() => localStorage.length), 0);
  }));

test("hidden page asks for nothing", () =>
  withWorld({}, {}, async (page, server) => {
    await sees(page, VALUE, /\d/);
    const hide = (isHidden) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
        document.dispatchEvent(new Event("visibilitychange"));
      }, isHidden);
    await hide(true);
    await page.waitForTimeout(300);
    assert.equal(server.streams.size, 0);
    await hide(false);
    await sees(page, ".condition", /● ready/);
    assert.equal(server.streams.size, 1);
  }));
