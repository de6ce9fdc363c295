import { sum } from "d3-array";
import { format } from "d3-format";
import type { Column } from "./play";
import type { DirectionResult } from "./protocol";
import { Table } from "./chart";

type Part = [words: string, count: number];

interface Account {
  of: string;
  frames: Part[];
  packets: Part[];
}

/** Frames, no packets: they are told and stand in no sum. */
const LATE = "late repairs";
const FRAMES = ["first sent", "repairs", "control"];
const PACKETS = ["delivered at first", "recovered", "lost for good", "dropped before sending", "waiting or under way", LATE];

/** `toLocaleString` takes a millisecond or two at each call. */
const grouped = format(",");

const DROPS = ["dropped_queue_full", "dropped_codel", "dropped_window_full", "dropped_disconnected", "dropped_too_old", "dropped_too_big"];

/** Frames that services sent and what became of packets, as docs/metrics.md defines the counters. */
function account(direction: DirectionResult): Account[] {
  const services = direction.services ?? [];
  if (services.length === 0) {
    const { offered, dropped_queue, lost_air, delivered } = direction.channel;
    if (offered.frames === 0) return [];
    return [
      {
        of: "no service",
        frames: [["first sent", offered.frames - dropped_queue.frames]],
        packets: [
          ["delivered at first", delivered.frames],
          ["lost for good", lost_air.frames],
          ["dropped before sending", dropped_queue.frames],
          ["waiting or under way", direction.under_way.frames],
        ],
      },
    ];
  }
  return services
    .filter((service) => service.sender.frames_sent! > 0)
    .map(({ name, scheme, sender, receiver, waiting_packets }) => {
      const [sent, repairs, control] = [sender.frames_sent!, sender.repair_frames_sent!, sender.control_frames_sent!];
      const under = Math.max(0, sender.packets_sent! - receiver.packets_delivered! - receiver.residual_lost!);
      return {
        of: `${name} (${scheme})`,
        frames: [["first sent", sent - repairs - control], ["repairs", repairs], ["control", control]] as Part[],
        packets: [
          ["delivered at first", receiver.packets_delivered! - receiver.packets_recovered!],
          ["recovered", receiver.packets_recovered!],
          ["lost for good", receiver.residual_lost!],
          ["dropped before sending", sum(DROPS, (name) => sender[name])],
          ["waiting or under way", waiting_packets + under],
          [LATE, receiver.late!],
        ] as Part[],
      };
    });
}

function Stack({ what, parts, words }: { what: string; parts: Part[]; words: string[] }) {
  const inSum = parts.filter(([word]) => word !== LATE);
  const total = sum(inSum, ([, count]) => count);
  const told = parts.filter(([, count]) => count > 0).map(([word, count]) => `${word} ${count}`);
  return (
    <div class="stack">
      <span class="what">{what}</span>
      <span class="stacked" role="img" aria-label={`${what}: ${told.join(", ") || "none"}`}>
        {inSum.map(([word, count]) => count > 0 && <span class={`part part-${words.indexOf(word)}`} style={{ flexGrow: count / total }} title={`${word}: ${count}`} />)}
      </span>
      <span class="small told">
        {parts.filter(([, count]) => count > 0).map(([word, count]) => (
          <span>
            {word !== LATE && <i class={`swatch part-${words.indexOf(word)}`} aria-hidden="true" />} {word} {grouped(count)}{" "}
          </span>
        ))}
      </span>
    </div>
  );
}

/** Where frames and packets went on the links that lose frames or repair them, in the first run. */
export function Ledger({ columns }: { columns: Column[] }) {
  const of = (column: Column) =>
    (column.runs[0] ?? column.watched?.result)?.links.flatMap((link) =>
      (["down", "up"] as const)
        .filter((way) => link[way].channel.lost_air.frames > 0 || (link[way].services ?? []).length > 0)
        .flatMap((way) => account(link[way]).map((account) => ({ ...account, link: `${link.name}, ${way}` }))),
    ) ?? [];
  const rows = () =>
    columns.flatMap((column) =>
      of(column).map(({ link, of, frames, packets }) => {
        const count = (parts: Part[], word: string) => parts.find(([other]) => other === word)?.[1] ?? null;
        return [column.label, link, of, ...FRAMES.map((word) => count(frames, word)), ...PACKETS.map((word) => count(packets, word))];
      }),
    );
  return (
    <section aria-labelledby="ledger">
      <h2 id="ledger">Where frames and packets went</h2>
      <p class="small">In the first run, on links that lose frames or repair them.</p>
      <div class="ways">
        {columns.map((column, at) => (
          <div>
            <h3>
              <span class={`key way-${at}`} aria-hidden="true" /> {column.label}
            </h3>
            {of(column).map(({ link, of, frames, packets }) => (
              <div class="account">
                <h4>
                  {link}: {of}
                </h4>
                <Stack what="frames" parts={frames} words={FRAMES} />
                <Stack what="packets" parts={packets} words={PACKETS} />
              </div>
            ))}
          </div>
        ))}
      </div>
      <Table heads={["way", "link", "service", ...FRAMES, ...PACKETS]} rows={rows} />
    </section>
  );
}
