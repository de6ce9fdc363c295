import { Cancelled, type Engine, Refused } from "./engine";
import type { Fault, FigureOf, FigureOutline, WorkOutcome } from "./protocol";

export interface FigureView {
  figure: FigureOf;
  outline?: FigureOutline;
  fault?: Fault;
  /** Finished runs of all scenarios, and how many there will be. */
  done: number;
  all: number;
  outcome?: WorkOutcome;
  /** What it draws over the time of one run, as CSV. */
  curves?: string | null;
  busy: boolean;
}

const SOON = 0;
const THEN = 1;

/** Simulates the scenarios of a figure, and lets it be judged after each repetition of all of them. */
export class Reproduction {
  view: FigureView;
  private stop = new AbortController();

  constructor(
    private readonly engine: Engine,
    figure: FigureOf,
    private readonly changed: (view: FigureView) => void,
  ) {
    this.view = { figure, done: 0, all: 0, busy: false };
  }

  private show(news: Partial<FigureView>): void {
    this.view = { ...this.view, ...news };
    this.changed(this.view);
  }

  cancel(): void {
    this.stop.abort();
    this.show({ busy: false });
  }

  private async guarded(go: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.stop.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.show({ busy: true });
    try {
      await go(signal);
    } catch (error) {
      if (error instanceof Cancelled || signal.aborted) return;
      this.stop.abort();
      this.show({ fault: error instanceof Refused ? error.fault : { text: String(error), problems: [] } });
    }
    if (!signal.aborted || this.stop.signal === signal) this.show({ busy: false });
  }

  /** What the figure runs and claims; with `runs`, its simulation as well. */
  begin(figure: FigureOf, runs?: number): Promise<void> {
    return this.guarded(async (signal) => {
      this.show({ figure, outline: undefined, fault: undefined, outcome: undefined, curves: undefined, done: 0, all: 0 });
      const outline = await this.engine.ask({ ask: "figure", figure }, SOON, signal);
      this.show({ outline });
      if (runs !== undefined) await this.simulate(figure, outline, runs, signal);
    });
  }

  private async simulate(figure: FigureOf, { worlds }: FigureOutline, runs: number, signal: AbortSignal): Promise<void> {
    this.show({ done: 0, all: worlds.length * runs });
    const records: string[][] = [];
    const one = async (run: number, at: number): Promise<void> => {
      const world = { text: worlds[at]!.text, file: `${figure.study}.toml`, set: [] };
      const text = await this.engine.asText({ ask: "measure", world, run }, THEN + run, signal);
      if (text.startsWith('{"error"')) throw new Refused(JSON.parse(text).error);
      records[run]![at] = text;
      this.show({ done: this.view.done + 1 });
    };
    const all = Array.from({ length: runs }, (_, run) => {
      records.push([]);
      return Promise.all(worlds.map((_, at) => one(run, at)));
    });
    // One that fails ends all; nobody waits for the others.
    for (const each of all) each.catch(() => {});
    let curves: Promise<void> | undefined;
    for (let run = 0; run < runs; run++) {
      await all[run];
      const list = records.slice(0, run + 1).flat().join(",");
      const outcome = await this.engine.ask({ ask: "judge", figure, runs: run + 1 }, SOON, signal, ["[", list, "]"]);
      this.show({ outcome });
      if (run === 0 && outcome.studies[0]?.over_time) {
        curves = this.engine.ask({ ask: "curves", figure }, THEN, signal).then((curves) => this.show({ curves }));
        curves.catch(() => {});
      }
    }
    await curves;
  }
}
