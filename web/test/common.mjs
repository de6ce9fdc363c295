import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
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
