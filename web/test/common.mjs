import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
export const root = new URL("../../", import.meta.url).pathname;
export const site = new URL("../site/", import.meta.url).pathname;
const program = process.env.AIRLANE ?? `${root}target/quick/airlane`;
if (!existsSync(program)) throw new Error(`${program} is missing; AIRLANE names the program to compare with`);
if (!existsSync(`${site}simulator.js`)) throw new Error("web/site/simulator.js is missing; `make site` makes it");

/** What the native program prints. */
export async function airlane(...options) {
  const { stdout } = await run(program, options, { maxBuffer: 1 << 30, cwd: root });
  return stdout;
}
export { program };

export const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** `airlane lab` for this node: its address, and how to end it. `as`: the words that make it another user's. */
export async function serve(node, as = []) {
  const [command, ...words] = [...as, program, "lab", "--port", "0", ...(node ? [node] : [])];
  const lab = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    lab.stdout.once("data", (line) => resolve(String(line).trim()));
    lab.once("exit", (code) => reject(new Error(`airlane lab ended with ${code}`)));
  });
  return { address, kill: () => lab.kill() };
}

/** For a machine that does other things as well. */
export const PATIENCE = 90_000;

/** A page, which must say nothing in its console and ask nobody else. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.wrong = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.wrong.push(message.text()));
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("request", (request) => /^(blob|data):/.test(request.url()) || request.url().startsWith(url.split("#")[0].replace(/index.html$/, "")) || page.wrong.push(`asks for ${request.url()}`));
  await page.goto(url);
  return page;
}

export async function close(page) {
  assert.deepEqual(page.wrong, []);
  await page.context().close();
}

/** What nobody can use is nowhere on the page, and nothing is wider than the screen. */
export async function isForEverybody(page) {
  const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run({ preload: false }));
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`), []);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than the screen`);
}
