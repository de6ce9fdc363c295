import { max } from "d3-array";
import { useState } from "preact/hooks";
import type { Estimate, Metric, Outline } from "./protocol";
import type { Column, Line } from "./play";
import { csv, offer } from "./files";

/** Mean and interval as a bar; the longest of a line fills it. */
function Bar({ at, value, most }: { at: number; value: Estimate; most: number }) {
  const share = (x: number) => `${Math.max(0, Math.min(100, (100 * x) / most))}%`;
  const half = value.ci95_half_width ?? 0;
  return (
    <span class="bar" aria-hidden="true">
      <span class={`fill way-${at}`} style={{ width: share(value.mean) }} />
      {half > 0 && <span class="whisker" style={{ left: share(value.mean - half), width: share(2 * half) }} />}
    </span>
  );
}

function row(metric: Metric, line: Line | undefined, columns: Column[]) {
  const most = max(line?.told ?? [], ({ row: { value } }) => value && value.mean + (value.ci95_half_width ?? 0)) || Number.MIN_VALUE;
  return (
    <tr role="row">
      <th scope="row" role="rowheader">
        {metric.words} <span class="good">{metric.higher ? "more is better" : "less is better"}</span>
      </th>
      {columns.map((column, at) => {
        const told = line?.told[at];
        if (column.fault) return <td role="cell" class="faint" data-way={column.label}>refused</td>;
        if (!told) return <td role="cell" class="faint" data-way={column.label}>…</td>;
        return (
          <td role="cell" data-way={column.label}>
            <span class="value">{told.shown}</span>
            {told.ratio && at > 0 && <span class="ratio">{told.ratio} x</span>}
            {told.row.value && <Bar at={at} value={told.row.value} most={most} />}
          </td>
        );
      })}
    </tr>
  );
}

/** What an interval alone does not say. */
function notes(columns: Column[]): string[] {
  return columns.flatMap(({ label, runs }) => {
    const known = runs.filter((run) => run !== undefined);
    const unfinished = known.filter((run) => !run.finished).length;
    const plain = known.map((run) => run.events);
    const same = known.length > 1 && new Set(plain).size === 1 && new Set(known.map((run) => JSON.stringify({ ...run, run: 0 }))).size === 1;
    return [
      ...(unfinished > 0 ? [`${label}: in ${unfinished} of ${known.length} runs the flow that ends a run was not done.`] : []),
      ...(same ? [`${label}: all ${known.length} runs are the same, as nothing random had a part in them: "± 0" is no measure of chance.`] : []),
    ];
  });
}

/** What each application got. */
export function Results({ outline, columns, lines, runs, wanted }: { outline: Outline; columns: Column[]; lines: Line[]; runs: number; wanted: number }) {
  const [all, setAll] = useState(false);
  const find = (flow: string, metric: string) => lines.find((line) => line.flow === flow && line.metric === metric);
  const table = () => {
    const heads = ["flow", "metric", "unit", ...columns.flatMap(({ label }) => [`${label}: mean`, `${label}: half width of 95 %`, `${label}: runs`])];
    const rows = lines.map((line) => {
      const unit = outline.flows[0]?.metrics.find(({ name }) => name === line.metric)?.unit ?? "";
      const numbers = line.told.flatMap(({ row: { value } }) => [value?.mean ?? null, value?.ci95_half_width ?? null, value?.n ?? null]);
      return [line.flow, line.metric, unit, ...numbers];
    });
    return csv([heads, ...rows]);
  };
  return (
    <section aria-labelledby="results">
      <div class="head">
        <h2 id="results">What each application got</h2>
        <p class="small" role="status">
          {runs === 0 && lines.length > 0 ? "the beginning of one run; " : ""}
          {runs < wanted ? `${runs} of ${wanted} runs` : `${runs} ${runs === 1 ? "run" : "runs"}`}
          {runs > 1 ? "; mean ± 95 % interval" : ""}
        </p>
        <label class="small">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> every measure
        </label>
        <button type="button" class="small" onClick={() => offer(`${outline.name.replace(/[^A-Za-z0-9]+/g, "-")}.csv`, table())}>CSV</button>
      </div>
      {runs === wanted && notes(columns).map((note) => <p class="warning">{note}</p>)}
      <div class="scroll" tabIndex={0} role="region" aria-label="Results">
        <table class="results" role="table">
          <thead>
            <tr>
              <th scope="col">flow and measure</th>
              {columns.map((column, at) => (
                <th scope="col" style={{ width: `${80 / columns.length}%` }}>
                  <span class={`key way-${at}`} aria-hidden="true" /> {column.label}
                </th>
              ))}
            </tr>
          </thead>
          {outline.flows.map((flow) => {
            const shown = flow.metrics.filter((metric) => (all ? find(flow.name, metric.name) : metric.headline && (lines.length === 0 || find(flow.name, metric.name))));
            return (
              <tbody>
                <tr class="flow" role="row">
                  <th scope="rowgroup" role="rowheader" colSpan={columns.length + 1}>
                    {flow.name} <span class="faint">{flow.app}</span>
                  </th>
                </tr>
                {shown.map((metric) => row(metric, find(flow.name, metric.name), columns))}
              </tbody>
            );
          })}
        </table>
      </div>
    </section>
  );
}
