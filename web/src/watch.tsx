import { sort, sum } from "d3-array";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Advice } from "./advice";
import { Chart, Legend } from "./chart";
import { type Line, type Point, type State, useNode } from "./node";
import type { Curve } from "./plot";
import { Theme } from "./theme";
import { ago, bytes, percent, seconds } from "./units";

/** As many lines as the page has colours. */
const MOST_LINES = 6;
const MOST_FLOWS = 20;

const COURSES: { title: string; y: string; of(point: Point): number | null }[] = [
  { title: "Sent to", y: "bit/s", of: (point) => point.sent_bps },
  { title: "Received from", y: "bit/s", of: (point) => point.delivered_bps },
  { title: "Delay on the link, with repairs, from", y: "ms", of: ({ delay_s }) => (delay_s === null ? null : 1e3 * delay_s) },
  { title: "Lost on the link, before repair, from", y: "%", of: ({ lost_before_repair: lost }) => (lost === null ? null : 100 * lost) },
  { title: "Lost for good, after repair, from", y: "%", of: ({ lost_after_repair: lost }) => (lost === null ? null : 100 * lost) },
];

/** As many as have a colour, in their order: those that carried most, and none that carried nothing. */
function busiest(lines: Line[]): Line[] {
  const carried = ({ points }: Line) => sum(points, ({ sent_bps, delivered_bps }) => (sent_bps ?? 0) + (delivered_bps ?? 0));
  const busy = sort(lines.filter(carried), (line) => -carried(line)).slice(0, MOST_LINES);
  return lines.filter((line) => busy.includes(line));
}

function Course({ state, drawn, at }: { state: State; drawn: Line[]; at: number }) {
  const { title, y, of } = COURSES[at]!;
  const { name } = state.peer!;
  const curves = useMemo(() => {
    return drawn.map(({ service, points }, at): Curve => {
      return { name: service, at, points: points.map((point) => ({ x: Number((point.at_s - state.at_s).toFixed(1)), y: of(point) })) };
    });
  }, [state]);
  return <Chart title={`${title} ${name}`} x="seconds from now" y={y} curves={curves} />;
}

function History({ state }: { state: State }) {
  const { history, without_history } = state.peer!;
  const drawn = busiest(history);
  const others = history.filter((line) => !drawn.includes(line));
  return (
    <section aria-labelledby="minutes">
      <div class="head">
        <h2 id="minutes">The last ten minutes</h2>
        <Legend of={drawn.map(({ service }, at) => ({ name: service, at }))} />
      </div>
      <p class="small">
        A gap is a time of which nothing is known: the node was away, nothing came, or the service cannot see its losses.
        {others.length > 0 && ` Idle, or too many to be drawn: ${others.map(({ service }) => service).join(", ")}.`}
        {without_history > 0 && ` No history is kept of ${without_history} services.`}
      </p>
      <div class="charts">
        {COURSES.map((_, at) => (
          <Course state={state} drawn={drawn} at={at} />
        ))}
      </div>
    </section>
  );
}

function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>{children}</table>
    </div>
  );
}

function Heads({ words }: { words: string[] }) {
  return (
    <thead>
      <tr>
        {words.map((word) => (
          <th scope="col">{word}</th>
        ))}
      </tr>
    </thead>
  );
}

/** Everybody at the other ends; one of several is chosen. */
function Peers({ state, choose }: { state: State; choose(name: string): void }) {
  const peers = state.status!.peers;
  const shown = state.peer?.name;
  return (
    <section aria-labelledby="peers">
      <h2 id="peers">Peers</h2>
      <Scroll label="Peers">
        <Heads words={["peer", "session", "address", "round trip", "received", "sent"]} />
        <tbody>
          {peers.map(({ name, session, address, received_bytes, sent_bytes }) => (
            <tr>
              <th scope="row">{name}</th>
              <td>{session.state}</td>
              <td>{address ? String(address) : "unknown"}</td>
              <td>{seconds(session.rtt_ns === null ? null : session.rtt_ns / 1e9)}</td>
              <td>{bytes(received_bytes)}</td>
              <td>{bytes(sent_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </Scroll>
      {peers.length > 1 && (
        <div class="tabs" role="radiogroup" aria-label="Peer to look at">
          {peers.map(({ name }) => (
            <label class={name === shown ? "tab on" : "tab"}>
              <input type="radio" name="peer" checked={name === shown} onChange={() => choose(name)} />
              {name}
            </label>
          ))}
        </div>
      )}
      {state.peer && <p class="said">{state.peer.head}</p>}
      {state.peer && state.peer.losses[0] !== null && (
        <p>
          Of the packets from {state.peer.name} the link has lost {percent(state.peer.losses[0])} since the start; after repair{" "}
          {percent(state.peer.losses[1])} are missing.
        </p>
      )}
    </section>
  );
}

function Services({ state }: { state: State }) {
  const peer = state.status!.peers.find(({ name }) => name === state.peer?.name);
  if (!peer) return null;
  return (
    <section aria-labelledby="services">
      <h2 id="services">Services</h2>
      <Scroll label="Services">
        <Heads words={["service", "scheme", "sent", "repairs", "wait", "delivered", "recovered", "lost for good", "delay"]} />
        <tbody>
          {peer.services.map(({ number, name, scheme, ledger, queue_packets, metrics, draining, waiting }) => (
            <tr>
              <th scope="row">
                {number} {name}
                {draining ? " (leaving)" : waiting ? " (the peer has none)" : ""}
              </th>
              <td>{scheme}</td>
              <td>{ledger.packets_sent}</td>
              <td>{ledger.repair_frames_sent}</td>
              <td>{queue_packets}</td>
              <td>{ledger.packets_delivered}</td>
              <td>{ledger.packets_recovered}</td>
              <td>{ledger.residual_lost}</td>
              <td>{seconds(metrics.delay_s)}</td>
            </tr>
          ))}
        </tbody>
      </Scroll>
      <p class="small">Packets since the start, to and from {peer.name}; the delay is that of the link, with repairs.</p>
    </section>
  );
}

function Flows({ state }: { state: State }) {
  const known = state.peer?.flows;
  const shown = known?.flows.slice(0, MOST_FLOWS) ?? [];
  const more = known ? known.flows.length - shown.length + known.others : 0;
  return (
    <section aria-labelledby="flows">
      <h2 id="flows">Flows</h2>
      {state.read_only && <p class="warning">{state.read_only}</p>}
      {known && shown.length === 0 && (
        <p class="small">
          No flow is known. A node tracks flows if its file leaves <code>classes</code> out, or has a rule with <code>behaves</code>.
        </p>
      )}
      {shown.length > 0 && (
        <Scroll label="Flows">
          <Heads words={["flow", "service", "why", "sent", "received"]} />
          <tbody>
            {shown.map((flow) => (
              <tr>
                <th scope="row">
                  {flow.protocol} {flow.here} → {flow.there}
                  {flow.silent_s >= 1 && <span class="good">silent for {ago(Math.round(flow.silent_s))}</span>}
                </th>
                <td>{flow.service ?? "only the peer has sent"}</td>
                <td class="why">
                  {flow.behaviour}: {flow.why}
                  {flow.rule && (
                    <details>
                      <summary>a rule that keeps it there</summary>
                      <code>{known?.classes ? `classes = [${flow.rule}, "${known.classes}"]` : flow.rule}</code>
                    </details>
                  )}
                </td>
                <td>{bytes(flow.sent_bytes)}</td>
                <td>{bytes(flow.received_bytes)}</td>
              </tr>
            ))}
          </tbody>
        </Scroll>
      )}
      {more > 0 && <p class="small">{more} more flows are not shown.</p>}
    </section>
  );
}

function Findings({ state }: { state: State }) {
  const peers = state.status?.peers ?? [];
  const all = [state.status?.drops ?? {}, ...peers.map(({ drops }) => drops)];
  const drops = new Map<string, number>();
  for (const [reason, count] of all.flatMap((drops) => Object.entries(drops))) drops.set(reason, (drops.get(reason) ?? 0) + count);
  return (
    <section aria-labelledby="findings">
      <h2 id="findings">State</h2>
      {state.head && <p class="said">{state.head}</p>}
      <ul class="findings">
        {state.findings.map(({ verdict, found, help }) => (
          <li class={verdict}>
            <strong>{verdict}</strong> {found}
            {help && <span class="good">{help}</span>}
          </li>
        ))}
        {state.callers.map((caller) => (
          <li class="warning">
            <strong>refused</strong> {caller}
          </li>
        ))}
      </ul>
      {drops.size > 0 && (
        <p class="small">
          Dropped outside of the services: {[...drops].map(([reason, count]) => `${count} ${reason}`).join(", ")}.
        </p>
      )}
      {state.happened.length > 0 && (
        <details open={state.away !== null}>
          <summary>What happened</summary>
          <ul class="small">
            {state.happened.map(({ ago_s, what }) => (
              <li>
                {ago(ago_s)} ago: {what}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

/** A live node. */
export function Watch({ tabs, looks }: { tabs: ComponentChildren; looks: boolean }) {
  const [peer, setPeer] = useState<string>();
  const { state, wrong, refused } = useNode(peer, looks);
  const away = state?.away;
  return (
    <>
      <header>
        <h1>Airlane lab</h1>
        {tabs}
        <p class="tag">{state?.status ? `${state.status.name}, live.` : "A live node."}</p>
        <Theme />
      </header>
      <main class="watch">
        {wrong && (
          <p class="fault" role="alert">
            {wrong}
            {state && !refused && " What is below is old."}
          </p>
        )}
        {away && (
          <p class="fault" role="alert">
            The node has not answered for {ago(away.for_s)}: {away.why}. {state.status ? "The figures below are the last ones; the page continues when the node is back." : "The page continues when the node answers."}
          </p>
        )}
        {!state && !wrong && <p role="status">Waiting for the node’s status.</p>}
        {state?.status && (
          <>
            <Findings state={state} />
            <Peers state={state} choose={setPeer} />
            <Services state={state} />
            {state.peer && <History state={state} />}
            <Flows state={state} />
          </>
        )}
        {state && <Advice state={state} />}
      </main>
    </>
  );
}
