import { render } from "preact";
import { Engine } from "./engine";
import { Lab } from "./lab";
import { hasNode, takeToken } from "./node";
import { SCENARIOS } from "./scenarios";
import "./lab.css";

declare global {
  var airlaneSimulator: string | undefined;
  var airlaneSimulatorIsHere: (() => void) | undefined;
  var airlaneEngine: Engine | undefined;
}

/** `simulator.js` comes beside the page and after it. */
const here = new Promise<string>((resolve, reject) => {
  if (globalThis.airlaneSimulator) return resolve(globalThis.airlaneSimulator);
  globalThis.airlaneSimulatorIsHere = () => resolve(globalThis.airlaneSimulator!);
  const script = document.querySelector('script[src="simulator.js"]');
  script?.addEventListener("error", () => reject(new Error("simulator.js is not beside the page; `make site` makes it")));
});

const engine = new Engine();
const ready = here.then(async (base64) => {
  await engine.start(base64);
  const { scenarios, glossary } = await engine.ask({ ask: "shipped" }, 0);
  for (const [name, text] of scenarios) SCENARIOS.set(name, text);
  return glossary;
});
const watches = takeToken() || location.hash === "";
// Before anybody else takes it for the address of a scenario.
addEventListener("hashchange", (event) => {
  if (!takeToken()) return;
  event.stopImmediatePropagation();
  location.reload();
});
// For tests, and for whoever asks from the browser's console.
globalThis.airlaneEngine = engine;
render(<Lab engine={engine} ready={ready} node={hasNode()} watches={watches} />, document.getElementById("lab")!);
