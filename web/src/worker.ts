// One simulator. It gets the program as the text of `simulator.js` or as a compiled module, then questions.

import { XzReadableStream } from "xz-decompress";

interface Simulator {
  memory: WebAssembly.Memory;
  airlane_reserve(length: number): number;
  airlane_ask(): number;
  airlane_answer(): number;
  airlane_answer_len(): number;
}

type Message = { id: number } & (
  | { compile: string }
  | { module: WebAssembly.Module }
  | { question: Blob | string }
);

const scope = self as unknown as {
  onmessage: (event: MessageEvent<Message>) => void;
  postMessage(message: unknown): void;
};
let module: WebAssembly.Module | undefined;
let simulator: Simulator | undefined;

/** Where the browser keeps the unpacked simulator; nowhere for a page that is a file. */
async function keeper(base64: string): Promise<{ cache: Cache; address: string } | undefined> {
  if (!/^https?:/.test(self.origin)) return undefined;
  try {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(base64));
    const name = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return { cache: await caches.open("airlane-simulator"), address: `${self.origin}/simulator/${name}.wasm` };
  } catch {
    return undefined;
  }
}

/** Browsers unpack gzip by themselves, but the simulator is a third shorter as xz. */
async function unpack(base64: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new Response(new XzReadableStream(new Blob([packed]).stream())).arrayBuffer();
}

/** Compiles the simulator and says so; then keeps what had to be unpacked, which takes longer than compiling. */
async function compile(base64: string, done: (module: WebAssembly.Module) => void): Promise<void> {
  const kept = await keeper(base64);
  const found = await kept?.cache.match(kept.address).catch(() => undefined);
  const whole = found && (await WebAssembly.compileStreaming(found).catch(() => undefined));
  if (whole) return done(whole);
  const bytes = await unpack(base64);
  done(await WebAssembly.compile(bytes));
  if (!kept) return;
  for (const old of await kept.cache.keys()) await kept.cache.delete(old);
  await kept.cache.put(kept.address, new Response(bytes, { headers: { "Content-Type": "application/wasm" } }));
}

function answered(length: number): string {
  const { memory, airlane_answer } = simulator!;
  return new TextDecoder().decode(new Uint8Array(memory.buffer, airlane_answer(), length));
}

async function ask(question: Blob | string): Promise<string> {
  if (!module) throw new Error("the simulator is not there yet");
  simulator ??= new WebAssembly.Instance(module).exports as unknown as Simulator;
  const bytes = new Uint8Array(await new Blob([question]).arrayBuffer());
  const place = simulator.airlane_reserve(bytes.length);
  new Uint8Array(simulator.memory.buffer, place, bytes.length).set(bytes);
  try {
    return answered(simulator.airlane_ask());
  } catch (trap) {
    let said = "";
    try {
      said = answered(simulator.airlane_answer_len());
    } catch {
      // Nothing was said.
    }
    // What is left of an instance that panicked can be in any state.
    simulator = undefined;
    const text = `the simulator has a defect: ${said || trap}`;
    return JSON.stringify({ error: { text, problems: [] } });
  }
}

scope.onmessage = async ({ data }) => {
  try {
    if ("compile" in data) {
      await compile(data.compile, (module) => scope.postMessage({ id: data.id, module })).finally(() => self.close());
    } else if ("module" in data) {
      module = data.module;
    } else {
      scope.postMessage({ id: data.id, answer: await ask(data.question) });
    }
  } catch (error) {
    scope.postMessage({ id: data.id, failed: String(error) });
  }
};
