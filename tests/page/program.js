// The real programs: tokenmeter with its demonstration, and a Prometheus that scrapes it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

const START_MAX_MS = 30_000;

/** Returns a program's path; a missing one fails the test with the command that installs it. */
function program(path, install) {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    assert.fail(`missing: ${path}; install with: ${install}`);
  }
  return path;
}

/** Starts a process and waits until its output matches. Returns the match and a function that stops the process. */
async function start(path, args, pattern, options = {}) {
  const child = spawn(path, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let output = "";
  const ended = new Promise((done) => child.once("exit", done));
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await ended;
    clearTimeout(timer);
  };
  const found = await new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`${path} printed no ${pattern}:\n${output}`)), START_MAX_MS);
    const read = (chunk) => {
      output += chunk;
      const match = pattern.exec(output);
      if (match) {
        clearTimeout(timer);
        done(match);
      }
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", (code) => {
      clearTimeout(timer);
      failed(new Error(`${path} ended with ${code}:\n${output}`));
    });
    child.once("error", failed);
  }).catch(async (error) => {
    if (child.exitCode === null && child.pid) await stop();
    throw error;
  });
  return { found, stop };
}

const tokenmeter = () => program(process.env.TOKENMETER_BIN ?? "target/debug/tokenmeter", "cargo build -p tokenmeter");

/** Starts the demonstration: `admin` and `proxy` are its addresses, with a slash at the end. */
export async function demo(admin = "127.0.0.1:0") {
  const args = ["demo", "--listen", "127.0.0.1:0", "--admin", admin];
  const { found, stop } = await start(tokenmeter(), args, /(http:\/\/[\d.]+:\d+\/)[^]*?(http:\/\/[\d.]+:\d+\/)v1\//);
  return { admin: found[1], proxy: found[2], stop };
}

/** Starts the proxy in front of a server, with an admin token. */
export async function guarded(upstream, token) {
  const folder = mkdtempSync(join(tmpdir(), "tokenmeter-page-"));
  writeFileSync(join(folder, "token"), `${token}\n`, { mode: 0o600 });
  const args = [
    "run",
    "--upstream",
    upstream,
    "--listen",
    "127.0.0.1:0",
    "--admin",
    "127.0.0.1:0",
    "--admin-token-file",
    join(folder, "token"),
  ];
  const { found, stop } = await start(tokenmeter(), args, /page http:\/\/([\d.]+:\d+)\//);
  return {
    admin: `http://${found[1]}/`,
    stop: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a Prometheus that scrapes `admin` each second. */
export async function prometheus(admin) {
  const root = process.env.TOKENMETER_TELEMETRY ?? join(homedir(), ".cache/tokenmeter/telemetry");
  const path = program(join(root, "bin/prometheus"), "tests/telemetry/install");
  const folder = mkdtempSync(join(tmpdir(), "tokenmeter-page-"));
  const target = new URL(admin).host;
  writeFileSync(
    join(folder, "prometheus.yaml"),
    "global: { scrape_interval: 1s, scrape_timeout: 1s }\n" +
      `scrape_configs: [{ job_name: tokenmeter, static_configs: [{ targets: ["${target}"] }] }]\n`,
  );
  const args = ["--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"];
  const { found, stop } = await start(path, args, /Listening on.*?address=(127\.0\.0\.1:\d+)/, { cwd: folder });
  return {
    /** Returns the vector of a query. An invalid query throws Prometheus' words. */
    async query(text) {
      const response = await fetch(`http://${found[1]}/api/v1/query?query=${encodeURIComponent(text)}`);
      const answer = await response.json();
      if (answer.status !== "success") throw new Error(`${text}: ${answer.error}`);
      return answer.data.result;
    },
    stop: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Calls until the result is not empty; returns the last result after half a minute. */
export async function eventually(ask) {
  const end = Date.now() + 30_000;
  for (;;) {
    const result = await ask();
    if (result.length > 0 || Date.now() > end) return result;
    await new Promise((done) => setTimeout(done, 500));
  }
}
