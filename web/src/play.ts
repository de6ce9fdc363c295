import { Cancelled, type Engine, Refused } from "./engine";
import type { Columns, Fault, Outline, RunResult, Told, Watched, World } from "./protocol";
import { type State, type Way, world } from "./state";
import { assignments, label } from "./ways";

/** What is known of one way. */
export interface Column {
  way: Way;
  label: string;
  set: string[];
  world: World;
  /** By repetition. */
  runs: (RunResult | undefined)[];
  watched?: Watched;
  fault?: Fault;
}

/** A metric of a flow in all columns. */
export interface Line {
  flow: string;
  metric: string;
  told: Told[];
}

export interface View {
  state: State;
  outline?: Outline;
  /** Why there is none. */
  fault?: Fault;
  columns: Column[];
  lines: Line[];
  /** So many repetitions stand behind the lines. */
  runs: number;
  busy: boolean;
}

const SOON = 0;
const THEN = 1;

function fault(error: unknown): Fault {
  return error instanceof Refused ? error.fault : { text: String(error), problems: [] };
}

/** Simulates a state: the first repetition of each way, then their course, then the other repetitions. */
export class Play {
  view: View;
  private stop = new AbortController();
  private asked = 0;

  constructor(
    private readonly engine: Engine,
    state: State,
    private readonly changed: (view: View) => void,
  ) {
    this.view = { state, columns: [], lines: [], runs: 0, busy: true };
  }

  private show(news: Partial<View>): void {
    this.view = { ...this.view, ...news };
    this.changed(this.view);
  }

  cancel(): void {
    this.stop.abort();
    this.show({ busy: false });
  }

  async begin(state: State): Promise<void> {
    this.stop.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    const asked = ++this.asked;
    this.show({ state, busy: true });
    try {
      const outline = await this.engine.ask({ ask: "outline", world: world(state) }, SOON, signal);
      const before = this.view.columns;
      const columns = state.ways.map((way, at): Column => {
        const set = assignments(way, outline);
        const old = before[at];
        // What was there is shown until there is something new.
        const kept = old && old.label === label(way) ? { watched: old.watched } : {};
        return { way, label: label(way), set, world: world(state, set), runs: [], ...kept };
      });
      this.show({ outline, fault: undefined, columns });
      await this.simulate(state, columns, signal);
      await this.estimate(columns, signal);
      this.show({ busy: false });
    } catch (error) {
      if (error instanceof Cancelled || asked !== this.asked) return;
      this.show({ fault: fault(error), busy: false });
    }
  }

  private async simulate(state: State, columns: Column[], signal: AbortSignal): Promise<void> {
    const one = async (column: Column, run: number): Promise<void> => {
      try {
        column.runs[run] = await this.engine.ask({ ask: "run", world: column.world, run }, THEN + run, signal);
        void this.estimate(columns, signal);
        if (run > 0) return;
        const { stopped_s } = column.runs[0]!;
        column.watched = await this.engine.ask({ ask: "watch", world: column.world, run, stopped_s }, THEN, signal);
        this.show({});
      } catch (error) {
        if (error instanceof Cancelled) throw error;
        column.fault = fault(error);
        this.show({});
      }
    };
    const runs = Array.from({ length: state.runs }, (_, run) => run);
    await Promise.all(runs.flatMap((run) => columns.map((column) => one(column, run))));
  }

  /** Of the repetitions that every way has; what comes meanwhile is in the next one. */
  private estimate(columns: Column[], signal: AbortSignal): Promise<void> {
    const after = this.estimating?.columns === columns ? this.estimating : undefined;
    if (after?.next) return after.next;
    const go = async (): Promise<void> => {
      await after?.now;
      this.estimating = { columns, now };
      await this.estimateNow(columns, signal).catch((error) => {
        if (!(error instanceof Cancelled)) throw error;
      });
    };
    const now: Promise<void> = go();
    if (after) after.next = now;
    else this.estimating = { columns, now };
    return now;
  }

  private estimating?: { columns: Column[]; now: Promise<void>; next?: Promise<void> };

  private async estimateNow(columns: Column[], signal: AbortSignal): Promise<void> {
    const wanted = this.view.state.runs;
    const known = columns.filter((column) => !column.fault).map((column) => {
      const missing = Array.from({ length: wanted }, (_, run) => column.runs[run]).indexOf(undefined);
      return missing < 0 ? wanted : missing;
    });
    const runs = known.length > 0 ? Math.min(...known) : 0;
    const { outline } = this.view;
    if (runs === 0 || !outline || this.view.columns !== columns) return;
    const names: { flow: string; metric: string }[] = [];
    const asked: Columns[] = [];
    for (const flow of outline.flows) {
      const results = columns.map((column) => {
        const at = column.runs[0]?.flows.findIndex((other) => other.name === flow.name) ?? -1;
        return column.runs.slice(0, column.fault ? 0 : runs).map((run) => run?.flows[at]);
      });
      for (const { name } of flow.metrics) {
        const values = results.map((all) =>
          all.map((result) => {
            const value = result?.[name];
            return typeof value === "number" ? value : null;
          }),
        );
        if (values.every((column) => column.every((value) => value === null))) continue;
        names.push({ flow: flow.name, metric: name });
        asked.push({ metric: name, columns: values });
      }
    }
    const told = await this.engine.ask({ ask: "estimate", metrics: asked }, SOON, signal);
    if (this.view.columns !== columns) return;
    this.show({ lines: names.map((name, at) => ({ ...name, told: told[at]! })), runs });
  }
}
