import { sort } from "d3-array";
import { useEffect, useRef, useState } from "preact/hooks";
import { csv, offer, offerPicture } from "./files";
import { type Axes, type Curve, colour, dash, draw } from "./plot";
import { inTurn } from "./turns";

interface ChartProps extends Axes {
  curves: Curve[];
  /** A time was chosen. */
  choose?(x: number): void;
}

/** Lines as a picture and as a table. */
export function Chart({ title, x, y, log, names, dots, curves, choose }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [near, setNear] = useState<{ left: number; lines: string[] }>();
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (width < 50) return;
    return inTurn(() => {
      const drawing = draw({ title, x, y, ...(log ? { log } : {}), ...(names ? { names } : {}), ...(dots ? { dots } : {}) }, curves, width);
      const { svg } = drawing;
      const at = (event: MouseEvent) => drawing.near(event.clientX - svg.getBoundingClientRect().left);
      svg.onpointermove = (event) => setNear(at(event));
      svg.onpointerleave = () => setNear(undefined);
      if (choose) {
        svg.classList.add("chosen");
        svg.onclick = (event) => choose(Math.max(0, at(event)?.x ?? 0));
      }
      place.current?.replaceChildren(svg);
    });
  }, [width, curves, title, x, y, log, dots, names?.join()]);
  const rows = () => {
    const times = sort(new Set(curves.flatMap((curve) => curve.points.map((point) => point.x))));
    const maps = curves.map((curve) => new Map(curve.points.map((point) => [point.x, point.y])));
    return times.map((time) => [names?.[time] ?? time, ...maps.map((map) => map.get(time) ?? null)]);
  };
  const heads = [x, ...curves.map((curve) => `${curve.name}, ${y}`)];
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div class="drawn">
        <div ref={place} class="picture" />
        {near && (
          <div class={near.left > width / 2 ? "pointed before" : "pointed"} style={{ left: `${near.left}px` }} aria-hidden="true">
            {near.lines.map((line) => <div>{line}</div>)}
          </div>
        )}
      </div>
      <div class="small row">
        <Table heads={heads} rows={rows} />
        <button type="button" onClick={() => offer(`${name}.csv`, csv([heads, ...rows()]))}>CSV</button>
        <button type="button" onClick={() => offerPicture(place.current!, name, "svg")}>SVG</button>
        <button type="button" onClick={() => offerPicture(place.current!, name, "png")}>PNG</button>
      </div>
    </figure>
  );
}

/** How pictures draw their lines, or the points that stand alone. */
export function Legend({ of }: { of: Pick<Curve, "name" | "at" | "dots">[] }) {
  return (
    <span class="legend">
      {of.map(({ name, at, dots }) => (
        <span>
          <svg viewBox="0 0 26 10" width="26" height="10" aria-hidden="true">
            {dots ? (
              <path d="M13 5h0" stroke={colour(at)} stroke-width="8" stroke-linecap={at % 2 ? "square" : "round"} />
            ) : (
              <path d="M0 5H26" stroke={colour(at)} stroke-width="3" stroke-dasharray={dash(at)} />
            )}
          </svg>{" "}
          {name}
        </span>
      ))}
    </span>
  );
}

/** What a picture shows, for who reads numbers. */
export function Table({ heads, rows }: { heads: string[]; rows(): (number | string | null)[][] }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table</summary>
      {open && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>{heads.map((head) => <th scope="col">{head}</th>)}</tr>
            </thead>
            <tbody>
              {rows().map((row) => (
                <tr>{row.map((value) => <td>{typeof value === "number" ? Number(value.toPrecision(6)) : (value ?? "-")}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
