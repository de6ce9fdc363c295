// What crates/host/web answers: the files in its `src` have the same types.

export interface World {
  text: string;
  /** What errors call it. */
  file: string;
  /** As of `airlane sim run --set`, in this order. */
  set: string[];
}

export type Question =
  | { ask: "shipped" }
  | { ask: "outline"; world: World }
  | { ask: "toml"; world: World }
  | { ask: "run"; world: World; run: number }
  | { ask: "glance"; world: World; until_s: number }
  | { ask: "watch"; world: World; run: number; stopped_s: number }
  | { ask: "report"; world: World; runs: number }
  | { ask: "estimate"; metrics: Columns[] }
  | {
      ask: "events";
      world: World;
      run: number;
      from_ns: number;
      to_ns: number;
      flows: string[];
      links: string[];
      kinds: string[];
    }
  | { ask: "schema" }
  | { ask: "tc"; text: string; device: string; reverse: string; reverse_device: string }
  | { ask: "live"; text: string; file: string; rate: string; delay: string; loss: number }
  // The bytes of the recordings follow.
  | { ask: "recording"; recordings: { name: string; bytes: number }[] }
  | { ask: "works" }
  | { ask: "figure"; figure: FigureOf }
  | { ask: "measure"; world: World; run: number }
  | { ask: "curves"; figure: FigureOf }
  // The answers of `measure` follow, as a list.
  | { ask: "judge"; figure: FigureOf; runs: number };

/** A figure of a published work, with assignments on top of each of its scenarios. */
export interface FigureOf {
  work: string;
  study: string;
  set: string[];
}

/** Values of a metric, run by run, of each column. */
export interface Columns {
  metric: string;
  columns: (number | null)[][];
}

export interface Place {
  in_text: boolean;
  line: number;
  column: number;
  width: number;
  path: string;
  message: string;
  help: string;
  text: string;
}

export interface Fault {
  text: string;
  problems: Place[];
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Table = { [key: string]: Json };

export interface Metric {
  name: string;
  words: string;
  unit: "bit/s" | "s" | "ratio" | "B" | "count";
  higher: boolean;
  headline: boolean;
}

export interface FlowOutline {
  name: string;
  app: string;
  metrics: Metric[];
}

export interface Outline {
  name: string;
  hash: string;
  seed: number;
  duration_s: number;
  scenario: { [key: string]: Json } & {
    links: { [name: string]: Table };
    flows: (Table & { name: string; ends: [string, string] })[];
  };
  warnings: string[];
  flows: FlowOutline[];
}

export interface Estimate {
  n: number;
  runs: number;
  mean: number;
  sd: number;
  ci95_half_width?: number;
}

export interface Told {
  shown: string;
  ratio: string | null;
  row: { value: Estimate | null; ratio: Estimate | null; difference: Estimate | null };
}

export interface Ledger {
  [counter: string]: number;
}

export interface ServiceResult {
  number: number;
  name: string;
  scheme: string;
  waiting_packets: number;
  sender: Ledger;
  receiver: Ledger;
}

export interface Count {
  frames: number;
  bytes: number;
}

export interface DirectionResult {
  channel: { offered: Count; dropped_queue: Count; lost_air: Count; delivered: Count };
  under_way: Count;
  utilisation_ratio: number;
  services?: ServiceResult[];
}

export interface RunResult {
  scenario: string;
  seed: number;
  run: number;
  stopped_s: number;
  finished: boolean;
  events: number;
  flows: (Table & { name: string; over_time?: { interval_s: number; throughput_bps: number[] } })[];
  links: { name: string; down: DirectionResult; up: DirectionResult }[];
}

export interface Series {
  flow: string;
  interval_s: number;
  delay_mean_s: (number | null)[];
  delay_max_s: (number | null)[];
  cwnd_segments: (number | null)[];
  timeouts_s: number[];
}

export interface Watched {
  result: RunResult;
  series: Series[];
}

/** docs/events.md says what the fields are. */
export interface EventRecord {
  time_ns: number;
  event: string;
  link?: string;
  direction?: string;
  from_node?: string;
  to_node?: string;
  service?: string;
  frame?: string;
  frame_seq?: number;
  frame_ack?: number;
  frame_len_bytes?: number;
  departs_ns?: number;
  reason?: string;
  flow?: string;
  connection?: number;
  packet?: string;
  seq?: number;
  len_bytes?: number;
  retransmission?: boolean;
  created_ns?: number;
  rto_ns?: number;
}

/** A scenario to start from. */
export interface Start {
  text: string;
  notes: string[];
}

export interface WorkOutline {
  id: string;
  title: string;
  published: boolean;
  figures: { id: string; title: string; claims: number }[];
}

export type Verdict = "misses" | "near" | "source-inconsistent" | "consistent" | "holds";

export interface FigureOutline {
  runs: number;
  worlds: { hash: string; text: string; points: [study: string, at: string[]][] }[];
  claims: { id: string; published: string; class: string | null; checks: string[]; committed: Verdict | null }[];
}

export interface Comparison {
  check: string;
  at: string[];
  measured: number;
  against: number;
  ci95_half_width: number;
  unit: string;
  verdict: Verdict;
}

export interface ClaimOutcome {
  id: string;
  kind: "quantitative" | "qualitative";
  measured: string;
  verdict: Verdict | null;
  comparisons?: Comparison[];
  note?: string;
}

export interface Panel {
  title: string;
  y_label: string;
  unit: string;
  values: ({ value: number; ci95_half_width: number | null } | null)[][];
}

/** One drawing area over the time of one run. */
export interface OverTimePanel {
  title: string;
  /** The column `at` of its rows. */
  at: string;
  y_label: string;
  unit: string;
  /** The quantities of its rows: the curve, then marks. */
  quantities: string[];
  level: number | null;
}

/** As `airlane study run` writes it. */
export interface WorkOutcome {
  runs: number;
  claims: ClaimOutcome[];
  apart: ClaimOutcome[];
  studies: {
    title: string;
    figure: {
      kind: "lines" | "bars";
      log: boolean;
      x_label: string;
      x: string[];
      lines_label: string;
      lines: { id: string; label: string; slot: number }[];
      panels: Panel[];
      /** Published values, and the values that agree with them. */
      marks: { panel: number; line: number; x: number; value: number; band: [number, number] }[];
    } | null;
    over_time?: {
      until_s: number | null;
      lines_label: string;
      lines: { id: string; label: string; slot: number }[];
      panels: OverTimePanel[];
    };
  }[];
}

export interface Answers {
  shipped: { scenarios: [name: string, text: string][]; glossary: string };
  outline: Outline;
  toml: string;
  run: RunResult;
  glance: { result: RunResult; cut: boolean };
  watch: Watched;
  report: string;
  estimate: Told[][];
  events: { events: EventRecord[]; cut: boolean };
  schema: Table;
  tc: Start;
  live: Start;
  recording: Start;
  works: WorkOutline[];
  figure: FigureOutline;
  measure: Table;
  judge: WorkOutcome;
  curves: string | null;
}
