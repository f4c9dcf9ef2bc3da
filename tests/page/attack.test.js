// Attacks: what clients choose is text and runs nothing, and the page's policy blocks what would run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browser, sees, withWorld } from "./browser.js";
import { fixture } from "./fixture.js";

const VALUE = "[data-panel=output] .value";

const SCRIPTS = [
  "<script>globalThis.pwned=1</script>",
  '<img src=x onerror="globalThis.pwned=1">',
  "\"'><svg onload=globalThis.pwned=1>",
  "</option></select><iframe srcdoc='<script>parent.pwned=1</script>'>",
  "javascript:globalThis.pwned=1",
  "${globalThis.pwned=1}{{globalThis.pwned=1}}",
];
const NAMES = [
  ...SCRIPTS,
  "__proto__",
  "constructor",
  "\u202egpj.exe",
  "a\u2066b\u2069",
  "soft\u00adhyphen",
  "tag\u{e0041}\u{e007f}",
  "filler\u3164",
  "\u001b[2J\u0000\b",
  "👩\u200d💻 موديل 模型 e\u0301\u0301\u0301\u0301",
  "#model=other&tenant=x",
  "%3Cscript%3E%00%",
  "x".repeat(5000),
];

/** Counts violations of the page's policy from its first line on. */
const listen = () => {
  globalThis.violations = [];
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) =>
    globalThis.violations.push(effectiveDirective),
  );
};

/** Asserts that nothing ran and nothing was added that could run. */
async function assertHarmless(page) {
  const found = await page.evaluate(() => ({
    pwned: globalThis.pwned,
    violations: globalThis.violations,
    added: [...document.querySelectorAll("script:not([src]), img, iframe, object, embed, svg, base, form[action]")]
      .length,
    scripts: document.scripts.length,
    handlers: [...document.querySelectorAll("*")].flatMap((element) =>
      element.getAttributeNames().filter((name) => name.startsWith("on")),
    ),
    links: [...document.links].map(({ protocol }) => protocol).filter((protocol) => protocol !== "http:"),
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  assert.deepEqual(found, {
    pwned: undefined,
    violations: [],
    added: 0,
    scripts: 1,
    handlers: [],
    links: [],
    wide: 0,
  });
}

/** Characters with which a name could look like another one. */
const invisible = /[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;

test("hostile names of models and tenants are text", () =>
  withWorld(
    { models: NAMES.map((name, at) => [name, 0.1, at / 20]), tenants: NAMES.map((name) => [name, 0.1]) },
    { init: listen, allowed: /404/ },
    async (page) => {
      await sees(page, ".scopes a", /<script>globalThis/);
      await assertHarmless(page);
      for (const text of await page.locator(".scopes tbody a, option").allTextContents())
        assert.doesNotMatch(text, invisible);
      for (const kind of ["model", "tenant"]) {
        for (const name of NAMES) {
          await page.goto(`${page.url().split("#")[0]}#${kind}=${encodeURIComponent(name)}`);
          await page.waitForFunction(
            ([word, length]) =>
              document.querySelector(".place .kind")?.textContent === word &&
              document.querySelector(".place strong").textContent.length === length,
            [kind, name.replace(/[\u{e0041}\u{e007f}]/gu, "x").length],
          );
          await assertHarmless(page);
        }
      }
    },
  ));

test("hostile texts of servers, GPUs and settings are text", async () => {
  const hostile = `${SCRIPTS.join(" ")} \u202egpj.exe`;
  const engine = { kind: hostile, up: true, read_unix_ms: 0, running_requests: 1, waiting_requests: 0 };
  const upstream = { name: hostile, url: `http://${hostile}`, listen: hostile, up: false, fault: hostile };
  await withWorld(
    {
      upstream: { ...upstream, engine: { ...engine, kv_cache_usage_ratio: 0.5, prefix_cache_hit_ratio: null } },
      readiness: { state: "not_ready", reasons: [hostile] },
      hostile,
    },
    { init: listen },
    async (page) => {
      await sees(page, ".notice.bad", /<script>globalThis.pwned=1<\/script>/);
      await sees(page, ".devices", /<script>globalThis/);
      await sees(page, ".servers", /<script>globalThis/);
      await assertHarmless(page);
      assert.doesNotMatch(await page.locator(".notice p").first().textContent(), invisible);
      assert.doesNotMatch(await page.locator(".devices").textContent(), invisible);
    },
  );
});

for (const link of [
  "#model=%",
  "#model=%ff",
  "#tenant=",
  "#model",
  "#__proto__=x",
  "#model=<script>globalThis.pwned=1</script>",
]) {
  test(`deep link ${link} is harmless`, () =>
    withWorld({}, { hash: link, init: listen, allowed: /404/ }, async (page) => {
      await sees(page, VALUE, /\d|–/);
      await assertHarmless(page);
    }));
}

for (const script of SCRIPTS) {
  test(`token ${script} of a link is never shown`, () =>
    withWorld({ token: "right" }, { hash: `#token=${script}`, init: listen, allowed: /401/ }, async (page) => {
      await sees(page, ".gate", /refused the token/);
      await assertHarmless(page);
      assert.doesNotMatch(page.url(), /token|pwned/);
      assert.equal((await page.content()).includes("pwned"), false);
    }));
}

test("policy blocks scripts, styles, requests, frames and forms that a name could add", () =>
  withWorld({}, { init: listen, allowed: /./ }, async (page) => {
    await sees(page, VALUE, /\d/);
    await page.evaluate(() => {
      const add = (name, attributes, text = "") => {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.textContent = text;
        document.body.append(element);
        return element;
      };
      add("script", {}, "globalThis.pwned = 1");
      add("script", { src: "data:text/javascript,globalThis.pwned=1" });
      add("div", {}).innerHTML = '<img src="data:image/png;base64,x" onerror="globalThis.pwned=1">';
      add("a", { href: "javascript:globalThis.pwned=1" }).click();
      add("style", {}, "body { display: none }");
      add("iframe", { src: "data:text/html,x" });
      add("object", { data: "data:text/html,x" });
      add("base", { href: "http://evil.example/" });
      add("form", { action: "http://127.0.0.1:9/" }).submit();
      setTimeout("globalThis.pwned = 1");
      fetch("http://127.0.0.1:9/").catch(() => {});
    });
    const blocked = ["script-src", "script-src-elem", "script-src-attr", "style-src-elem", "img-src", "frame-src"];
    blocked.push("object-src", "base-uri", "form-action", "connect-src");
    await page.waitForFunction((all) => all.every((one) => globalThis.violations.includes(one)), blocked);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  }));

test("another site cannot frame the page", async () => {
  const server = await fixture({});
  const context = await (await browser()).newContext();
  try {
    const page = await context.newPage();
    const refused = page.waitForEvent("console", ({ text }) => /frame-ancestors/.test(String(text)) || true);
    await page.setContent(`<iframe src="${server.url}"></iframe>`);
    await refused;
    const [, frame] = page.frames();
    assert.equal(await frame.locator(".panel").count(), 0);
  } finally {
    await context.close();
    await server.close();
  }
});
