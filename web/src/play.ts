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
  /** The beginning of the first repetition, until that is whole. */
  glance?: RunResult;
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
  /** So many repetitions stand behind the lines; none while they show the beginning of the first. */
  runs: number;
  busy: boolean;
}

const SOON = 0;
const THEN = 1;

function fault(error: unknown): Fault {
  return error instanceof Refused ? error.fault : { text: String(error), problems: [] };
}

/** The part of a run that is shown at first: whole runs of some scenarios take a second. */
const GLANCE = 0.1;

/** Simulates a state: the beginning and the first repetition of each way, then their course, then the others. */
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
      const begins = !this.view.outline;
      const before = this.view.columns;
      const columns = state.ways.map((way, at): Column => {
        const set = assignments(way, outline);
        const old = before[at];
        // What was there is shown until there is something new.
        const kept = old && old.label === label(way) ? { watched: old.watched } : {};
        return { way, label: label(way), set, world: world(state, set), runs: [], ...kept };
      });
      this.show({ outline, fault: undefined, columns });
      // Simulators occupy all cores, and the page has most to build at the first outline.
      if (begins) await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      await this.simulate(state, columns, GLANCE * outline.duration_s, signal);
      await this.estimate(columns, signal);
      this.show({ busy: false });
    } catch (error) {
      if (error instanceof Cancelled || asked !== this.asked) return;
      this.show({ fault: fault(error), busy: false });
    }
  }

  private async simulate(state: State, columns: Column[], until_s: number, signal: AbortSignal): Promise<void> {
    const all = columns.map(async (column): Promise<void> => {
      const { world } = column;
      const one = async (run: number): Promise<void> => {
        column.runs[run] ??= await this.engine.ask({ ask: "run", world, run }, THEN + run, signal);
        void this.estimate(columns, signal);
        if (run > 0) return;
        const { stopped_s } = column.runs[0]!;
        column.watched = await this.engine.ask({ ask: "watch", world, run, stopped_s }, THEN, signal);
        this.show({});
      };
      try {
        const { result, cut } = await this.engine.ask({ ask: "glance", world, until_s }, SOON, signal);
        if (cut) column.glance = result;
        else column.runs[0] = result;
        // Whole runs would occupy all simulators.
        await this.estimate(columns, signal);
        await Promise.all(Array.from({ length: state.runs }, (_, run) => one(run)));
      } catch (error) {
        if (error instanceof Cancelled) throw error;
        column.fault = fault(error);
        this.show({});
      }
    });
    await Promise.all(all);
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
    const shown = columns.map((column) => {
      if (column.fault) return [];
      return runs > 0 ? column.runs.slice(0, runs) : [column.runs[0] ?? column.glance];
    });
    const some = shown.flat();
    if (some.length === 0 || some.includes(undefined) || !outline || this.view.columns !== columns) return;
    // Parts of different lengths are no pairs.
    const alike = runs > 0 || new Set(some.map((run) => run!.stopped_s)).size === 1;
    const names: { flow: string; metric: string }[] = [];
    const asked: Columns[] = [];
    for (const flow of outline.flows) {
      const results = shown.map((runs) => runs.map((run) => run!.flows.find((other) => other.name === flow.name)));
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
    const lines = names.map((name, at) => ({ ...name, told: told[at]!.map((one) => (alike ? one : { ...one, ratio: null })) }));
    this.show({ lines, runs });
  }
}
