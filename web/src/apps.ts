import type { Json, Outline, Table } from "./protocol";

/** Applications that can be added. Speeds are those of usual codecs and games. */
const APPS: { [kind: string]: { words: string; tcp: boolean; back?: boolean; app: string } } = {
  file: { words: "file", tcp: true, app: '{ kind = "bulk" }' },
  pages: { words: "pages", tcp: true, app: '{ kind = "pages", request = "100 B", reply = "20 kB", pause = "100 ms" }' },
  call: { words: "call", tcp: false, back: true, app: '{ kind = "conferencing", packet = "160 B", rate = "64 kbit/s", talk = "1000 s", silence = "0 s" }' },
  video: { words: "video", tcp: false, app: '{ kind = "conferencing", packet = "1200 B", rate = "2.5 Mbit/s", talk = "1000 s", silence = "0 s" }' },
  game: { words: "game", tcp: false, back: true, app: '{ kind = "conferencing", packet = "80 B", rate = "38.4 kbit/s", talk = "1000 s", silence = "0 s" }' },
};

export const APP_KINDS = Object.entries(APPS).map(([kind, { words }]) => ({ kind, words }));

function toml(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (value && typeof value === "object") {
    return `{ ${Object.entries(value).map(([name, inner]) => `${name} = ${toml(inner)}`).join(", ")} }`;
  }
  return JSON.stringify(value);
}

/** The text of a scenario with one more application, between the ends of its first. */
export function withApp(text: string, outline: Outline, kind: string): string {
  const app = APPS[kind];
  const [first] = outline.scenario.flows;
  if (!app || !first) return text;
  const names = new Set(outline.scenario.flows.map((flow) => flow.name));
  const free = (name: string) => {
    let number = 1;
    while (names.has(number === 1 ? name : `${name}-${number}`)) number++;
    const found = number === 1 ? name : `${name}-${number}`;
    names.add(found);
    return found;
  };
  // As the scenario's own TCP, where it says what that is.
  const own = outline.scenario.flows.map((flow) => flow.transport as Table).find((transport) => transport.kind === "tcp");
  const said: Table = { kind: "tcp" };
  for (const name of ["profile", "variant", "congestion", "recovery", "pacing"]) {
    if (own && own[name] !== undefined && own[name] !== null) said[name] = own[name]!;
  }
  const transport = app.tcp ? toml(said) : '{ kind = "udp" }';
  const start = typeof first.start === "string" && !/^0 /.test(first.start) ? `start = ${JSON.stringify(first.start)}\n` : "";
  const flow = (name: string, ends: string[]) =>
    `\n[[flows]]\nname = ${JSON.stringify(name)}\nends = ${toml(ends)}\n${start}transport = ${transport}\napp = ${app.app}\n`;
  const base = text.endsWith("\n") ? text : `${text}\n`;
  if (!app.back) return base + flow(free(kind), first.ends);
  return base + flow(free(`${kind}-down`), first.ends) + flow(free(`${kind}-up`), [...first.ends].reverse());
}
