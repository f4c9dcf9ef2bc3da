// The built files that the program embeds.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const WEB = new URL("../../sidecar/page/web/", import.meta.url).pathname;
const BUILT = join(WEB, "built");
const BYTES_MAX = 150_000;

test("files are small, and none refers to another site", () => {
  const names = readdirSync(BUILT).sort();
  assert.deepEqual(names, ["app.css", "app.js", "icon.svg", "index.html"]);
  const sum = names.reduce((all, name) => all + readFileSync(join(BUILT, name)).length, 0);
  assert.ok(sum < BYTES_MAX, `${sum} bytes`);
  for (const name of names) {
    const text = readFileSync(join(BUILT, name), "utf8");
    const links = (text.match(/https?:\/\/[\w./-]+/g) ?? []).filter((link) => !/www\.w3\.org/.test(link));
    assert.deepEqual(links, [], name);
  }
  const html = readFileSync(join(BUILT, "index.html"), "utf8");
  assert.doesNotMatch(html, /<style|style=|<script(?![^>]*src=)|\son\w+=/);
});

test("rebuilt files are the committed ones", () => {
  const folder = mkdtempSync(join(tmpdir(), "tokenmeter-page-"));
  try {
    const skipped = ["node_modules", "built"].map((name) => join(WEB, name));
    cpSync(WEB, folder, { recursive: true, filter: (path) => !skipped.includes(path) });
    execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, stdio: "pipe" });
    execFileSync("npm", ["run", "build"], { cwd: folder, stdio: "pipe" });
    assert.deepEqual(readdirSync(join(folder, "built")).sort(), readdirSync(BUILT).sort());
    for (const name of readdirSync(BUILT)) {
      const isSame = readFileSync(join(folder, "built", name)).equals(readFileSync(join(BUILT, name)));
      assert.ok(isSame, `${name} differs: run npm ci && npm run build in sidecar/page/web, and commit built/`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("sources have their format", () => {
  assert.ok(existsSync(join(WEB, "node_modules/prettier")), "missing: prettier; install with: tests/page/install");
  execFileSync("npm", ["run", "check"], { cwd: WEB, stdio: "pipe" });
});

test("lock files name no registry, and all licences are permissive", () => {
  const web = JSON.parse(readFileSync(join(WEB, "package-lock.json"), "utf8"));
  const own = JSON.parse(readFileSync(new URL("package-lock.json", import.meta.url), "utf8"));
  for (const [name, part] of [...Object.entries(web.packages), ...Object.entries(own.packages)]) {
    assert.ok(!part.resolved || part.resolved.startsWith("https://registry.npmjs.org/"), `${name}: ${part.resolved}`);
    assert.match(part.license ?? "", /^(MIT|ISC|Apache-2\.0|BSD-[23]-Clause|MPL-2\.0)$/, name);
  }
  for (const part of Object.values(web.packages)) assert.notEqual(part.license, "MPL-2.0");
  assert.ok(existsSync(join(WEB, ".npmrc")));
});
