import { max, rollup } from "d3-array";
import { scaleLinear } from "d3-scale";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Chart, Legend } from "./chart";
import { Controls } from "./controls";
import { Problems } from "./editor";
import { type Engine, Refused } from "./engine";
import { NumberField } from "./number";
import type { Curve, Point } from "./plot";
import type { ClaimOutcome, Comparison, FigureOutline, Outline, Panel, Verdict, WorkOutcome, WorkOutline } from "./protocol";
import { type FigureView, Reproduction } from "./reproduce";
import { type State, own, withSet } from "./state";
import { Theme } from "./theme";

const WORDS: { [verdict in Verdict]: string } = { holds: "holds", consistent: "consistent", near: "near", misses: "misses", "source-inconsistent": "source inconsistent" };
/** Signs, for who sees no colours. */
const SIGNS: { [verdict in Verdict]: string } = { holds: "✓", consistent: "≈", near: "~", misses: "✗", "source-inconsistent": "!" };
const UNITS: { [unit: string]: [string, number] } = { "bit/s": ["kbit/s", 1e-3], s: ["ms", 1e3], ratio: ["%", 100] };

export const PREFIX = "figure=";

/** The figure that an address names. */
export function named(hash: string): { work: string; study: string } | undefined {
  const found = /^#figure=([A-Za-z0-9._-]{1,80})\/([A-Za-z0-9._-]{1,80})$/.exec(hash);
  return found ? { work: found[1]!, study: found[2]! } : undefined;
}

function Judged({ verdict }: { verdict: Verdict | null | undefined }) {
  if (!verdict) return <span class="faint">-</span>;
  return (
    <span class={`verdict ${verdict}`}>
      <span aria-hidden="true">{SIGNS[verdict]} </span>
      {WORDS[verdict]}
    </span>
  );
}

function Drawn({ outcome }: { outcome: WorkOutcome }) {
  const figure = outcome.studies[0]?.figure;
  const panels = useMemo(() => {
    // Long times are read in seconds.
    const unit = ({ unit, values }: Panel): [string, number] => (unit === "s" && values.flat().some((cell) => cell && cell.value >= 10) ? ["s", 1] : (UNITS[unit] ?? ["", 1]));
    const curves = (panel: Panel, nth: number): Curve[] => {
      const { values } = panel;
      const [, factor] = unit(panel);
      return (figure?.lines ?? []).map(({ label }, line) => ({
        name: label || "simulated",
        at: line,
        published: figure!.marks
          .filter((mark) => mark.panel === nth && mark.line === line)
          .map(({ x, value, band: [low, high] }) => ({ x, y: value * factor, low: low * factor, high: high * factor })),
        points: values[line]!.map((cell, x) => ({ x, y: cell ? cell.value * factor : null, half: cell?.ci95_half_width == null ? null : cell.ci95_half_width * factor })),
      }));
    };
    return (figure?.panels ?? []).map((panel, nth) => ({ panel, y: unit(panel)[0], curves: curves(panel, nth) }));
  }, [outcome]);
  if (!figure && outcome.studies[0]?.over_time) return null;
  if (!figure) return <p class="small">This study draws nothing: its claims read what other figures ran.</p>;
  return (
    <>
      {figure.lines.length > 1 && <Legend of={figure.lines.map(({ label }, at) => ({ name: label, at, dots: figure.kind === "bars" }))} />}
      <div class="charts">
        {panels.map(({ panel, y, curves }) => (
          <Chart
            title={[panel.y_label, panel.title].filter(Boolean).join(", ")}
            x={figure.x_label}
            y={y}
            log={figure.log}
            names={figure.x}
            dots={figure.kind === "bars"}
            curves={curves}
          />
        ))}
      </div>
      <p class="small">Mean of {outcome.runs} {outcome.runs === 1 ? "run" : "runs"}{outcome.runs > 1 ? " with its 95 % interval" : ""}.{figure.marks.length > 0 && " A band is what agrees with the published value, which is its line."}</p>
    </>
  );
}

/** What happens over the time of the first run. */
function OverTime({ outcome, csv }: { outcome: WorkOutcome; csv: string }) {
  const drawn = outcome.studies[0]?.over_time;
  const panels = useMemo(() => {
    const all = csv.split("\n").slice(1, -1).map((row) => row.split(","));
    const end = drawn?.until_s || (max(all, ([, , , x]) => Number(x)) ?? 0);
    const rows = all.filter(([, , , x]) => Number(x) <= end);
    const found = rollup(rows, (rows) => rows.map(([, , , x, y]): Point => ({ x: Number(x), y: Number(y) })), (row) => row.slice(0, 3).join());
    return (drawn?.panels ?? []).map((panel) => {
      const [unit, factor] = UNITS[panel.unit] ?? [panel.unit, 1];
      const scaled = (points: Point[]) => points.map(({ x, y }) => ({ x, y: y === null ? null : y * factor }));
      const curves: Curve[] = [];
      for (const quantity of panel.quantities) {
        for (const [nth, { id, label }] of drawn!.lines.entries()) {
          const points = found.get(`${panel.at},${id},${quantity}`);
          if (!points) continue;
          const first = quantity === panel.quantities[0];
          const words = quantity.replace(/_(bytes|bps|s)$/, "").replaceAll("_", " ");
          curves.push({ name: first ? label : `${label}, ${words}`, at: first ? nth : curves.length, dots: !first, points: scaled(points) });
        }
      }
      if (panel.level !== null) curves.push({ name: "published level", at: curves.length, points: scaled([0, end].map((x) => ({ x, y: panel.level }))) });
      return { panel, unit, curves };
    });
  }, [outcome, csv]);
  return (
    <>
      {panels.map(({ panel, unit, curves }) => (
        <>
          <Legend of={curves} />
          <div class="charts">
            <Chart title={[panel.y_label, panel.title].filter(Boolean).join(", ")} x="time, s" y={unit} curves={curves} />
          </div>
        </>
      ))}
      <p class="small">Over the time of one run, the first.</p>
    </>
  );
}

function shown(value: number, unit: string): string {
  const [name, factor] = UNITS[unit] ?? ["", 1];
  return Number.isFinite(value) && value !== null ? `${Number((value * factor).toPrecision(4))}${name ? ` ${name}` : ""}` : "-";
}

/** Both values of a comparison on one scale: what was published as a ring, what was simulated as a dot with its interval. */
function Beside({ comparison: { measured, against, ci95_half_width: half } }: { comparison: Comparison }) {
  const known = [measured, against].every((value) => typeof value === "number");
  const most = Math.max(Math.abs(measured) + (half ?? 0), Math.abs(against), Number.MIN_VALUE);
  if (!known || measured < 0 || against < 0) return null;
  const x = scaleLinear([0, most], [6, 114]).clamp(true);
  return (
    <svg class="beside" viewBox="0 0 120 14" width="120" height="14" aria-hidden="true">
      <path class="scale" d="M6 7H114" />
      {half > 0 && <path class="interval" d={`M${x(measured - half)} 7H${x(measured + half)}`} />}
      <circle class="here" cx={x(measured)} cy="7" r="3.2" />
      <circle class="there" cx={x(against)} cy="7" r="5" />
    </svg>
  );
}

function Comparisons({ claim }: { claim: ClaimOutcome }) {
  const [open, setOpen] = useState(false);
  const all = claim.comparisons ?? [];
  if (all.length === 0) return null;
  const other = claim.kind === "quantitative" ? "published" : "compared with";
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {all.length} {all.length === 1 ? "comparison" : "comparisons"}
      </summary>
      {open && (
        <div class="scroll within" tabIndex={0} role="region" aria-label={`Comparisons of ${claim.id}`}>
          <table>
            <thead>
              <tr>
                {["where", other, "simulated here", `ring: ${other}, dot: here`, "verdict", "check"].map((head) => <th scope="col">{head}</th>)}
              </tr>
            </thead>
            <tbody>
              {all.map((one) => (
                <tr>
                  <td>{one.at.join(", ")}</td>
                  <td>{shown(one.against, one.unit)}</td>
                  <td>
                    {shown(one.measured, one.unit)}
                    {one.ci95_half_width > 0 && ` ± ${shown(one.ci95_half_width, one.unit)}`}
                  </td>
                  <td>
                    <Beside comparison={one} />
                  </td>
                  <td>
                    <Judged verdict={one.verdict} />
                  </td>
                  <td>{one.check}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

function Claims({ outline, outcome, changed }: { outline: FigureOutline; outcome?: WorkOutcome; changed: boolean }) {
  const judged = new Map([...(outcome?.claims ?? []), ...(outcome?.apart ?? [])].map((claim) => [claim.id, claim]));
  if (outline.claims.length === 0) return null;
  return (
    <section aria-labelledby="claims">
      <h2 id="claims">What was claimed</h2>
      <p class="small">
        Committed: the verdict of {outline.runs} runs that every change of this project is checked against. Here: that of the runs in this page
        {changed ? ", with your changes" : ""}. A class says why a claim is not counted.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Claims">
        <table class="claims">
          <thead>
            <tr>
              {["claim", "published", "committed", "here", "simulated here"].map((head) => <th scope="col">{head}</th>)}
            </tr>
          </thead>
          <tbody>
            {outline.claims.map(({ id, published, class: kind, committed, checks }) => {
              const claim = judged.get(id);
              return (
                <tr>
                  <th scope="row">
                    {id}
                    {kind && <span class="good">{kind}</span>}
                  </th>
                  <td class="why">
                    {published}
                    {checks.length > 0 && (
                      <details>
                        <summary>as it is checked</summary>
                        <ul>{checks.map((check) => <li><code>{check}</code></li>)}</ul>
                      </details>
                    )}
                  </td>
                  <td>
                    <Judged verdict={committed} />
                  </td>
                  <td>{claim ? <Judged verdict={claim.verdict} /> : "…"}</td>
                  <td class="why">
                    {claim?.measured ?? "…"}
                    {claim?.note && !changed && <span class="good">{claim.note}</span>}
                    {claim && <Comparisons claim={claim} />}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** One scenario of a figure, to look at by itself. */
function Points({ view, open }: { view: FigureView; open(state: State): void }) {
  const [at, setAt] = useState(0);
  const { outline, figure } = view;
  const points = outline!.worlds.flatMap(({ text, points }) => points.filter(([study]) => study === figure.study).map(([, at]) => ({ at, text })));
  const point = points[Math.min(at, points.length - 1)];
  if (!point) return null;
  return (
    <div class="row">
      <label class="field">
        one of its scenarios
        <select value={points.indexOf(point)} onChange={(event) => setAt(Number(event.currentTarget.value))}>
          {points.map(({ at }, n) => <option value={n}>{at.join(", ") || "the only one"}</option>)}
        </select>
      </label>
      <button type="button" onClick={() => open(own(`${figure.work}-${figure.study}`.toLowerCase().replace(/[^a-z0-9]+/g, "-"), point.text))}>
        Open it in Simulate
      </button>
    </div>
  );
}

/** The figures of published works: what was published beside what is simulated here and now. */
export function Figures({ engine, ready, tabs, looks, open }: { engine: Engine; ready: Promise<unknown>; tabs: ComponentChildren; looks: boolean; open(state: State): void }) {
  const [works, setWorks] = useState<WorkOutline[]>();
  const [said, setSaid] = useState("");
  const [asked, setAsked] = useState(named(location.hash) ?? { work: "balakrishnan-1997", study: "T2" });
  const [set, setSet] = useState<[string, string][]>([]);
  const [runs, setRuns] = useState<number>();
  const [view, setView] = useState<FigureView>();
  const [world, setWorld] = useState<Outline>();
  const simulated = useRef(false);
  const reproduction = useRef<Reproduction | undefined>(undefined);

  useEffect(() => {
    ready
      .then(() => engine.ask({ ask: "works" }, 0))
      .then(setWorks)
      .catch((error) => setSaid(String(error.message ?? error)));
    const load = () => {
      const found = named(location.hash);
      if (found) choose(found);
    };
    addEventListener("hashchange", load);
    return () => removeEventListener("hashchange", load);
  }, []);

  const choose = (figure: { work: string; study: string }) => {
    simulated.current = false;
    setSet([]);
    setAsked(figure);
  };
  const known = works?.find(({ id }) => id === asked.work);
  const here = known?.figures.some(({ id }) => id === asked.study);
  const figure = { ...asked, set: set.map(([path, value]) => `${path}=${value}`) };
  const many = runs ?? view?.outline?.runs ?? 3;

  useEffect(() => {
    if (!works) return;
    if (!here) return setSaid(`no figure ${asked.work}/${asked.study} comes with this page`);
    setSaid("");
    reproduction.current ??= new Reproduction(engine, figure, (view) => setView(view));
    void reproduction.current.begin(figure, simulated.current ? many : undefined);
  }, [works, asked, set]);
  useEffect(() => {
    if (looks) history.replaceState(null, "", `#${PREFIX}${asked.work}/${asked.study}`);
  }, [looks, asked]);

  // What its sliders are: those of its first scenario.
  const first = view?.outline?.worlds[0]?.text;
  useEffect(() => {
    if (first === undefined) return;
    let ended = false;
    engine.ask({ ask: "outline", world: { text: first, file: `${asked.study}.toml`, set: [] } }, 0).then(
      (outline) => !ended && setWorld(outline),
      (error) => !ended && setSaid(error instanceof Refused ? error.fault.text : String(error)),
    );
    return () => {
      ended = true;
    };
  }, [first]);

  const go = () => {
    simulated.current = true;
    void reproduction.current?.begin(figure, many);
  };
  const state: State = { scenario: "figure", set, ways: [], runs: 1 };
  const { outline, outcome, curves, fault, busy, done = 0, all = 0 } = view ?? {};
  return (
    <>
      <header>
        <h1>Airlane lab</h1>
        {tabs}
        <p class="tag">Published figures, simulated in this page.</p>
        <span class={busy ? "busy on" : "busy"} role="status" aria-live="polite">
          {busy ? "simulating" : ""}
        </span>
        {busy && (
          <button type="button" onClick={() => reproduction.current?.cancel()}>
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
        <aside aria-label="Which figure">
          {works && (
            <>
              <label class="field">
                work
                <select
                  value={asked.work}
                  onChange={(event) => {
                    const work = works.find(({ id }) => id === event.currentTarget.value)!;
                    choose({ work: work.id, study: work.figures[0]!.id });
                  }}
                >
                  {[true, false].map((published) => (
                    <optgroup label={published ? "published works" : "experiments of this project"}>
                      {works.filter((work) => work.published === published).map(({ id }) => <option value={id}>{id}</option>)}
                    </optgroup>
                  ))}
                </select>
              </label>
              <p class="small">{known?.title}</p>
              <label class="field">
                figure
                <select value={asked.study} onChange={(event) => choose({ work: asked.work, study: event.currentTarget.value })}>
                  {known?.figures.map(({ id, title }) => (
                    <option value={id}>
                      {id}: {title}
                    </option>
                  ))}
                </select>
              </label>
              <div class="row">
                <label class="field">
                  runs
                  <NumberField min={1} max={30} value={many} take={(runs) => setRuns(Math.floor(runs))} />
                </label>
                <button type="button" class="strong" disabled={!outline || busy} onClick={go}>
                  Simulate the figure
                </button>
              </div>
              <p class="small" role="status">
                {outline && (all === 0 ? `${outline.worlds.length} scenarios, ${outline.worlds.length * many} runs.` : `${done} of ${all} runs.`)}
              </p>
              {all > 0 && <progress aria-label="Finished runs" value={done} max={all} />}
              {outline && <Points view={view!} open={open} />}
              {set.length > 0 && (
                <button type="button" onClick={() => setSet([])}>
                  All sliders as published
                </button>
              )}
              <h2>What if?</h2>
              <p class="small">The sliders are those of its first scenario; what they set holds in every scenario that has it.</p>
              {world && <Controls outline={world} state={state} set={(path, value) => setSet((set) => withSet({ ...state, set }, path, value).set)} />}
            </>
          )}
          {!works && !said && <p role="status">The works are read.</p>}
        </aside>
        <div class="content">
          {fault && <Problems fault={fault} />}
          <section aria-labelledby="figure">
            <h2 id="figure">{known?.figures.find(({ id }) => id === asked.study)?.title ?? "Figure"}</h2>
            {outcome && curves && <OverTime outcome={outcome} csv={curves} />}
            {outcome ? <Drawn outcome={outcome} /> : <p class="small">{busy && all > 0 ? "The first run of each scenario comes first." : "Not simulated yet."}</p>}
          </section>
          {outline && <Claims outline={outline} {...(outcome ? { outcome } : {})} changed={set.length > 0} />}
          <section aria-labelledby="again">
            <h2 id="again">The same figure by the program</h2>
            <pre class="command" tabIndex={0} role="region" aria-label="Command">
              {`airlane study run ${asked.work}/${asked.study} --runs ${many}${figure.set.map((set) => ` \\\n  --set '${set}'`).join("")}`}
            </pre>
          </section>
        </div>
      </main>
    </>
  );
}
