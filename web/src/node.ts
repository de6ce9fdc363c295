// The node that `airlane lab NODE` watches: what its server says, and the token that it wants to see.
import { useEffect, useState } from "preact/hooks";

export interface Point {
  at_s: number;
  sent_bps: number | null;
  delivered_bps: number | null;
  delay_s: number | null;
  lost_before_repair: number | null;
  lost_after_repair: number | null;
}

export interface Line {
  service: string;
  points: Point[];
}

export interface Flow {
  protocol: string;
  here: string;
  there: string;
  service: string | null;
  behaviour: string;
  why: string;
  rule: string | null;
  sent_bytes: number;
  received_bytes: number;
  age_s: number;
  silent_s: number;
}

export interface Service {
  number: number;
  name: string;
  scheme: string;
  queue_packets: number;
  draining: boolean;
  waiting: boolean;
  ledger: { [counter: string]: number };
  metrics: { delay_s: number | null; queueing_s?: number | null };
}

/** As `airlane status --json` prints it: what is shown of it. */
interface Status {
  name: string;
  peers: {
    name: string;
    address: unknown;
    sent_bytes: number;
    received_bytes: number;
    session: { state: string; rtt_ns: number | null };
    services: Service[];
    drops: { [reason: string]: number };
  }[];
  drops: { [reason: string]: number };
}

export type Advice =
  | { is: "none" | "coming" }
  | { is: "simulated"; done: number; all: number }
  | { is: "given"; text: string; file: string | null }
  | { is: "failed"; why: string };

export interface State {
  file: string | null;
  socket: string;
  at_s: number;
  away: { for_s: number; why: string } | null;
  status: Status | null;
  head: string | null;
  findings: { what: string; verdict: "good" | "warning" | "bad"; found: string; help?: string }[];
  callers: string[];
  peer: {
    name: string;
    head: string;
    losses: [number | null, number | null];
    flows: { flows: Flow[]; others: number; classes?: string } | null;
    history: Line[];
    without_history: number;
  } | null;
  read_only: string | null;
  happened: { ago_s: number; what: string }[];
  advice: Advice;
}

const KEPT = "airlane-token";
const EVERY = 1000;

/**
 * Takes the token out of the address, where it would be seen and remembered, and keeps it as long as this tab is open.
 * Whether there was one.
 */
export function takeToken(): boolean {
  const found = /^#watch=(.*)$/.exec(location.hash);
  if (!found) return false;
  sessionStorage.setItem(KEPT, found[1]!.replace(/[^0-9a-zA-Z]/g, ""));
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** Whether the page was served with a node to watch. */
export function hasNode(): boolean {
  return document.getElementById("lab")!.dataset.node !== undefined;
}

/** What the server said in place of an answer. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    words: string,
  ) {
    super(words);
  }
}

async function ask<T>(path: string, options: RequestInit = {}): Promise<T> {
  const headers = { "X-Airlane-Token": sessionStorage.getItem(KEPT) ?? "" };
  let answer: Response;
  try {
    answer = await fetch(`node/${path}`, { ...options, headers, cache: "no-store", referrerPolicy: "no-referrer" });
  } catch {
    throw new Error("`airlane lab` does not answer: start it again, and open the address that it prints");
  }
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  return answer.json();
}

/** Asks for what a reload would change, or, with what was shown of it, for the reload. */
export async function reload(shown?: string[]): Promise<string[]> {
  const options: RequestInit = { method: "POST", ...(shown ? { body: JSON.stringify({ changes: shown }) } : {}) };
  const { changes } = await ask<{ changes: string[] }>(shown ? "reload" : "dry-run", options);
  return changes;
}

/** Asks what is advised for what these files recorded. */
export async function advise(recordings: File[], words: { apps: string; want: string; "round-trip": string }): Promise<void> {
  const first = { ...words, recordings: recordings.map(({ name, size }) => ({ name, bytes: size })) };
  await ask("advice", { method: "POST", body: new Blob([`${JSON.stringify(first)}\n`, ...recordings]) });
}

/** What the server said last, and what is wrong where there is nothing newer. */
export interface Watched {
  state?: State;
  wrong?: string;
  /** Whether asking again is of no use. */
  refused?: boolean;
}

/** Asks again and again while somebody looks. */
export function useNode(peer: string | undefined, looks: boolean): Watched {
  const [watched, setWatched] = useState<Watched>({});
  useEffect(() => {
    if (!looks) return;
    let timer = 0;
    let ended = false;
    const turn = async () => {
      let refused = false;
      try {
        if (!document.hidden) {
          const state = await ask<State>(peer === undefined ? "state" : `state?peer=${peer}`);
          if (!ended) setWatched({ state });
        }
      } catch (error) {
        refused = error instanceof Refused && error.status === 403;
        if (!ended) setWatched(({ state }) => ({ ...(state ? { state } : {}), wrong: (error as Error).message, refused }));
      }
      if (!ended && !refused) timer = setTimeout(turn, EVERY);
    };
    void turn();
    const seen = () => {
      if (document.hidden) return;
      clearTimeout(timer);
      void turn();
    };
    document.addEventListener("visibilitychange", seen);
    return () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [peer, looks]);
  return watched;
}
