// Builds `built/`, which the program embeds, from `src/`: the same bytes for the same sources and package-lock.json.

import { copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { build } from "esbuild";

const LICENCE = await readFile("node_modules/uplot/LICENSE", "utf8");

await rm("built", { recursive: true, force: true });
await mkdir("built");
await build({
  entryPoints: { app: "src/main.ts" },
  outdir: "built",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: `/* tokenmeter, Apache-2.0. Contains uPlot:\n${LICENCE.trim()}\n*/` },
  logLevel: "warning",
});
await copyFile("src/index.html", "built/index.html");
await copyFile("src/icon.svg", "built/icon.svg");
