import { ticks } from "d3-array";
import { useRef, useState } from "preact/hooks";
import type { Engine } from "./engine";
import { Refused } from "./engine";
import type { Column } from "./play";
import { Table } from "./chart";
import { offerPicture } from "./files";
import { NumberField } from "./number";
import type { EventRecord, Outline } from "./protocol";

const S = 1e9;
/** So long after the time that was chosen a packet is looked for. */
const LOOK_S = 1;
const MOST = 80;

interface Story {
  packet: EventRecord;
  events: EventRecord[];
  cut: boolean;
}

const same = (a: EventRecord, b: EventRecord) => a.flow === b.flow && a.connection === b.connection && a.packet === b.packet && a.seq === b.seq;

/** What happened to a packet, and what ends of links and hosts did about it. */
function story(events: EventRecord[], lost: boolean): Story | undefined {
  const carries = new Set(["data", "datagram", "request"]);
  const sent = events.filter((event) => event.event === "packet-sent" && carries.has(event.packet ?? ""));
  const losses = events.filter((event) => event.event === "frame-lost" && event.packet !== undefined);
  const packet = lost ? (sent.find((one) => losses.some((loss) => same(one, loss))) ?? sent[0]) : sent[0];
  if (!packet) return undefined;
  const own = events.filter((event) => same(event, packet));
  const frames = new Set(own.filter((event) => event.frame_seq !== undefined).map((event) => `${event.link} ${event.service} ${event.frame_seq}`));
  const end = Math.max(...own.map((event) => event.time_ns), packet.time_ns);
  const told = events.filter((event) => {
    if (event.time_ns < packet.time_ns || event.time_ns > end) return false;
    if (same(event, packet)) return true;
    // Requests for its frames, and timers of the same sender.
    if (event.frame === "nak") return frames.has(`${event.link} ${event.service} ${event.frame_seq}`);
    return ["timeout", "fast-retransmit"].includes(event.event) && event.flow === packet.flow;
  });
  return { packet, events: told.slice(0, MOST), cut: told.length > MOST };
}

function words(event: EventRecord): string {
  const frame = event.frame ? `${event.frame}${event.frame_seq === undefined ? "" : ` ${event.frame_seq}`}` : "packet";
  switch (event.event) {
    case "packet-sent":
      return `${event.flow} sends ${event.packet} ${event.seq}${event.retransmission ? " again" : ""}`;
    case "packet-received":
      return `${event.flow} has ${event.packet} ${event.seq}`;
    case "packet-entered":
      return `enters ${event.link}${event.service ? `, service ${event.service}` : ""}`;
    case "packet-left":
      return `leaves ${event.link}`;
    case "packet-dropped":
      return `dropped: ${event.reason}`;
    case "frame-sent":
      return frame;
    case "frame-lost":
      return `${frame} lost: ${event.reason}`;
    case "frame-received":
      return `${frame} arrives`;
    default:
      return event.reason ? `${event.event}: ${event.reason}` : event.event;
  }
}

function Drawing({ story, nodes }: { story: Story; nodes: string[] }) {
  const { events, packet } = story;
  const frames = events.filter((event) => event.event === "frame-sent" || event.event === "frame-lost");
  const received = events.filter((event) => event.event === "frame-received");
  const end = Math.max(...events.map((event) => event.time_ns));
  const start = packet.time_ns;
  const width = Math.max(320, 150 * nodes.length);
  const x = (node: string) => 72 + ((width - 132) * nodes.indexOf(node)) / Math.max(1, nodes.length - 1);
  const height = Math.max(220, Math.min(1400, 26 * events.length));
  const y = (time: number) => 40 + ((height - 60) * (time - start)) / Math.max(1, end - start);
  const lost = frames.filter((event) => event.event === "frame-lost");
  const isLost = (sent: EventRecord) => lost.some((loss) => loss.time_ns === sent.time_ns && loss.link === sent.link && loss.direction === sent.direction && loss.frame_seq === sent.frame_seq);
  const arrival = (sent: EventRecord) =>
    received.find((event) => event.link === sent.link && event.direction === sent.direction && event.frame_seq === sent.frame_seq && event.frame === sent.frame && event.time_ns >= sent.time_ns)?.time_ns;
  const marks = events.filter((event) => ["timeout", "fast-retransmit", "packet-dropped"].includes(event.event));
  return (
    <svg class="ladder" style={{ maxWidth: `${1.3 * width}px` }} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Ladder of ${words(packet)}; the table has every step`} font-size="11" font-family="system-ui, sans-serif">
      {nodes.map((node) => (
        <g>
          <line class="rail" x1={x(node)} x2={x(node)} y1={30} y2={height - 10} />
          <text x={x(node)} y={18} text-anchor="middle" class="ink" font-weight="600">
            {node}
          </text>
        </g>
      ))}
      {frames
        .filter((event) => event.event === "frame-sent")
        .map((event) => {
          const [from, to] = [x(event.from_node ?? ""), x(event.to_node ?? "")];
          const gone = isLost(event);
          const until = arrival(event) ?? event.departs_ns ?? event.time_ns;
          const tip = gone ? from + 0.55 * (to - from) : to;
          const [top, bottom] = [y(event.time_ns), y(Math.min(end, Math.max(until, event.time_ns)))];
          const repair = ["retransmission", "copy", "parity"].includes(event.frame ?? "");
          const control = ["nak", "ack", "bitmap", "keepalive"].includes(event.frame ?? "");
          return (
            <g class={gone ? "lost" : repair ? "repair" : control ? "control" : "original"}>
              <line x1={from} y1={top} x2={tip} y2={bottom} stroke-width="1.6" stroke-dasharray={control ? "4 3" : undefined} />
              {gone ? (
                <path d={`M${tip - 5} ${bottom - 5}l10 10m0 -10l-10 10`} stroke-width="2" />
              ) : (
                <path d={`M${tip} ${bottom}l${to > from ? -7 : 7} -4m${to > from ? 7 : -7} 4l${to > from ? -7 : 7} 2`} stroke-width="1.6" fill="none" />
              )}
              <text x={(from + tip) / 2} y={(top + bottom) / 2 - 4} text-anchor="middle">
                {words(event)}
                {gone ? " lost" : ""}
              </text>
            </g>
          );
        })}
      {marks.map((event) => (
        <g class="lost">
          <circle cx={event.from_node ? x(event.from_node) : x(nodes[0]!)} cy={y(event.time_ns)} r={4} />
          <text x={(event.from_node ? x(event.from_node) : x(nodes[0]!)) + 8} y={y(event.time_ns) + 4}>
            {words(event)}
          </text>
        </g>
      ))}
      {ticks(0, (end - start) / 1e6, 5).map((ms) => (
        <text x={4} y={y(start + ms * 1e6) + 4}>
          {ms} ms
        </text>
      ))}
    </svg>
  );
}

/** The nodes of the way, from the first end to the second, as frames went. */
function rails(story: Story, outline: Outline): string[] {
  const nodes: string[] = [];
  for (const event of story.events) {
    for (const node of same(event, story.packet) && event.from_node && event.to_node ? [event.from_node, event.to_node] : []) {
      if (!nodes.includes(node)) nodes.push(node);
    }
  }
  return nodes.length > 0 ? nodes : (outline.scenario.flows.find((flow) => flow.name === story.packet.flow)?.ends ?? []);
}

/** A packet from host to host. */
export function Ladder({ engine, outline, columns, flow, at, setAt }: { engine: Engine; outline: Outline; columns: Column[]; flow: string; at: number; setAt(time: number): void }) {
  const [way, setWay] = useState(0);
  const [lost, setLost] = useState(true);
  const [found, setFound] = useState<{ story?: Story; text?: string; way: number }>();
  const place = useRef<HTMLDivElement>(null);
  const chosen = Math.min(way, columns.length - 1);
  const show = async () => {
    const from = Math.max(0, at);
    const question = { ask: "events", world: columns[chosen]!.world, run: 0, from_ns: Math.round(from * S), to_ns: Math.round((from + LOOK_S) * S) } as const;
    try {
      const { events } = await engine.ask({ ...question, flows: [], links: [], kinds: [] }, 0);
      const one = story(events.filter((event) => event.flow === undefined || event.flow === flow), lost);
      setFound(one ? { story: one, way: chosen } : { text: `${flow} sends nothing between ${from} s and ${from + LOOK_S} s.`, way: chosen });
    } catch (error) {
      setFound({ text: error instanceof Refused ? error.fault.text : String(error), way: chosen });
    }
  };
  const one = found?.story;
  const rows = () => (one ? one.events.map((event) => [event.time_ns / S, event.from_node ?? "", event.to_node ?? "", words(event), event.service ?? ""]) : []);
  return (
    <section aria-labelledby="ladder">
      <h2 id="ladder">A packet on its way</h2>
      <form
        class="row small"
        onSubmit={(event) => {
          event.preventDefault();
          void show();
        }}
      >
        <label>
          of {flow}, after{" "}
          <NumberField min={0} step="any" value={at} take={setAt} /> s
        </label>
        <label>
          <input type="checkbox" checked={lost} onChange={(event) => setLost(event.currentTarget.checked)} /> one that was lost, if there is one
        </label>
        <label>
          way{" "}
          <select aria-label="way of the packet" value={chosen} onChange={(event) => setWay(Number(event.currentTarget.value))}>
            {columns.map((column, at) => <option value={at}>{column.label}</option>)}
          </select>
        </label>
        <button type="submit">Show</button>
        {one && (
          <button type="button" onClick={() => offerPicture(place.current!, "ladder", "svg")}>
            SVG
          </button>
        )}
      </form>
      <p class="small">A click into a picture over time chooses the time.</p>
      {found?.text && <p role="status">{found.text}</p>}
      {one && (
        <>
          <p role="status">
            {columns[found.way]?.label}: {words(one.packet)} at {one.packet.time_ns / S} s.{one.cut ? ` The first ${MOST} steps are shown.` : ""}
          </p>
          <div class="scroll" ref={place} tabIndex={0} role="region" aria-label="Ladder">
            <Drawing story={one} nodes={rails(one, outline)} />
          </div>
          <Table heads={["time, s", "from", "to", "what", "service"]} rows={rows} />
        </>
      )}
    </section>
  );
}
