// A server with the paths of the admin listener and made-up numbers. `node fixture.js [PORT]` serves it for a browser;
// a query as `/?set={"isIdle":true}` changes the world.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { DEFAULTS, curve, history, now, spend } from "./world.js";

const BUILT = new URL("../../sidecar/page/web/built/", import.meta.url);
const TYPES = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** Starts the server. `world` may be changed while it runs; `token` asks for one; `isFull` refuses streams. */
export async function fixture({ port = 0, ...changes } = {}) {
  const world = { ...DEFAULTS, ...changes };
  const streams = new Set();
  const counts = { stream: 0, history: 0, now: 0 };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://fixture");
    const json = (status, body, headers = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    };
    if (!url.pathname.startsWith("/api/")) {
      if (url.searchParams.has("set")) Object.assign(world, JSON.parse(url.searchParams.get("set")));
      const name = url.pathname === "/" ? "index.html" : url.pathname.replace(/^\/assets\//, "");
      const body = await readFile(new URL(name, BUILT)).catch(() => null);
      response.writeHead(body ? 200 : 404, {
        "content-type": TYPES[name.split(".").pop()] ?? "text/plain",
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
      });
      response.end(body ?? "not found");
      return;
    }
    if (world.token && request.headers.authorization !== `Bearer ${world.token}`) {
      json(
        401,
        { error: "the token is missing or wrong; send Authorization: Bearer" },
        { "www-authenticate": "Bearer" },
      );
      return;
    }
    const at = Date.now();
    switch (url.pathname.slice(5)) {
      case "now":
        counts.now += 1;
        json(200, now(at, world));
        break;
      case "history": {
        counts.history += 1;
        const found = history(
          url.searchParams.get("scope") ?? "all",
          Number(url.searchParams.get("step") ?? 1),
          at,
          world,
        );
        if (found) json(200, found);
        else json(404, { error: "no such scope" });
        break;
      }
      case "curve":
        json(200, curve(world));
        break;
      case "spend": {
        const found = spend(world);
        if (found) json(200, found);
        else json(404, { error: "no ledger; start with --ledger FILE" });
        break;
      }
      case "stream": {
        if (world.isFull) {
          json(503, { error: "too many streams" });
          break;
        }
        counts.stream += 1;
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
        const send = () => response.write(`event: now\ndata: ${JSON.stringify(now(Date.now(), world))}\n\n`);
        send();
        const timer = setInterval(send, 1000);
        streams.add(response);
        response.on("close", () => {
          clearInterval(timer);
          streams.delete(response);
        });
        break;
      }
      default:
        json(404, { error: "no such path" });
    }
  });
  const listen = (on) =>
    new Promise((done, failed) => {
      server.once("error", failed);
      server.listen(on, "127.0.0.1", () => {
        server.off("error", failed);
        done(server.address().port);
      });
    });
  const bound = await listen(port);
  const close = async () => {
    const isClosed = new Promise((done) => server.close(done));
    server.closeAllConnections();
    await isClosed;
  };
  return { url: `http://127.0.0.1:${bound}/`, world, counts, streams, close, reopen: () => listen(bound) };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { url } = await fixture({ port: Number(process.argv[2] ?? 9464) });
  console.log(url);
}
