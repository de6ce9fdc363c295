import type { World } from "./protocol";
import { SCENARIOS } from "./scenarios";

/** One way to carry the same applications. */
export interface Way {
  repair: string;
  tcp: string;
}

/** All that the page shows follows from this. */
export interface State {
  /** A shipped scenario. */
  scenario: string;
  /** Its text where it was edited. */
  text?: string;
  /** What was moved: path and value as `--set` takes them. */
  set: [string, string][];
  ways: Way[];
  runs: number;
}

export const MOST_WAYS = 6;
export const MOST_RUNS = 200;
const AS_WRITTEN: Way = { repair: "", tcp: "" };

export function first(): State {
  return {
    scenario: "unlabelled",
    set: [],
    ways: [{ repair: "none", tcp: "" }, AS_WRITTEN],
    runs: 10,
  };
}

export function other(scenario: string): State {
  return { scenario, set: [], ways: [AS_WRITTEN], runs: 10 };
}

/** A scenario that does not come with the page. */
export function own(scenario: string, text: string): State {
  return { ...other(scenario), text };
}

export function text(state: State): string {
  return state.text ?? SCENARIOS.get(state.scenario) ?? "";
}

/** What a file of it is called. */
export function file(state: State): string {
  return `${state.scenario}.toml`;
}

export function world(state: State, more: string[] = []): World {
  const set = state.set.map(([path, value]) => `${path}=${value}`);
  return { text: text(state), file: file(state), set: [...set, ...more] };
}

export function withSet(state: State, path: string, value: string | undefined): State {
  // What stood below a table goes with it.
  const set = state.set.filter(([other]) => other !== path && !other.startsWith(`${path}.`));
  if (value !== undefined) set.push([path, value]);
  return { ...state, set };
}

async function through(bytes: Uint8Array<ArrayBuffer>, way: ReadableWritablePair<Uint8Array, BufferSource>) {
  const stream = new Blob([bytes]).stream().pipeThrough(way);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The state as what follows `#` in an address. */
export async function address(state: State): Promise<string> {
  const plain = new TextEncoder().encode(JSON.stringify([1, state.scenario, state.text ?? 0, state.set, state.ways.map((way) => [way.repair, way.tcp]), state.runs]));
  const packed = await through(plain, new CompressionStream("deflate-raw"));
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** What an address says. Whatever others wrote into it is checked. */
export async function read(hash: string): Promise<State> {
  const wrong = new Error("this address holds no scenario; the first one is shown");
  const letters = hash.replaceAll("-", "+").replaceAll("_", "/");
  let said: unknown;
  try {
    const packed = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
    const plain = await through(packed, new DecompressionStream("deflate-raw"));
    said = JSON.parse(new TextDecoder().decode(plain));
  } catch {
    throw wrong;
  }
  if (!Array.isArray(said) || said.length !== 6) throw wrong;
  const [version, scenario, text, set, ways, runs] = said as unknown[];
  const pairs = (list: unknown): list is [string, string][] =>
    Array.isArray(list) && list.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isText));
  if (version !== 1 || !isText(scenario) || !pairs(set) || !pairs(ways)) throw wrong;
  if (ways.length < 1 || ways.length > MOST_WAYS || !Number.isInteger(runs)) throw wrong;
  if (!/^[a-z0-9-]{1,80}$/.test(scenario)) throw wrong;
  if (!(isText(text) || (text === 0 && SCENARIOS.has(scenario)))) throw wrong;
  return {
    scenario,
    ...(isText(text) ? { text } : {}),
    set,
    ways: ways.map(([repair, tcp]) => ({ repair, tcp })),
    runs: Math.max(1, Math.min(MOST_RUNS, runs as number)),
  };
}
