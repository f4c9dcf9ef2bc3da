// Takes the picture of the live page. usage: node screenshot.js FILE SECONDS

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { demo } from "./program.js";

const BYTES_MAX = 200_000;
const [file, seconds] = process.argv.slice(2);

// The system's font of the picture, on any machine.
const folder = mkdtempSync(join(tmpdir(), "tokenmeter-page-"));
const fonts = join(folder, "fonts.conf");
writeFileSync(
  fonts,
  `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>/usr/share/fonts</dir><cachedir>${folder}/cache</cachedir>
${["system-ui", "sans-serif"]
  .map(
    (name) => `<match target="pattern"><test name="family"><string>${name}</string></test>
<edit name="family" mode="assign" binding="strong"><string>Inter</string></edit></match>`,
  )
  .join("\n")}
</fontconfig>`,
);

const meter = await demo();
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox"],
  env: { ...process.env, FONTCONFIG_FILE: fonts },
});
try {
  const options = { viewport: { width: 1280, height: 1400 }, deviceScaleFactor: 1.5, colorScheme: "light" };
  const page = await browser.newPage(options);
  await page.goto(meter.admin);
  await page.waitForTimeout(Number(seconds) * 1000);
  // A picture at full load, which a number of five seconds needs.
  await page.waitForFunction(
    () => Number(document.querySelector("[data-panel=output] .value").textContent.replace(/\D/g, "")) > 1000,
    null,
    { timeout: 120_000 },
  );
  const height = await page.evaluate(
    () => [...document.querySelectorAll(".scopes")].pop().getBoundingClientRect().bottom,
  );
  const png = await page.screenshot({ clip: { x: 0, y: 0, width: options.viewport.width, height: Math.ceil(height) } });
  // The browser is also the encoder.
  const url = await browser.newPage().then(async (blank) =>
    blank.evaluate(async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.toDataURL("image/webp", 0.9);
    }, png.toString("base64")),
  );
  const bytes = Buffer.from(url.split(",")[1], "base64");
  if (bytes.length > BYTES_MAX) throw new Error(`${bytes.length} bytes, more than ${BYTES_MAX}`);
  writeFileSync(file, bytes);
  if (process.env.PNG) writeFileSync(process.env.PNG, png);
  console.log(`${file}: ${bytes.length} bytes`);
} finally {
  await browser.close();
  await meter.stop();
  rmSync(folder, { recursive: true, force: true });
}
