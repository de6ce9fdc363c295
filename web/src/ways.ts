import type { Json, Outline, Table } from "./protocol";
import type { Way } from "./state";

interface Choice {
  label: string;
  /** What it sets on a link, or on a transport. */
  set: string[];
}

const one = (scheme: string) => [`services=[{ number = 0, name = "all", rate = 1.0, ${scheme} }]`, "classes=[]"];

/** How links that lose frames are repaired. */
export const REPAIRS: ReadonlyMap<string, Choice> = new Map([
  ["", { label: "as in the file", set: [] }],
  ["none", { label: "no repair", set: ["services=[]", "classes=[]"] }],
  [
    "goals",
    {
      label: "services by goal",
      set: [
        'services=[{ number = 1, name = "files", goal = "bulk" }, { number = 2, name = "pages", goal = "web" }, { number = 3, name = "calls", goal = "voice" }, { number = 4, name = "interactive", goal = "interactive" }, { number = 5, name = "video", goal = "video" }, { number = 6, name = "paced", goal = "paced" }]',
        "classes=behaviour",
      ],
    },
  ],
  ["sr-m2", { label: "SR/M2 for all", set: one('scheme = { kind = "sr-m2" }') }],
  ["sr", { label: "SR for all", set: one('scheme = { kind = "sr" }') }],
  ["gbn", { label: "GBN for all", set: one('scheme = { kind = "gbn" }') }],
  ["rlp", { label: "RLP for all", set: one('scheme = { kind = "rlp" }') }],
  ["rlp-oos", { label: "RLP/OOS for all", set: one('scheme = { kind = "rlp-oos" }') }],
  ["xor", { label: "XOR parities for all", set: one('scheme = { kind = "xor" }') }],
  ["rse", { label: "Reed-Solomon for all", set: one('scheme = { kind = "rse" }') }],
  ["snoop", { label: "Snoop for all", set: one('scheme = { kind = "snoop", base-station = "first" }') }],
]);

/** How TCP reacts. */
export const TCPS: ReadonlyMap<string, Choice> = new Map([
  ["", { label: "as in the file", set: [] }],
  ["reno", { label: "Reno", set: ["congestion=reno"] }],
  ["cubic", { label: "CUBIC", set: ["congestion=cubic"] }],
  ["bbr", { label: "BBR", set: ["congestion=bbr"] }],
]);

/** A name as a step of a path. */
export function key(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name);
}

function kind(value: Json | undefined): string {
  return value && typeof value === "object" && !Array.isArray(value) ? String(value.kind ?? "") : "";
}

/** Whether frames get lost on a link, one way or the other. */
export function isLossy(link: Table): boolean {
  const errors = (link.errors ?? {}) as Table;
  const kinds = "kind" in errors ? [kind(errors)] : [kind(errors.down), kind(errors.up)];
  return kinds.some((kind) => kind !== "" && kind !== "none");
}

/** Links whose repair can be chosen: live nodes and GSM's circuits have their own. */
function repairable(outline: Outline): string[] {
  const links = Object.entries(outline.scenario.links ?? {});
  const own = ([, link]: [string, Table]) => link.node !== undefined || link.gsm !== undefined;
  const has = ([, link]: [string, Table]) => Array.isArray(link.services) && link.services.length > 0;
  return links.filter((entry) => !own(entry) && (has(entry) || isLossy(entry[1]))).map(([name]) => name);
}

function tcpFlows(outline: Outline): string[] {
  return outline.scenario.flows.filter((flow) => kind(flow.transport) === "tcp").map((flow) => flow.name);
}

export function choices(outline: Outline): { repairs: boolean; tcps: boolean } {
  return { repairs: repairable(outline).length > 0, tcps: tcpFlows(outline).length > 0 };
}

/** What a way sets on top of a scenario. */
export function assignments(way: Way, outline: Outline): string[] {
  const repair = REPAIRS.get(way.repair)?.set ?? [];
  const tcp = TCPS.get(way.tcp)?.set ?? [];
  return [
    ...repairable(outline).flatMap((link) => repair.map((set) => `links.${key(link)}.${set}`)),
    ...tcpFlows(outline).flatMap((flow) => tcp.map((set) => `flows[${key(flow)}].transport.${set}`)),
  ];
}

/** What it is called. */
export function label(way: Way): string {
  const parts = [REPAIRS.get(way.repair), TCPS.get(way.tcp)].filter((choice) => choice && choice.set.length > 0);
  return parts.map((choice) => choice!.label).join(", ") || "as in the file";
}

