import { useState } from "preact/hooks";
import type { Engine } from "./engine";
import { offer } from "./files";
import type { Column } from "./play";
import { type State, file, text } from "./state";

const quoted = (word: string) => (/^[A-Za-z0-9_./=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** What a shell is told for the numbers of a way. A shipped scenario needs no file. */
export function command(state: State, column: Column): string {
  const name = state.text === undefined ? state.scenario : file(state);
  const set = column.world.set.map((assignment) => ` \\\n  --set ${quoted(assignment)}`);
  return `airlane sim run ${name} --runs ${state.runs}${set.join("")}`;
}

/** The same for Python. */
export function cell(state: State, columns: Column[]): string {
  const base = state.text === undefined ? `airlane.Scenario.shipped(${JSON.stringify(state.scenario)})` : `airlane.Scenario.from_toml(r'''${text(state)}''')`;
  const ways = columns.map((column) => {
    const set = column.world.set.map((assignment) => {
      const at = assignment.indexOf("=");
      return `[${JSON.stringify(assignment.slice(0, at))}, ${JSON.stringify(assignment.slice(at + 1))}]`;
    });
    return `    ${JSON.stringify(column.label)}: [${set.join(", ")}],`;
  });
  return `import tomllib

import airlane

base = ${base}
ways = {
${ways.join("\n")}
}


def value(text):
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


tables = {way: base.with_({path: value(text) for path, text in sets}) for way, sets in ways.items()}
frames = {way: airlane.sweep(scenario, runs=${state.runs}) for way, scenario in tables.items()}
frames
`;
}

function Copy({ what, text }: { what: string; text: string | (() => string) }) {
  const [said, setSaid] = useState("");
  const value = () => (typeof text === "string" ? text : text());
  return (
    <button
      type="button"
      onClick={() =>
        navigator.clipboard
          ? navigator.clipboard.writeText(value()).then(
              () => setSaid("copied"),
              () => setSaid("not allowed here"),
            )
          : setSaid("not allowed here")
      }
    >
      {what}
      {said && <span role="status"> ({said})</span>}
    </button>
  );
}

/** What leaves the page. */
export function Share({ engine, state, columns }: { engine: Engine; state: State; columns: Column[] }) {
  const [way, setWay] = useState(0);
  const [said, setSaid] = useState("");
  const column = columns[Math.min(way, columns.length - 1)];
  if (!column) return null;
  const plain = state.text === undefined && column.world.set.length === 0;
  const stem = `${state.scenario}${column.set.length > 0 ? `-${column.label.replace(/[^A-Za-z0-9]+/g, "-").toLowerCase()}` : ""}`;
  const keep = async (form: "toml" | "json") => {
    setSaid("");
    try {
      if (form === "json") {
        setSaid("simulating…");
        offer(`${stem}.json`, await engine.ask({ ask: "report", world: column.world, runs: state.runs }, 0));
      } else {
        offer(`${stem}.toml`, plain || column.world.set.length === 0 ? text(state) : await engine.ask({ ask: "toml", world: column.world }, 0));
      }
      setSaid("");
    } catch (error) {
      setSaid(String(error));
    }
  };
  return (
    <section aria-labelledby="share">
      <h2 id="share">Keep and share</h2>
      <div class="row">
        <label class="small">
          way{" "}
          <select aria-label="way to keep" value={Math.min(way, columns.length - 1)} onChange={(event) => setWay(Number(event.currentTarget.value))}>
            {columns.map((column, at) => <option value={at}>{column.label}</option>)}
          </select>
        </label>
        <Copy what="Address" text={() => location.href} />
        <button type="button" onClick={() => keep("toml")}>TOML</button>
        <button type="button" onClick={() => keep("json")} title="What airlane sim run --json prints">JSON</button>
        <Copy what="Command" text={command(state, column)} />
        <Copy what="Python" text={cell(state, columns)} />
        <span role="status" class="small">{said}</span>
      </div>
      <pre class="command" tabIndex={0} aria-label="Command">{command(state, column)}</pre>
      {state.text !== undefined && <p class="small">The command reads {file(state)}: keep the text of the scenario under this name.</p>}
    </section>
  );
}
