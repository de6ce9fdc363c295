import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { APP_KINDS, withApp } from "./apps";
import { Chart, Legend } from "./chart";
import { Schema } from "./complete";
import { Controls } from "./controls";
import { Editor, Problems } from "./editor";
import type { Engine } from "./engine";
import { named } from "./figures";
import { Ladder } from "./ladder";
import { Ledger } from "./ledger";
import { NumberField } from "./number";
import { type Column, Play, type View } from "./play";
import type { Curve } from "./plot";
import { Results } from "./results";
import { SCENARIOS, title } from "./scenarios";
import { Share } from "./share";
import { Starts } from "./starts";
import { MOST_RUNS, MOST_WAYS, type State, address, first, other, read, text, withSet } from "./state";
import { Theme } from "./theme";
import { InTurn } from "./turns";
import { REPAIRS, TCPS, choices } from "./ways";
import { Words } from "./words";

function curves(columns: Column[], of: (column: Column) => { interval: number; values: (number | null)[]; marks?: number[] } | undefined): Curve[] {
  return columns.flatMap((column, at) => {
    const found = of(column);
    if (!found || found.values.length === 0) return [];
    const { interval, values } = found;
    // At the end of each interval.
    const points = values.map((y, index) => ({ x: Number(((index + 1) * interval).toPrecision(9)), y }));
    return [{ name: column.label, at, points, ...(found.marks ? { marks: found.marks } : {}) }];
  });
}

function Courses({ columns, flow, choose }: { columns: Column[]; flow: string; choose(time: number): void }) {
  const watched = columns.map((column) => column.watched);
  const series = (column: Column) => column.watched?.series.find((series) => series.flow === flow);
  const [throughput, delay, cwnd] = useMemo(() => {
    return [
      curves(columns, (column) => {
        const over = column.watched?.result.flows.find((result) => result.name === flow)?.over_time;
        return over && { interval: over.interval_s, values: over.throughput_bps };
      }),
      curves(columns, (column) => {
        const found = series(column);
        return found && { interval: found.interval_s, values: found.delay_mean_s.map((delay) => (delay === null ? null : 1e3 * delay)) };
      }),
      curves(columns, (column) => {
        const found = series(column);
        return found && { interval: found.interval_s, values: found.cwnd_segments, marks: found.timeouts_s };
      }),
    ];
  }, [flow, ...watched, columns.length]);
  return (
    <div class="charts">
      <Chart title={`Throughput of ${flow}`} x="time, s" y="bit/s" curves={throughput!} choose={choose} />
      <Chart title={`Delay of ${flow}`} x="time, s" y="ms" curves={delay!} choose={choose} />
      {cwnd!.length > 0 && <Chart title={`Congestion window of ${flow} (triangles: timeouts)`} x="time, s" y="segments" curves={cwnd!} choose={choose} />}
    </div>
  );
}

interface AppProps {
  engine: Engine;
  ready: Promise<string>;
  tabs: ComponentChildren;
  /** Whether it is what the page shows. */
  looks: boolean;
  /** A state from elsewhere in the page. */
  given?: State;
}

export function App({ engine, ready, tabs, looks, given }: AppProps) {
  const [state, setState] = useState<State>();
  const [view, setView] = useState<View>();
  const [said, setSaid] = useState("");
  const [flow, setFlow] = useState<string>();
  const [time, setTime] = useState(0);
  const [glossary, setGlossary] = useState("");
  const play = useRef<Play | undefined>(undefined);

  useEffect(() => {
    let next = 0;
    let latest: View | undefined;
    const show = (view: View) => {
      latest = view;
      if (next) return;
      next = requestAnimationFrame(() => {
        next = 0;
        setView({ ...latest!, columns: latest!.columns });
      });
    };
    const load = async () => {
      const hash = location.hash.slice(1);
      if (hash === written.current) return;
      if (named(location.hash)) return setState((state) => state ?? first());
      try {
        setState(hash ? await read(hash) : first());
      } catch (error) {
        setSaid((error as Error).message);
        setState(first());
      }
    };
    addEventListener("hashchange", load);
    ready.then(
      (glossary) => {
        play.current = new Play(engine, first(), show);
        setGlossary(glossary);
        if (handed.current) setState(handed.current);
        else void load();
      },
      (error) => setSaid(`The simulator does not start here: ${error.message ?? error}`),
    );
    return () => removeEventListener("hashchange", load);
  }, []);
  const written = useRef<string | undefined>(undefined);
  const handed = useRef<State | undefined>(undefined);

  useEffect(() => {
    handed.current = given;
    if (given && play.current) setState(given);
  }, [given]);
  useEffect(() => {
    if (state) void play.current!.begin(state);
  }, [state]);
  useEffect(() => {
    if (!state || !looks) return;
    let ended = false;
    void address(state).then((hash) => {
      if (ended) return;
      written.current = hash;
      history.replaceState(null, "", `#${hash}`);
    });
    return () => {
      ended = true;
    };
  }, [state, looks]);

  const { outline, fault, columns = [], lines = [], runs = 0, busy } = view ?? {};
  const set = (path: string, value?: string) => setState((state) => withSet(state!, path, value));
  // Results arrive many times a second: what does not depend on them is not built again.
  const aside = useMemo(
    () => state && (
      <aside aria-label="What is simulated">
        <label class="field">
          scenario
          <select value={state.scenario} onChange={(event) => setState(other(event.currentTarget.value))}>
            {!SCENARIOS.has(state.scenario) && <option value={state.scenario}>{state.scenario}</option>}
            {[...SCENARIOS].map(([name, text]) => (
              <option value={name} title={title(text)}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <p class="small">{title(text(state))}</p>
        <Starts engine={engine} start={setState} />
        <div class="row">
          <label class="field">
            runs
            <NumberField min={1} max={MOST_RUNS} value={state.runs} take={(runs) => setState({ ...state, runs: Math.floor(runs) })} />
          </label>
          <label class="field">
            add an application
            <select
              value=""
              disabled={!outline}
              onChange={(event) => {
                const kind = event.currentTarget.value;
                event.currentTarget.value = "";
                if (outline && kind) setState({ ...state, text: withApp(text(state), outline, kind) });
              }}
            >
              <option value="">choose…</option>
              {APP_KINDS.map(({ kind, words }) => <option value={kind}>{words}</option>)}
            </select>
          </label>
        </div>
        {state.set.length > 0 && (
          <button type="button" onClick={() => setState({ ...state, set: [] })}>
            All sliders as in the file
          </button>
        )}
        {outline && (
          <InTurn>
            <Controls outline={outline} state={state} set={set} />
          </InTurn>
        )}
        {outline?.warnings.map((warning) => <p class="warning">{warning}</p>)}
      </aside>
    ),
    [state, outline],
  );
  const editor = useMemo(
    () => state && (
      <Editor
        schema={() => engine.ask({ ask: "schema" }, 0).then((schema) => new Schema(schema))}
        text={text(state)}
        edited={state.text !== undefined && SCENARIOS.has(state.scenario)}
        {...(fault ? { fault } : {})}
        change={(text) =>
          setState((state) => {
            const { text: _, ...rest } = state!;
            return text === SCENARIOS.get(rest.scenario) ? rest : { ...rest, text };
          })
        }
        restore={() => setState((state) => { const { text: _, ...rest } = state!; return rest; })}
      />
    ),
    [state, fault],
  );

  if (!state) return <p class="start" role={said ? "alert" : "status"}>{said || "The simulator starts."}</p>;
  const flows = outline?.flows ?? [];
  const shown = flows.find(({ name }) => name === flow)?.name ?? flows[0]?.name;
  const may = outline && choices(outline);
  const ways = (ways: State["ways"]) => setState({ ...state, ways });

  return (
    <>
      <header>
        <h1>Airlane lab</h1>
        {tabs}
        <p class="tag">A lossy link, simulated in this page.</p>
        <span class={busy ? "busy on" : "busy"} role="status" aria-live="polite">
          {busy ? "simulating" : ""}
        </span>
        {busy && (
          <button type="button" onClick={() => play.current?.cancel()}>
            Stop
          </button>
        )}
        <Theme />
      </header>
      {said && (
        <p class="fault" role="alert">
          {said}
        </p>
      )}
      <main>
        {aside}
        <div class="content">
          {fault && <Problems fault={fault} />}
          <section aria-labelledby="compare" class="pick">
            <h2 id="compare">Ways side by side</h2>
            <div class="ways">
              {state.ways.map((way, at) => (
                <fieldset>
                  <legend>
                    <span class={`key way-${at}`} aria-hidden="true" /> way {at + 1}
                  </legend>
                  {may?.repairs && (
                    <label class="field">
                      repair
                      <select value={way.repair} onChange={(event) => ways(state.ways.map((other, index) => (index === at ? { ...other, repair: event.currentTarget.value } : other)))}>
                        {[...REPAIRS].map(([id, { label }]) => <option value={id}>{label}</option>)}
                      </select>
                    </label>
                  )}
                  {may?.tcps && (
                    <label class="field">
                      TCP
                      <select value={way.tcp} onChange={(event) => ways(state.ways.map((other, index) => (index === at ? { ...other, tcp: event.currentTarget.value } : other)))}>
                        {[...TCPS].map(([id, { label }]) => <option value={id}>{label}</option>)}
                      </select>
                    </label>
                  )}
                  {state.ways.length > 1 && (
                    <button type="button" class="small" aria-label={`leave out way ${at + 1}`} onClick={() => ways(state.ways.filter((_, index) => index !== at))}>
                      leave out
                    </button>
                  )}
                  {columns[at]?.fault && <Problems fault={columns[at]!.fault!} />}
                </fieldset>
              ))}
              {state.ways.length < MOST_WAYS && (may?.repairs || may?.tcps) && (
                <button type="button" class="add" onClick={() => ways([...state.ways, may.repairs ? { repair: "sr-m2", tcp: "" } : { repair: "", tcp: "cubic" }])}>
                  Add a way
                </button>
              )}
            </div>
          </section>
          {outline && <Results outline={outline} columns={columns} lines={lines} runs={runs} wanted={state.runs} />}
          {outline && shown && (
            <InTurn>
              <section aria-labelledby="course">
                <h2 id="course">Over time</h2>
                <div class="tabs" role="radiogroup" aria-label="Flow">
                  {flows.map(({ name }) => (
                    <label class={name === shown ? "tab on" : "tab"}>
                      <input type="radio" name="flow" checked={name === shown} onChange={() => setFlow(name)} />
                      {name}
                    </label>
                  ))}
                  <Legend of={columns.map(({ label }, at) => ({ name: label, at }))} />
                </div>
                <p class="small">The first run, in intervals of {columns.find((column) => column.watched)?.watched?.series[0]?.interval_s ?? "…"} s.</p>
                <Courses columns={columns} flow={shown} choose={(time) => setTime(Number(time.toFixed(3)))} />
              </section>
            </InTurn>
          )}
          {outline && (
            <InTurn>
              <Ledger columns={columns} />
            </InTurn>
          )}
          {outline && shown && columns.length > 0 && (
            <InTurn>
              <Ladder engine={engine} outline={outline} columns={columns} flow={shown} at={time} setAt={setTime} />
            </InTurn>
          )}
          <InTurn>
            {editor}
            <Share engine={engine} state={state} columns={columns} />
            <Words glossary={glossary} />
          </InTurn>
        </div>
      </main>
    </>
  );
}
