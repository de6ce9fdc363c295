import { render } from "preact";
import { App } from "./app";
import { Engine } from "./engine";
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
// For tests, and for whoever asks from the browser's console.
globalThis.airlaneEngine = engine;
render(<App engine={engine} ready={ready} />, document.getElementById("lab")!);
