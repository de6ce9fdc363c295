// The page in Chromium: what it shows, and that its digits are the program's.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
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

  test("of ten figures and of the verdicts on them are the program's", { timeout: 600_000 }, async () => {
    const page = await visit(browser, `file://${site}index.html#figure=balakrishnan-1997/peak`);
    await page.getByRole("button", { name: "Simulate the figure" }).waitFor();
    const set = ["duration=\"5 s\""];
    const figures = await page.evaluate(async (set) => {
      const found = [];
      for (const work of (await airlaneEngine.ask({ ask: "works" }, 0)).filter(({ published }) => published)) {
        let left = 2;
        for (const { id } of work.figures) {
          if (left === 0) break;
          const figure = { work: work.id, study: id, set };
          const { worlds } = await airlaneEngine.ask({ ask: "figure", figure }, 0);
          if (worlds.length < 2 || worlds.length > 30) continue;
          const runs = [0, 1].flatMap((run) => worlds.map(({ text }) => airlaneEngine.asText({ ask: "measure", world: { text, file: id, set: [] }, run }, 0)));
          const records = (await Promise.all(runs)).join(",");
          const outcome = await airlaneEngine.ask({ ask: "judge", figure, runs: 2 }, 0, undefined, ["[", records, "]"]);
          found.push([figure, outcome, await airlaneEngine.ask({ ask: "curves", figure }, 0)]);
          left--;
        }
      }
      return found;
    }, set);
    assert.equal(figures.length, 10);
    assert.ok(figures.some(([, , curves]) => curves !== null), "no curves were compared");
    const folder = mkdtempSync(`${tmpdir()}/airlane-figures-`);
    for (const [{ work, study }, here, curves] of figures) {
      const out = `${folder}/${work}-${study}`;
      await airlane("study", "run", `${work}/${study}`, "--runs", "2", "--set", set[0], "--out", out);
      const there = JSON.parse(await readFile(`${out}/${work}/outcome.json`, "utf8"));
      const { figure, over_time: overTime } = here.studies[0];
      assert.ok(here.claims.length + here.apart.length + (figure?.panels.length ?? 0) + (overTime?.panels.length ?? 0) > 0);
      assert.equal(curves === null, overTime === undefined, `${work}/${study}`);
      if (overTime) assert.equal(curves, await readFile(`${out}/${work}/${overTime.name}.csv`, "utf8"), `${work}/${study}`);
      for (const part of Object.keys(here)) assert.deepEqual(here[part], there[part], `${work}/${study}: ${part}`);
    }
    rmSync(folder, { recursive: true });
    await close(page);
  });
});

describe("reproduce", () => {
  test("a figure is simulated and judged, changed by a slider, and opened by itself", async () => {
    const page = await visit(browser, `${address}#figure=balakrishnan-1997/peak`);
    await page.getByRole("button", { name: "Simulate the figure" }).click();
    const claims = page.getByRole("region", { name: "Claims" });
    const verdicts = () => claims.locator("table.claims > tbody > tr > td:nth-child(4)").allInnerTexts();
    await page.waitForFunction(() => document.querySelector("progress")?.value === document.querySelector("progress")?.max && [...document.querySelectorAll("header .busy")].every((busy) => busy.textContent === ""));
    const before = await verdicts();
    assert.ok(before.length > 0 && before.every((verdict) => /holds|consistent|near|misses|inconsistent/.test(verdict)), before.join());
    // The runs of the committed verdicts are the default, so that both columns say the same.
    assert.deepEqual(before, await claims.locator("table.claims > tbody > tr > td:nth-child(3)").allInnerTexts());
    await claims.getByText(/comparisons?$/).first().click();
    await claims.locator("svg.beside").first().waitFor();
    const drawn = () => page.locator("figure.chart svg").first().innerHTML();
    await page.locator("figure.chart svg").first().waitFor();
    const picture = await drawn();
    await isForEverybody(page);

    const rate = page.locator("aside input[type=range]").first();
    await rate.focus();
    for (let n = 0; n < 30; n++) await page.keyboard.press("ArrowLeft");
    await page.waitForFunction((before) => {
      const svg = document.querySelector("figure.chart svg");
      return svg && svg.innerHTML !== before;
    }, picture);
    assert.match(await page.getByRole("region", { name: "Command" }).last().innerText(), /airlane study run balakrishnan-1997\/peak --runs 3 \\\n {2}--set 'links\./);

    await page.getByRole("button", { name: "All sliders as published" }).click();
    await page.getByRole("button", { name: "Open it in Simulate" }).click();
    await page.waitForFunction(SETTLED);
    assert.match(await page.getByLabel("Scenario, TOML").inputValue(), /^name = "balakrishnan-1997"/m);
    assert.match(new URL(page.url()).hash, /^#[\w-]{20,}$/);
    await close(page);
  });

  test("the whole band of a published value is drawn, also above everything else", async () => {
    const page = await visit(browser, `${address}#figure=gopal-2007/X10`);
    await page.getByLabel("runs").fill("1");
    await page.getByRole("button", { name: "Simulate the figure" }).click();
    const band = page.locator("figure.chart path.published").first();
    await band.waitFor({ state: "attached" });
    // The published value is its line, which stands in the middle.
    const middles = await band.evaluate((path) => [path, path.nextElementSibling].map((one) => one.getBBox().y + one.getBBox().height / 2));
    assert.ok(Math.abs(middles[0] - middles[1]) < 1, middles.join());
    await close(page);
  });

  test("a verdict stands in the row of its claim", async () => {
    const page = await visit(browser, `${address}#figure=balakrishnan-1997/T2`);
    const near = page.locator("table.claims .verdict.near").first();
    await near.waitFor();
    const [verdict, cell] = await Promise.all([near.boundingBox(), near.locator("xpath=..").boundingBox()]);
    assert.ok(verdict.y >= cell.y && verdict.y + verdict.height <= cell.y + cell.height, JSON.stringify([verdict, cell]));
    await close(page);
  });

  test("a figure that does not exist is said, and another one chosen", async () => {
    const page = await visit(browser, `${address}#figure=balakrishnan-1997/F99`);
    await page.getByRole("alert").getByText("no figure balakrishnan-1997/F99").waitFor();
    await page.getByLabel("work").selectOption("ludwig-1999");
    await page.getByRole("button", { name: "Simulate the figure" }).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.waitForFunction(() => location.hash.startsWith("#figure=ludwig-1999/"));
    await close(page);
  });
});

describe("starts", () => {
  const from = async (page, what) => {
    await page.getByText("start from your own link").click();
    await page.getByLabel("what you have").selectOption(what);
  };
  const go = async (page) => {
    await page.getByRole("button", { name: "Simulate it" }).click();
    await page.waitForFunction(SETTLED);
  };

  test("settings of tc become the scenario of `airlane scenario from-netem`", async () => {
    const page = await visit(browser, address);
    await from(page, "tc");
    const line = "tc qdisc add dev eth0 root netem delay 40ms loss 2% rate 10mbit";
    await page.getByLabel("what you type").fill("tc qdisc add dev eth0 root netem delay fast");
    await page.getByRole("button", { name: "Simulate it" }).click();
    await page.getByRole("alert").getByText("fast").waitFor();
    await page.getByLabel("what you type").fill(line);
    await go(page);
    await page.waitForFunction(() => document.querySelector("[aria-label='Scenario, TOML']").value.includes("40 ms"));
    assert.equal(await page.getByLabel("Scenario, TOML").inputValue(), await airlane("scenario", "from-netem", line, "--app", "file,web,voice"));
    const reverse = "tc qdisc add dev eth0 root netem delay 70ms";
    await page.getByLabel("the same of the other direction").fill(reverse);
    await go(page);
    await page.waitForFunction(() => document.querySelector("[aria-label='Scenario, TOML']").value.includes("70 ms"));
    assert.equal(await page.getByLabel("Scenario, TOML").inputValue(), await airlane("scenario", "from-netem", line, "--reverse", reverse, "--app", "file,web,voice"));
    // What a link here cannot do as netem does is said.
    await page.locator(".group .warning").first().waitFor();
    await close(page);
  });

  test("a live file is tried on the link that one states", async () => {
    const page = await visit(browser, address);
    await from(page, "live");
    assert.ok(await page.getByRole("button", { name: "Simulate it" }).isDisabled());
    const text = `schema = 1
name = "hill-top"
tun = { addresses = ["10.7.0.1/24"] }
[link]
underlay = { kind = "udp", listen = "0.0.0.0:7007" }
security = { private-key = "hill-top.key", peer-key = "TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=" }
[[link.services]]
number = 1
name = "mine"
goal = "bulk"
`;
    await page.getByLabel("live file", { exact: true }).setInputFiles({ name: "hill-top.toml", mimeType: "text/plain", buffer: Buffer.from(text) });
    await page.getByLabel("rate of the link").fill("6 Mbit/s");
    await page.getByLabel("lost frames").fill("4");
    await page.getByRole("button", { name: "Simulate it" }).click();
    const scenario = await page.waitForFunction(() => {
      const { value } = document.querySelector("[aria-label='Scenario, TOML']");
      return value.includes("mine") && value;
    });
    // The same numbers as the program's for this text.
    const folder = mkdtempSync(`${tmpdir()}/airlane-start-`);
    writeFileSync(`${folder}/live-file.toml`, await scenario.jsonValue());
    await page.getByLabel("runs").fill("2");
    await page.getByLabel("runs").blur();
    // The table of the scenario before stays until there is a run of this one.
    await page.waitForFunction(() => [...document.querySelectorAll(".flow th")].some((head) => head.textContent.startsWith("file-1")));
    await page.waitForFunction(SETTLED);
    await page.waitForFunction(() => document.querySelector("#results ~ [role=status]")?.textContent.startsWith("2 runs"));
    assert.equal((await values(page, "file-1", "throughput"))[0], await printed("file-1", "throughput", `${folder}/live-file.toml`, "--runs", "2"));
    rmSync(folder, { recursive: true });
    await close(page);
  });
});

describe("completion", () => {
  test("suggests keys, kinds and units by keys alone, and what it writes can be read", async () => {
    const page = await open(address);
    const area = page.getByLabel("Scenario, TOML");
    const text = await area.inputValue();
    const offered = async () => {
      await page.getByRole("listbox").waitFor();
      return page.getByRole("listbox").getByRole("option").evaluateAll((all) => all.map((option) => option.textContent));
    };
    // A unit.
    const wrong = text.replace('rate = "20 Mbit/s"', 'rate = "2 M');
    await area.fill(wrong);
    await area.evaluate((area) => {
      const at = area.value.indexOf('"2 M') + 4;
      area.setSelectionRange(at, at);
    });
    await page.keyboard.press("Control+Space");
    assert.deepEqual(await offered(), ['"2 bit/s"', '"2 kbit/s"', '"2 Mbit/s"', '"2 Gbit/s"'].filter((unit) => unit.includes("2 M")));
    await page.keyboard.press("Enter");
    const whole = text.replace('rate = "20 Mbit/s"', 'rate = "2 Mbit/s"');
    await page.waitForFunction((whole) => document.activeElement?.value === whole, whole);
    await page.waitForFunction(SETTLED);
    // A key of the link, then its kind, both chosen by arrows.
    await area.fill(text.replace("[links.radio]\n", "[links.radio]\nout"));
    await area.evaluate((area) => {
      const at = area.value.indexOf("[links.radio]\nout") + "[links.radio]\nout".length;
      area.setSelectionRange(at, at);
    });
    await page.keyboard.press("Control+Space");
    assert.deepEqual(await offered(), ["outages"]);
    await isForEverybody(page);
    await page.keyboard.press("Escape");
    await page.getByRole("listbox").waitFor({ state: "detached" });
    const errors = text.replace(/^errors = .*$/m, "errors = ");
    assert.notEqual(errors, text);
    await area.fill(errors);
    await area.evaluate((area) => {
      const at = area.value.indexOf("errors = ") + "errors = ".length;
      area.setSelectionRange(at, at);
    });
    await page.keyboard.press("Control+Space");
    const kinds = await offered();
    assert.ok(kinds.includes('{ kind = "gilbert-elliott" }') && kinds.length > 8, kinds.join());
    for (let n = 0; n < kinds.indexOf('{ kind = "uniform" }'); n++) await page.keyboard.press("ArrowDown");
    await page.waitForFunction(() => {
      const active = document.activeElement?.getAttribute("aria-activedescendant");
      return document.getElementById(active)?.textContent === '{ kind = "uniform" }';
    });
    await page.keyboard.press("Enter");
    await page.waitForFunction(SETTLED);
    await page.waitForFunction(() => !document.querySelector(".fault"));
    await page.waitForFunction(() => /^errors = \{ kind = "uniform", rate = [0-9.]+ \}$/m.test(document.activeElement?.value));
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

  test("the beginning of a run is shown as such, until the whole run is there", async () => {
    const page = await open(address);
    await page.locator("aside select").first().selectOption("live-link");
    await page.getByLabel("runs").fill("1");
    await page.getByLabel("runs").blur();
    await page.waitForFunction(SETTLED);
    await page.evaluate(() => {
      globalThis.told = [];
      const note = () => globalThis.told.push(document.querySelector("#results ~ [role=status]").textContent);
      new MutationObserver(note).observe(document.querySelector(".results").closest("section"), { childList: true, subtree: true, characterData: true });
    });
    const slider = page.locator('[id="links.radio.errors.rate"]');
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => {
      const begun = globalThis.told.findIndex((told) => told.startsWith("the beginning of one run; 0 of 1 runs"));
      return begun >= 0 && globalThis.told.indexOf("1 run", begun) > begun;
    });
    await page.waitForFunction(SETTLED);
    const command = await page.locator(".command").textContent();
    const words = command.replaceAll("\\\n", "").match(/'[^']*'|\S+/g).map((word) => word.replaceAll("'", ""));
    assert.equal((await values(page, "file", "throughput"))[0], await printed("file", "throughput", ...words.slice(3)));
    await close(page);
  });

  test("ways stand side by side", async () => {
    const page = await open(address);
    await page.getByRole("button", { name: "Add a way" }).click();
    await page.getByLabel("TCP").last().selectOption("cubic");
    await page.waitForFunction(() => document.querySelectorAll(".results thead th").length === 4);
    await page.waitForFunction(() => document.querySelectorAll(".results tbody tr:nth-child(2)")[0]?.querySelectorAll(".value").length === 3);
    assert.equal((await values(page, "file", "throughput")).length, 3);
    const bars = await page.locator(".results .bar").evaluateAll((all) => all.slice(0, 3).map((bar) => Math.round(bar.getBoundingClientRect().width / 8)));
    assert.equal(new Set(bars).size, 1, `bars of one line have one scale: ${bars}`);
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
    const said = await page.locator('section[aria-labelledby="text"] .fault pre').textContent();
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
    const kept = async (place) => {
      const [svg] = await Promise.all([page.waitForEvent("download"), place.getByRole("button", { name: "SVG" }).click()]);
      return readFile(await svg.path(), "utf8");
    };
    const chart = await kept(picture);
    assert.match(chart, /^<svg[^>]*xmlns/);
    assert.match(chart, /<path class="curve" [^>]*stroke="rgb/);
    // The page's colours are known to nobody else.
    assert.doesNotMatch(chart, /var\(/);
    await page.getByRole("button", { name: "Dark or light" }).click();
    assert.notEqual(await kept(picture), chart);
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
    const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("region", { name: "A packet on its way" }).getByRole("button", { name: "SVG" }).click()]);
    assert.match(await readFile(await svg.path(), "utf8"), /<line [^>]*stroke="rgb/);
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

  test("keeps the unpacked simulator, and survives a kept one that is broken", async () => {
    const page = await open(address);
    const kept = () => page.evaluate(async () => {
      const cache = await caches.open("airlane-simulator");
      const all = await Promise.all((await cache.keys()).map(async (key) => (await cache.match(key)).arrayBuffer()));
      return all.map((bytes) => bytes.byteLength);
    });
    const waitForKept = async (least) => {
      for (let tries = 0; tries < 100 && !(await kept()).some((bytes) => bytes > least); tries++) await page.waitForTimeout(100);
      return kept();
    };
    const [whole, ...others] = await waitForKept(1_000_000);
    assert.ok(whole > 1_000_000 && others.length === 0, `${whole} ${others}`);
    await page.reload();
    await page.waitForFunction(SETTLED);
    await page.evaluate(async () => {
      const cache = await caches.open("airlane-simulator");
      for (const key of await cache.keys()) await cache.put(key, new Response("broken", { headers: { "Content-Type": "application/wasm" } }));
    });
    await page.reload();
    await page.waitForFunction(SETTLED);
    assert.deepEqual(await waitForKept(1_000_000), [whole]);
    await close(page);
  });
});
