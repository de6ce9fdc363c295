// The page in Chromium: what it shows, and that its digits are the program's.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { chromium as playwright } from "playwright-core";
import { airlane, chromium, close, isForEverybody, root, serve, site, visit } from "./common.mjs";

if (!chromium) throw new Error("Chromium is missing, so nobody has looked at the page: sudo apt-get install chromium");

const SETTLED = () => document.querySelector("header .busy")?.textContent === "" && document.querySelector(".results .value");
let browser;
let lab;
let address;

before(async () => {
  browser = await playwright.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  lab = await serve();
  address = lab.address;
});

after(async () => {
  lab?.kill();
  await browser?.close();
});

/** A page that has simulated. */
async function open(url, options = {}) {
  const page = await visit(browser, url, options);
  await page.waitForFunction(SETTLED);
  return page;
}

/** What the table shows of a measure, way by way. */
const values = (page, flow, words) =>
  page.evaluate(
    ([flow, words]) => {
      const body = [...document.querySelectorAll(".results tbody")].find((body) => body.querySelector(".flow th").firstChild.textContent.trim() === flow);
      const row = [...body.querySelectorAll("tr")].find((row) => row.querySelector("th").firstChild.textContent.trim() === words);
      return [...row.querySelectorAll(".value")].map((value) => value.textContent);
    },
    [flow, words],
  );

/** Mean and interval as `airlane sim run` prints them. */
async function printed(flow, words, ...options) {
  const text = await airlane("sim", "run", ...options);
  const lines = text.split("\n");
  let at = lines.findIndex((line) => line.startsWith(`  ${flow} `));
  assert.ok(at >= 0, text);
  while (!lines[at].includes(` ${words} `)) at++;
  return lines[at].slice(lines[at].indexOf(words) + words.length).trim();
}

describe("digits", () => {
  test("of all shipped scenarios are the program's, byte by byte", { timeout: 600_000 }, async () => {
    const page = await open(`file://${site}index.html`);
    const names = (await airlane("scenario", "list")).split("\n").slice(1).map((line) => /^  ([a-z0-9-]+) /.exec(line)?.[1]).filter(Boolean);
    assert.ok(names.length > 30, names.join());
    for (const name of names) {
      const text = await readFile(`${root}scenarios/${name}.toml`, "utf8");
      const [here, there] = await Promise.all([
        page.evaluate(([text, file]) => airlaneEngine.ask({ ask: "report", world: { text, file, set: ["duration=10 s"] }, runs: 2 }, 0), [text, `${name}.toml`]),
        airlane("sim", "run", name, "--set", "duration=10 s", "--runs", "2", "--json"),
      ]);
      assert.equal(here, there, name);
    }
    await close(page);
  });
});

describe("play", () => {
  test("shows what the program prints, from a file and from `airlane lab`", async () => {
    const expected = await printed("file", "throughput", "unlabelled", "--runs", "10");
    for (const url of [`file://${site}index.html`, address]) {
      const page = await open(url);
      assert.equal((await values(page, "file", "throughput"))[1], expected);
      await close(page);
    }
  });

  test("a slider changes the numbers, and the command gives them", async () => {
    const page = await open(address);
    const before = await values(page, "file", "throughput");
    const slider = page.locator('[id="links.radio.errors.rate"]');
    await slider.focus();
    for (let n = 0; n < 5; n++) await page.keyboard.press("ArrowRight");
    await page.waitForFunction(SETTLED);
    await page.waitForFunction((before) => document.querySelector(".results .value")?.textContent !== before, before[0]);
    await page.waitForFunction(SETTLED);
    await page.getByLabel("way to keep").selectOption("1");
    const command = await page.locator(".command").textContent();
    const words = command.replaceAll("\\\n", "").match(/'[^']*'|\S+/g).map((word) => word.replaceAll("'", ""));
    assert.equal(words.shift(), "airlane");
    assert.equal((await values(page, "file", "throughput"))[1], await printed("file", "throughput", ...words.slice(2)));
    await close(page);
  });

  test("ways stand side by side", async () => {
    const page = await open(address);
    await page.getByRole("button", { name: "Add a way" }).click();
    await page.getByLabel("TCP").last().selectOption("cubic");
    await page.waitForFunction(() => document.querySelectorAll(".results thead th").length === 4);
    await page.waitForFunction(() => document.querySelectorAll(".results tbody tr:nth-child(2)")[0]?.querySelectorAll(".value").length === 3);
    assert.equal((await values(page, "file", "throughput")).length, 3);
    assert.equal(await page.locator(".charts svg[aria-label]").count(), 3);
    await close(page);
  });

  test("every repair that a way offers is one that the scenario can have", async () => {
    const page = await open(address);
    await page.getByLabel("runs").fill("1");
    const repair = page.getByRole("combobox", { name: "repair" }).last();
    const offered = await repair.locator("option").evaluateAll((all) => all.map((option) => option.value));
    assert.ok(offered.length > 8, offered.join());
    for (const value of offered) {
      await repair.selectOption(value);
      await page.waitForFunction(SETTLED);
      assert.deepEqual(await page.locator(".fault").allInnerTexts(), [], value);
    }
    await close(page);
  });

  test("a wrong text is named with its line, and a right one heals", async () => {
    const page = await open(address);
    const area = page.getByLabel("Scenario, TOML");
    const text = await area.inputValue();
    await area.fill(text.replace('rate = "20 Mbit/s"', 'rate = "20 Mbits"'));
    await page.locator(".fault pre").first().waitFor();
    const said = await page.locator(".editor + .fault pre").textContent();
    assert.match(said, /^unlabelled\.toml:19:8: /);
    await page.getByRole("button", { name: "line 19" }).click();
    const chosen = await area.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
    assert.match(chosen, /20 Mbits/);
    await area.fill(text.replace('rate = "20 Mbit/s"', 'rate = "2 Mbit/s"'));
    await page.waitForFunction(() => !document.querySelector(".fault"));
    await page.waitForFunction(SETTLED);
    assert.match((await values(page, "file", "throughput"))[1], /^1\.\d+ ± .* Mbit\/s$/);
    await close(page);
  });

  test("an application is added to the text and to the table", async () => {
    const page = await open(address);
    await page.getByLabel("add an application").selectOption("game");
    await page.waitForFunction(() => [...document.querySelectorAll(".flow th")].some((head) => head.textContent.startsWith("game-up")));
    await page.waitForFunction(SETTLED);
    assert.match(await page.getByLabel("Scenario, TOML").inputValue(), /name = "game-down"/);
    await close(page);
  });

  test("the address holds all of it", async () => {
    const page = await open(address);
    await page.locator('[id="links.radio.delay"]').fill("120");
    await page.getByLabel("runs").fill("3");
    await page.getByLabel("runs").blur();
    await page.waitForFunction(SETTLED);
    await page.waitForFunction(() => document.querySelector("[role=status].small")?.textContent.startsWith("3 runs"));
    const [url, shown] = [page.url(), await values(page, "file", "throughput")];
    assert.ok(url.length < 400, url);
    const again = await open(url);
    assert.deepEqual(await values(again, "file", "throughput"), shown);
    await close(again);
    await close(page);
    const broken = await open(`${address}#AAAA`);
    assert.match(await broken.locator("[role=alert]").textContent(), /holds no scenario/);
    await close(broken);
  });

  test("what is kept is the scenario and the program's JSON", async () => {
    const page = await open(address);
    await page.locator('[id="links.radio.delay"]').fill("150");
    await page.waitForFunction(SETTLED);
    await page.getByLabel("way to keep").selectOption("1");
    const download = async (name) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).last().click()]);
      return download.path();
    };
    const toml = await download("TOML");
    const json = await readFile(await download("JSON"), "utf8");
    assert.equal(await airlane("sim", "run", toml, "--runs", "10", "--json"), json);
    const picture = page.locator("figure.chart").first();
    const [svg] = await Promise.all([page.waitForEvent("download"), picture.getByRole("button", { name: "SVG" }).click()]);
    assert.match(await readFile(await svg.path(), "utf8"), /^<svg[^>]*xmlns/);
    const [png] = await Promise.all([page.waitForEvent("download"), picture.getByRole("button", { name: "PNG" }).click()]);
    assert.equal((await readFile(await png.path())).subarray(1, 4).toString(), "PNG");
    await close(page);
  });

  test("a packet's ladder tells its loss and its repair", async () => {
    const page = await open(address);
    await page.getByLabel("way of the packet").selectOption("1");
    await page.getByLabel(/of file, after/).fill("5");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.locator("svg.ladder").waitFor();
    const told = await page.locator("svg.ladder").textContent();
    assert.match(told, /lost/);
    assert.match(told, /retransmission|copy|parity/);
    await close(page);
  });

  test("a scenario that runs away is stopped at once", async () => {
    const page = await open(address);
    await page.getByLabel("Scenario, TOML").fill((await readFile(`${root}scenarios/unlabelled.toml`, "utf8")).replace('duration = "30 s"', 'duration = "1000000 s"'));
    await page.getByRole("button", { name: "Stop" }).click({ timeout: 5000 });
    await page.waitForFunction(() => document.querySelector("header .busy")?.textContent === "");
    await page.getByRole("button", { name: "as shipped" }).click();
    await page.waitForFunction(SETTLED);
    await page.waitForFunction(() => document.querySelectorAll(".results .value").length > 4);
    await close(page);
  });
});

describe("for everybody", () => {
  test("axe finds nothing serious, in light, in dark and on a phone", async () => {
    for (const options of [{}, { colorScheme: "dark" }, { viewport: { width: 360, height: 740 } }]) {
      const page = await open(`file://${site}index.html`, options);
      await isForEverybody(page);
      await close(page);
    }
  });
});

describe("the served page", () => {
  test("is the files of the site with a strict policy", async () => {
    for (const name of ["index.html", "lab.css", "lab.js", "simulator.js"]) {
      const answer = await fetch(`${address}${name}`);
      assert.equal(await answer.text(), await readFile(`${site}${name}`, "utf8"), `${name}: the program was built before the page`);
      assert.match(answer.headers.get("content-security-policy"), /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval';/);
    }
  });
});
