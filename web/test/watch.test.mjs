// A live node on the page, and what the page may do to it.
//
//  left: air0 ─ up ─ wire ═══ one [ air: 3 Mbit/s, 20 ms, 5 % loss ] two ═══ wire ─ up ─ air0 :right
//
// The lab watches `left` from outside of its namespace, by its control socket.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { after, before, describe, test } from "node:test";
import { chromium as playwright } from "playwright-core";
import { airlane, chromium, close, isForEverybody, PATIENCE, program, serve, visit } from "./common.mjs";

if (!chromium) throw new Error("Chromium is missing, so nobody has looked at the page: sudo apt-get install chromium");

/** A group that each Debian has. */
const GROUP = "users";
let browser;

before(async () => {
  browser = await playwright.launch({ executablePath: chromium, args: ["--no-sandbox"] });
});
after(() => browser?.close());

describe("without a node", () => {
  let lab;
  before(async () => {
    lab = await serve("/nowhere/hill-top.sock");
  });
  after(() => lab?.kill());

  test("a node that is not there is said, and the token is not left in the address", async () => {
    const page = await visit(browser, lab.address);
    await page.getByRole("alert").getByText("no node answers there").waitFor();
    assert.equal(new URL(page.url()).hash, "");
    // What this tab knows is still known after the page is loaded again.
    await page.reload();
    await page.getByRole("alert").getByText("no node answers there").waitFor();
    await isForEverybody(page);
    await close(page);
  });

  test("a wrong token, or none, is refused in a sentence, and the right one heals", async () => {
    const [base] = lab.address.split("#");
    for (const hash of ["#watch=0123456789abcdef", ""]) {
      const page = await visit(browser, `${base}${hash}`);
      const alert = page.getByRole("alert");
      await alert.getByText("open the address that `airlane lab` printed").waitFor();
      const asked = [];
      page.on("request", (request) => request.url().startsWith(base) && asked.push(request.url()));
      await new Promise((resolve) => setTimeout(resolve, 2500));
      assert.deepEqual(asked, [], "a page that was refused asks no more");
      assert.ok(page.wrong.every((line) => line.includes("403")), page.wrong.join());
      page.wrong.length = 0;
      await page.evaluate((address) => location.assign(address), lab.address);
      await alert.getByText("no node answers there").waitFor();
      await close(page);
    }
  });

  test("the simulator is one tab further, by keys alone, and its address is its own", async () => {
    const page = await visit(browser, lab.address);
    await page.getByRole("alert").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Simulate");
    await page.keyboard.press("Enter");
    await page.locator(".results .value").first().waitFor();
    assert.match(new URL(page.url()).hash, /^#[\w-]{20,}$/);
    await close(page);
  });

  test("a lab that has ended is said", async () => {
    const other = await serve("/nowhere/hill-top.sock");
    const page = await visit(browser, other.address);
    await page.getByRole("alert").waitFor();
    other.kill();
    await page.getByText("`airlane lab` does not answer").waitFor();
    assert.ok(page.wrong.every((line) => line.includes("ERR_")), page.wrong.join());
    page.wrong.length = 0;
    await close(page);
  });
});

describe("a page that watches for long", () => {
  let lab;
  before(async () => {
    lab = await serve("/nowhere/hill-top.sock");
  });
  after(() => lab?.kill());

  test("draws one chart in a task, so that its user is heard in between", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const names = ["files", "pages", "calls", "interactive", "video", "paced"];
    let now = 600;
    await page.route("**/node/state", (route) => {
      now += 1;
      const point = (at) => ({ at_s: at, sent_bps: 1e6 * (1 + Math.sin(at / 9)), delivered_bps: 9e5 * (1 + Math.cos(at / 7)), delay_s: 0.02 + 0.01 * Math.sin(at), lost_before_repair: 0.05, lost_after_repair: 0.001 });
      const history = names.map((service) => ({ service, points: Array.from({ length: 600 }, (_, at) => point(now - 600 + at)) }));
      const status = { name: "hill-top", peers: [], drops: {} };
      const peer = { name: "farm", head: "", losses: [null, null], flows: null, history, without_history: 0 };
      return route.fulfill({ json: { file: null, socket: "hill-top.sock", at_s: now, away: null, status, head: null, findings: [], callers: [], peer, read_only: null, happened: [], advice: { is: "none" } } });
    });
    await page.addInitScript(() => {
      globalThis.tasks = [];
      globalThis.long = [];
      new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
      // What one task has changed is told together, after it.
      const seen = (records) => {
        const places = new Set(records.map(({ target }) => target).filter((target) => target.classList?.contains("picture")));
        if (places.size > 0) tasks.push(places.size);
      };
      new MutationObserver(seen).observe(document, { childList: true, subtree: true });
    });
    await page.goto(lab.address);
    await page.locator(".watch figure svg").nth(4).waitFor();
    await page.waitForFunction(() => tasks.length >= 25);
    const { tasks, long } = await page.evaluate(() => ({ tasks, long }));
    assert.ok(tasks.every((pictures) => pictures === 1), `pictures drawn in a task: ${tasks.join()}`);
    console.error(`watch, six services and ten minutes: ${tasks.length} charts, tasks over 50 ms: ${long.map(Math.round).join(" ") || "none"}`);
    // All of the lines are there, and no table that nobody has opened.
    assert.equal(await page.locator(".watch figure").first().locator("path.curve").count(), 6);
    assert.equal(await page.locator(".watch figure table").count(), 0);
    await context.close();
  });
});

const isRoot = process.getuid() === 0 && spawnSync("ip", ["-V"]).status === 0;
if (!isRoot) console.error("SKIPPED: network namespaces need root and iproute2, so no live node was watched");

describe("a node in a namespace", { skip: !isRoot }, () => {
  const folder = mkdtempSync(`${tmpdir()}/airlane-watch-`);
  const [left, middle, right] = ["left", "middle", "right"].map((name) => `airlane-${process.pid}-${name}`);
  const running = [];
  let lab;
  let member;

  const ip = (...words) => execFileSync("ip", words, { stdio: ["ignore", "ignore", "inherit"] });
  const start = (namespace, ...words) => {
    const child = spawn("ip", ["netns", "exec", namespace, ...words], { stdio: ["ignore", "ignore", "ignore"] });
    running.push(child);
    return child;
  };
  const ended = (child) => new Promise((resolve) => (child.exitCode ?? child.signalCode) !== null ? resolve() : child.once("exit", resolve));
  const end = async (child) => {
    child.kill();
    await ended(child);
  };
  const up = (end) => start([left, right][end], program, "up", `${folder}/end-${end}.toml`);
  const status = async (end) => {
    try {
      return JSON.parse(await airlane("status", `${folder}/${end}.sock`, "--json"));
    } catch {
      return undefined;
    }
  };
  const until = async (what, holds) => {
    const deadline = Date.now() + PATIENCE;
    while (!(await holds())) {
      assert.ok(Date.now() < deadline, what);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  /** Datagrams to a port of the other end, so many each 10 ms. */
  const send = (end, port, many, bytes) => {
    const script = `const s = require("dgram").createSocket("udp4"); const b = Buffer.alloc(${bytes});
      setInterval(() => { for (let n = 0; n < ${many}; n++) s.send(b, ${port}, "10.7.0.${2 - end}"); }, 10); s.on("error", () => {});`;
    return start([left, right][end], process.execPath, "-e", script);
  };
  let node;

  before(async () => {
    chmodSync(folder, 0o755);
    for (const namespace of [left, middle, right]) {
      ip("netns", "add", namespace);
      ip("-n", namespace, "link", "set", "lo", "up");
    }
    const keys = await Promise.all(
      [0, 1].map(async (end) => {
        await airlane("keygen", `${folder}/${end}.key`);
        return (await airlane("keygen", "--public", `${folder}/${end}.key`)).trim();
      }),
    );
    for (const [end, namespace, port] of [[0, left, "one"], [1, right, "two"]]) {
      ip("link", "add", "wire", "netns", namespace, "type", "veth", "peer", "name", port, "netns", middle);
      ip("-n", namespace, "addr", "add", `192.0.2.${end + 1}/24`, "dev", "wire");
      ip("-n", namespace, "link", "set", "wire", "up");
      ip("-n", middle, "link", "set", port, "up");
      const text = `schema = 1
name = "end-${end}"
control = { socket = "${folder}/${end}.sock", group = "${GROUP}" }
tun = { addresses = ["10.7.0.${end + 1}/24"] }
# a link for calls
[link]
rate = "3 Mbit/s"
underlay = { kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.${2 - end}:7007" }
security = { private-key = "${end}.key", peer-key = "${keys[1 - end]}" }
[[link.services]]
number = 1
name = "plain"
rate = 1.0
scheme = { kind = "default" }
[[link.classes]]
match = { behaves = "call" }
service = "plain"
`;
      writeFileSync(`${folder}/end-${end}.toml`, text);
    }
    writeFileSync(`${folder}/air.toml`, `schema = 1
name = "radio"
seed = 1
interfaces = ["one", "two"]
rate = "3 Mbit/s"
delay = "20 ms"
queue = "60 kB"
errors = { kind = "uniform", rate = 0.05 }
`);
    start(middle, program, "air", `${folder}/air.toml`);
    node = up(0);
    up(1);
    await until("the session is confirmed", async () => (await status(0))?.peers[0].session.state === "confirmed");
    lab = await serve(`${folder}/end-0.toml`);
  });

  after(async () => {
    for (const served of [lab, member]) served?.kill();
    await Promise.all(running.map(end));
    for (const namespace of [left, middle, right]) spawnSync("ip", ["netns", "del", namespace]);
    rmSync(folder, { recursive: true, force: true });
  });

  test("is shown with its peer, its flows, and what has become of their packets", async () => {
    const call = [send(0, 5004, 1, 160), send(1, 5004, 1, 160)];
    const page = await visit(browser, lab.address);
    await page.getByText("the session with peer at 192.0.2.2:7007 is confirmed").waitFor();
    const row = page.getByRole("row").filter({ hasText: "→ 10.7.0.2:5004" });
    await row.waitFor();
    assert.match(await row.innerText(), /plain|default/);
    // Why: in the node's words, as `airlane flows` has them.
    // Its file names it as well as its socket does.
    const [{ flows }] = JSON.parse(await airlane("flows", `${folder}/end-0.toml`, "--json"));
    const known = flows.find(({ there }) => there === "10.7.0.2:5004");
    // The mean gap changes meanwhile.
    await row.getByText(new RegExp(known.why.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\d+/g, "\\d+"))).waitFor();
    const delivered = async () => Number(await page.getByRole("region", { name: "Services" }).locator("tr", { hasText: "1 plain" }).locator("td").nth(4).innerText());
    const first = await delivered();
    await until("the page goes on by itself", async () => (await delivered()) > first + 50);
    const table = page.locator("figure", { hasText: "Received from peer" });
    await table.getByText("Table", { exact: true }).click();
    // 100 datagrams a second of 188 B with their headers, of which 5 % are lost. Their service has a column of its own,
    // beside that of the service that carried them until their flow was known.
    await until("the throughput of a second is there", async () => {
      const cells = await table.locator("tbody td").allInnerTexts();
      return cells.some((bps) => Number(bps) > 90_000 && Number(bps) < 200_000);
    });
    await Promise.all(call.map(end));
    await close(page);
  });

  test("that goes away and comes back is said and survived", async () => {
    const page = await visit(browser, lab.address);
    await page.getByText("is confirmed").first().waitFor();
    await end(node);
    const alert = page.getByRole("alert");
    await alert.getByText("has not answered for").waitFor();
    await page.getByText("The figures below are the last ones").waitFor();
    node = up(0);
    await until("the alert is gone", async () => (await alert.count()) === 0);
    await page.getByText("What happened").click();
    await page.getByText("the node answers again").waitFor();
    await page.getByText("the node was started again").waitFor();
    await page.getByText("is confirmed").first().waitFor();
    await close(page);
  });

  test("gets what is advised by two clicks, and not by one", { timeout: 400_000 }, async () => {
    const load = [send(0, 5006, 4, 1000), send(1, 5006, 4, 1000)];
    await until("the session is confirmed", async () => (await status(0))?.peers[0].session.state === "confirmed");
    await Promise.all([0, 1].map((end) => airlane("record", `${folder}/${end}.trace`, `${folder}/${end}.sock`, "--for", "15s")));
    await Promise.all(load.map(end));
    const services = async () => (await status(0)).peers[0].services.filter(({ draining }) => !draining).map(({ name }) => name).join();
    const before = await services();
    const page = await visit(browser, lab.address);
    const ask = page.getByRole("button", { name: "Ask for advice" });
    await page.getByText("who uses the link").waitFor();
    assert.ok(await ask.isDisabled(), "there is nothing to ask about");
    // What is no recording is said.
    writeFileSync(`${folder}/no.trace`, "nothing");
    const recordings = page.getByLabel("recording of this end");
    await recordings.setInputFiles(`${folder}/no.trace`);
    await ask.click();
    await page.getByRole("alert").getByText("no.trace: this is no trace").waitFor();
    assert.ok(page.wrong.every((line) => line.includes("409")), page.wrong.join());
    page.wrong.length = 0;

    await recordings.setInputFiles([0, 1].map((end) => `${folder}/${end}.trace`));
    await page.getByLabel("what must hold").fill("call-loss<=2%");
    await ask.focus();
    await page.keyboard.press("Enter");
    const look = page.getByRole("button", { name: "Show what a reload would change" });
    await look.waitFor({ timeout: 300_000 });
    const advised = await page.getByRole("region", { name: "Advised changes" }).innerText();
    assert.match(advised, /Advice: take "/);
    // The words are those of the command that it names.
    const again = /Again: airlane (.*)/.exec(advised)[1].replace("0.trace", `${folder}/0.trace`).replace("1.trace", `${folder}/1.trace`);
    const words = again.match(/'[^']*'|\S+/g).map((word) => word.replaceAll("'", ""));
    const printed = await airlane(...words);
    assert.equal(printed.replaceAll(`${folder}/0.trace`, "0.trace").replaceAll(`${folder}/1.trace`, "1.trace").trim(), advised.trim());

    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save the advised file" }).click()]);
    assert.equal(saved.suggestedFilename(), "end-0.toml");
    writeFileSync(`${folder}/saved.toml`, await readFile(await saved.path(), "utf8"));
    await look.focus();
    await page.keyboard.press("Enter");
    const apply = page.getByRole("button", { name: "Apply these changes to the running node" });
    await apply.waitFor();
    const shown = await page.locator("section", { hasText: "A reload would make these changes" }).locator("ul").last().innerText();
    assert.equal(await services(), before, "one click has changed the node");
    const dry = await airlane("reload", `${folder}/saved.toml`, "--dry-run", "--json");
    assert.deepEqual(shown.split("\n").map((line) => line.trim()), JSON.parse(dry).changes);
    const there = await page.getByRole("region", { name: "At the other end" }).innerText();
    assert.match(there, /^airlane advise 0\.trace 1\.trace .* --file OTHER\.toml .* --write ADVISED\.toml\nairlane reload ADVISED\.toml --dry-run\n/);
    // The comment of the file has stayed.
    assert.match(await readFile(`${folder}/saved.toml`, "utf8"), /^# a link for calls$/m);
    await apply.focus();
    await page.keyboard.press("Enter");
    await page.getByText("The node has applied").waitFor();
    assert.notEqual(await services(), before);
    assert.deepEqual(JSON.parse(await airlane("reload", `${folder}/saved.toml`, "--dry-run", "--json")).changes, []);
    await close(page);
  });

  test("is shown to a member of its group, who cannot change it", async () => {
    // Of another user, and of the group that the file names.
    member = await serve(`${folder}/end-0.toml`, ["setpriv", "--reuid", "nobody", "--regid", GROUP, "--clear-groups"]);
    const page = await visit(browser, member.address);
    await page.getByText("is confirmed").first().waitFor();
    await page.getByText("a member of control.group may read its status").first().waitFor();
    // Advice is of the recording, so he may have it, and no more.
    await page.getByLabel("recording of this end").setInputFiles([0, 1].map((end) => `${folder}/${end}.trace`));
    await page.getByLabel("what must hold").fill("call-loss<=2%");
    await page.getByRole("button", { name: "Ask for advice" }).click();
    const look = page.getByRole("button", { name: "Show what a reload would change" });
    await look.waitFor({ timeout: 300_000 });
    assert.ok(await look.isDisabled());
    // Nor does who goes past the button get further.
    const refused = await page.evaluate(async () => {
      const headers = { "X-Airlane-Token": sessionStorage.getItem("airlane-token") };
      const answer = await fetch("node/dry-run", { method: "POST", headers });
      return [answer.status, await answer.text()];
    });
    assert.equal(refused[0], 409);
    assert.match(refused[1], /a member of control.group may read its status/);
    page.wrong.length = 0;
    await page.context().close();
  });

  test("a recorded link is simulated", async () => {
    const page = await visit(browser, lab.address);
    await page.getByRole("button", { name: "Simulate" }).click();
    await page.locator(".results .value").first().waitFor();
    await page.getByText("start from your own link").click();
    await page.getByLabel("what you have").selectOption("recording");
    await page.getByLabel("recording of airlane record").setInputFiles([0, 1].map((end) => `${folder}/${end}.trace`));
    await page.getByRole("button", { name: "Simulate it" }).click();
    await page.waitForFunction(() => document.querySelector("[aria-label='Scenario, TOML']").value.includes("the recorded link of end-0 and end-1"));
    await page.waitForFunction(() => document.querySelector("header .busy")?.textContent === "" || document.querySelectorAll(".results .value").length > 4);
    // The losses are those that `airlane trace fit` finds.
    await airlane("trace", "join", `${folder}/0.trace`, `${folder}/1.trace`, `${folder}/both.trace`);
    const { link } = JSON.parse(await airlane("trace", "fit", `${folder}/both.trace`, "--json"));
    const here = await page.evaluate(async () => {
      const { value } = document.querySelector("[aria-label='Scenario, TOML']");
      return (await airlaneEngine.ask({ ask: "outline", world: { text: value, file: "recorded-link.toml", set: [] } }, 0)).scenario.links.radio;
    });
    assert.deepEqual(here.errors.down, link.errors.down ?? link.errors);
    await close(page);
  });

  test("is for everybody: axe, dark, a phone", async () => {
    for (const [name, options] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 740 } } })) {
      const page = await visit(browser, lab.address, options);
      await page.getByText("is confirmed").first().waitFor();
      await page.locator(".watch figure svg").first().waitFor();
      await isForEverybody(page);
      if (process.env.AIRLANE_PICTURES) await page.screenshot({ path: `${process.env.AIRLANE_PICTURES}/watch-${name}.png`, fullPage: true });
      await close(page);
    }
  });
});
