// What can stand at a place of a scenario's text, by the schema that `airlane schema scenario` prints.
import type { Json, Table } from "./protocol";

export interface Suggestion {
  text: string;
  /** What it means, in the schema's words. */
  words: string;
  /** Replaces what was typed; the caret is where `|` stands, or behind it. */
  insert: string;
}

export interface Completion {
  /** What is replaced. */
  from: number;
  to: number;
  all: Suggestion[];
}

/** A table or a list that is open where the caret is. */
interface Frame {
  list: boolean;
  /** Whether it has a header of its own. */
  table: boolean;
  path: string[];
  /** What is written in it so far; undefined for what is no text. */
  values: Map<string, string | undefined>;
}

interface Caret {
  what: "key" | "value" | "header";
  frame: Frame;
  /** Steps below the frame that stand before it: those of a dotted key, or of the key of a value. */
  steps: string[];
  from: number;
  typed: string;
}

const TOKEN = /[ \t\r]+|\n|#[^\n]*|"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|[={}[\],.]|[^\s#"'={}[\],.]+/g;
const bare = (token: string) => token.replace(/^["']|["']$/g, "");
const LIST = "[]";

/** Where in the file the end of this text is; undefined where nothing can be suggested. */
function locate(text: string, inHeader: (path: string[]) => string[]): Caret | undefined {
  const tables = new Map<string, Frame>();
  const open = (path: string[]) => {
    const id = path.join("\n");
    const found = tables.get(id) ?? { list: false, table: true, path, values: new Map() };
    tables.set(id, found);
    return found;
  };
  let stack: Frame[] = [open([])];
  let state: "key" | "value" | "after" | "header" = "key";
  let steps: string[] = [];
  let dotted = true;
  let header: string[] = [];
  let [from, typed] = [text.length, ""];
  const last = () => stack.at(-1)!;
  const done = (value?: string) => {
    if (!last().list) last().values.set(steps.join("."), value);
    state = "after";
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const end = index + token.length === text.length;
    [from, typed] = [text.length, ""];
    if (token.startsWith("#")) {
      if (end) return undefined;
      continue;
    }
    if (/^[ \t\r]/.test(token)) {
      if (end && state === "key" && steps.length > 0 && !dotted) return undefined;
      continue;
    }
    if (token === "\n") {
      if (stack.length === 1) [state, steps, dotted, header] = ["key", [], true, []];
      continue;
    }
    const isWord = !/^[={}[\],.]$/.test(token);
    const word = bare(token);
    const closed = /^(["']).*\1$/s.test(token) && token.length > 1;
    if (state === "header") {
      if (token === "]") {
        // The second bracket of a list's entry follows, or the line ends.
        if (header[0] === LIST && !text.startsWith("]", index + 1)) continue;
        const double = header[0] === LIST;
        const path = inHeader(double ? header.slice(1) : header);
        if (double) tables.delete([...path, LIST].join("\n"));
        stack = [open(double ? [...path, LIST] : path)];
        [state, steps] = ["after", []];
      } else if (token === "[") header = [LIST];
      else if (isWord) {
        if (end && !closed) [from, typed] = [index, word];
        else header.push(word);
      }
      continue;
    }
    if (state === "key" && !last().list) {
      if (token === "[" && steps.length === 0 && stack.length === 1) [state, header] = ["header", []];
      else if (token === ".") dotted = true;
      else if (token === "=") state = "value";
      else if (token === "}") {
        stack.pop();
        state = "after";
      } else if (isWord) {
        if (end && !closed) [from, typed] = [index, word];
        else [steps, dotted] = [[...steps, word], false];
      }
      continue;
    }
    if (state === "after") {
      if (token === ",") [state, steps, dotted] = last().list ? ["value", [], true] : ["key", [], true];
      else if ((token === "}" || token === "]") && stack.length > 1) stack.pop();
      continue;
    }
    const path = [...last().path, ...steps];
    if (token === "{" || token === "[") {
      const list = token === "[";
      if (!last().list) last().values.set(steps.join("."), undefined);
      stack.push({ list, table: false, path: list ? [...path, LIST] : path, values: new Map() });
      [state, steps, dotted] = [list ? "value" : "key", [], true];
    } else if (token === "]") {
      if (stack.length > 1) stack.pop();
      state = "after";
    } else if (end && !closed) [from, typed] = [index, token];
    else done(word);
  }
  const what: "key" | "value" | "header" | "after" = state;
  if (what === "after") return undefined;
  if (what === "header") return { what, frame: { list: false, table: true, path: [], values: new Map() }, steps: header.filter((step) => step !== LIST), from, typed };
  return { what, frame: last(), steps, from, typed };
}

/** The schema of scenarios, read along the paths of a file. */
export class Schema {
  constructor(private readonly root: Table) {}

  /** What a node may be, without references and choices. */
  private leaves(node: Json | undefined, words = ""): { node: Table; words: string }[] {
    if (!node || typeof node !== "object" || Array.isArray(node)) return [];
    const said = words || String(node.description ?? "");
    const reference = typeof node.$ref === "string" ? (this.root.definitions as Table)[node.$ref.split("/").at(-1)!] : undefined;
    const several = [reference, ...["anyOf", "oneOf", "allOf"].flatMap((key) => (Array.isArray(node[key]) ? (node[key] as Json[]) : []))].filter(Boolean);
    if (several.length === 0) return [{ node, words: said }];
    const alone = node.anyOf || node.oneOf || said === "";
    return several.flatMap((each) => this.leaves(each, alone ? "" : said));
  }

  /** The nodes at a path; what the innermost table says of its kind chooses among them. */
  private at(path: string[], kind?: string): { node: Table; words: string }[] {
    let found = this.leaves(this.root);
    for (const step of path) {
      found = found.flatMap(({ node }) => {
        if (step === LIST) return this.leaves(node.items);
        const own = (node.properties as Table | undefined)?.[step];
        return this.leaves(own ?? node.additionalProperties);
      });
    }
    const kinds = ({ node }: { node: Table }) => ((node.properties as Table | undefined)?.kind as Table | undefined)?.const;
    const fits = found.filter((one) => kind === undefined || kinds(one) === undefined || kinds(one) === kind);
    return fits.length > 0 ? fits : found;
  }

  /** A path of a header, with a step into the last entry of each list on its way. */
  private entries(path: string[]): string[] {
    const way: string[] = [];
    path.forEach((step, at) => {
      way.push(step);
      if (at + 1 < path.length && this.at(way).some(({ node }) => node.items)) way.push(LIST);
    });
    return way;
  }

  private example(node: Json | undefined): string | undefined {
    for (const { node: leaf } of this.leaves(node)) {
      const [value] = [...((leaf.examples as Json[] | undefined) ?? []), ...(leaf.const === undefined ? [] : [leaf.const]), ...((leaf.enum as Json[] | undefined) ?? [])];
      if (value !== undefined && (typeof value !== "object" || value === null)) return JSON.stringify(value);
    }
    return undefined;
  }

  private keys({ frame, steps, typed }: Caret, after: string): Suggestion[] {
    // What follows in the same table is there already.
    const later = new Set(Array.from(after.matchAll(/^\s*([A-Za-z0-9_-]+)\s*[=.]/gm), ([, key]) => key));
    const kind = steps.length === 0 ? frame.values.get("kind") : undefined;
    const all = new Map<string, Suggestion>();
    for (const { node } of this.at([...frame.path, ...steps], kind)) {
      for (const [name, of] of Object.entries((node.properties as Table | undefined) ?? {})) {
        if (frame.values.has([...steps, name].join(".")) || all.has(name) || later.has(name)) continue;
        const words = String((of as Table).description ?? this.leaves(of)[0]?.words ?? "");
        const needed = (node.required as string[] | undefined)?.includes(name);
        all.set(name, { text: name, words: needed ? `${words} Must be given.` : words, insert: `${name} = ` });
      }
    }
    return [...all.values()].filter(({ text }) => text.startsWith(typed));
  }

  private headers({ steps, typed }: Caret): Suggestion[] {
    const all = this.at(this.entries(steps)).flatMap(({ node }) => this.leaves(node.items).concat({ node, words: "" }));
    const properties = all.flatMap(({ node }) => Object.entries((node.properties as Table | undefined) ?? {}));
    const tables = properties.filter(([, of]) => this.leaves(of).some(({ node }) => node.type === "object" || this.leaves(node.items).some(({ node }) => node.type === "object")));
    const seen = new Map(tables.map(([name, of]) => [name, { text: name, words: String((of as Table).description ?? ""), insert: name }]));
    return [...seen.values()].filter(({ text }) => text.startsWith(typed));
  }

  private values({ frame, steps, typed }: Caret): Suggestion[] {
    const all = new Map<string, Suggestion>();
    const add = (value: string, words: string, insert = value) => all.has(value) || all.set(value, { text: value, words, insert });
    const number = /^["']?\s*([0-9.]+)\s*/.exec(typed)?.[1];
    for (const { node, words } of this.at([...frame.path, ...steps])) {
      if (typeof node["x-unit"] === "string" && number) {
        for (const unit of node["x-unit"].split(/,| or /).map((unit) => unit.trim()).filter((unit) => unit && !unit.startsWith('"'))) add(`"${number} ${unit}"`, words);
      }
      for (const value of [node.const, ...((node.enum as Json[] | undefined) ?? [])]) if (value !== undefined) add(JSON.stringify(value), words);
      if (node.type === "boolean") for (const value of ["true", "false"]) add(value, words);
      for (const value of [node.default, ...((node.examples as Json[] | undefined) ?? [])]) {
        if (value !== undefined && value !== null && typeof value !== "object") add(JSON.stringify(value), words);
      }
      const kind = ((node.properties as Table | undefined)?.kind as Table | undefined)?.const;
      if (node.type === "object" && typeof kind === "string") {
        const needed = ((node.required as string[] | undefined) ?? []).filter((name) => name !== "kind");
        const known = needed.flatMap((name) => {
          const example = this.example((node.properties as Table)[name]);
          return example === undefined ? [] : [`${name} = ${example}`];
        });
        add(`{ kind = "${kind}" }`, words, `{ ${[`kind = "${kind}"`, ...known].join(", ")}| }`);
      } else if (node.type === "object") add("{ }", words, "{ | }");
      if (node.type === "array") add("[ ]", words, "[|]");
    }
    const wanted = typed.toLowerCase();
    const plain = (text: string) => text.toLowerCase().replace(/^["']/, "");
    return [...all.values()].filter(({ text }) => text.toLowerCase().startsWith(wanted) || plain(text).startsWith(plain(wanted)) || text.includes(`"${plain(wanted)}`));
  }

  /** What can stand at the caret. */
  complete(text: string, caret: number): Completion | undefined {
    const place = locate(text.slice(0, caret), (path) => this.entries(path));
    if (!place) return undefined;
    const rest = text.slice(caret);
    const end = rest.search(/^\s*\[/m);
    const all = place.what === "key" ? this.keys(place, place.frame.table ? rest.slice(0, end < 0 ? undefined : end) : "") : place.what === "header" ? this.headers(place) : this.values(place);
    // The end of what was begun goes with its beginning.
    const begun = /^["']/.test(place.typed) ? /^[^"'\n]*["']/ : /^[A-Za-z0-9_-]*/;
    const tail = place.typed === "" ? "" : (begun.exec(rest)?.[0] ?? "");
    return { from: place.from, to: caret + tail.length, all };
  }
}
