import * as Plot from "@observablehq/plot";
import { useEffect, useRef, useState } from "preact/hooks";
import { csv, offer, offerPicture } from "./files";

/** Colours that the colour-blind tell apart (Okabe and Ito), and dashes for who sees none. */
export const DASHES = ["", "6 3", "2 3", "9 3 2 3", "1 4", "12 4"];

export interface Curve {
  name: string;
  /** Which way it is of. */
  at: number;
  points: { x: number; y: number | null }[];
  marks?: number[];
}

interface ChartProps {
  title: string;
  /** What the axes measure, with units. */
  x: string;
  y: string;
  curves: Curve[];
  /** A time was chosen. */
  choose?(x: number): void;
}

/** A number on an axis. */
function short(value: number): string {
  const [letter, size] = ([["G", 1e9], ["M", 1e6], ["k", 1e3]] as const).find(([, size]) => Math.abs(value) >= size) ?? ["", 1];
  return `${Number((value / size).toPrecision(4))}${letter}`;
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Lines over time, as a picture and as a table. */
export function Chart({ title, x, y, curves, choose }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(place.current!);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const turn = () => setTheme((n) => n + 1);
    dark.addEventListener("change", turn);
    addEventListener("themed", turn);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", turn);
      removeEventListener("themed", turn);
    };
  }, []);
  useEffect(() => {
    if (width < 50) return;
    // One picture a frame, so that keys and sliders are heard in between.
    const frame = requestAnimationFrame(() => {
      const rows = curves.flatMap((curve) => curve.points.map((point) => ({ ...point, curve: curve.name })));
      const marks = curves.flatMap((curve) => (curve.marks ?? []).map((time) => ({ x: time, at: curve.at })));
      const picture = Plot.plot({
        className: "plot",
        width,
        height: 210,
        marginLeft: 56,
        marginBottom: 34,
        ariaLabel: title,
        style: { background: "transparent", color: css("--ink"), fontFamily: "system-ui, sans-serif", fontSize: "12px", overflow: "visible" },
        x: { label: x, labelArrow: "none" },
        y: { label: y, labelArrow: "none", grid: true, zero: true, nice: true, tickFormat: short },
        marks: [
          Plot.ruleY([0], { stroke: css("--line") }),
          ...curves.map((curve) =>
            Plot.lineY(curve.points, {
              x: "x",
              y: (point: { y: number | null }) => point.y ?? NaN,
              stroke: css(`--way-${curve.at}`),
              strokeWidth: 1.8,
              strokeDasharray: DASHES[curve.at] || undefined,
            }),
          ),
          marks.length > 0
            ? Plot.dot(marks, { x: "x", y: 0, r: 3, symbol: "triangle", fill: (mark: { at: number }) => css(`--way-${mark.at}`) })
            : null,
          rows.length > 0 ? Plot.tip(rows.filter((row) => row.y !== null), Plot.pointerX({ x: "x", y: "y", title: (row) => `${row.curve}\n${x}: ${row.x}\n${y}: ${row.y.toPrecision(4)}`, fill: css("--paper"), stroke: css("--line") })) : null,
        ],
      });
      picture.setAttribute("role", "img");
      // The whole is one image with a name, and a table.
      for (const part of picture.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label");
      const scale = picture.scale("x");
      if (choose && scale?.invert) {
        picture.addEventListener("click", (event) => {
          const left = (event as MouseEvent).clientX - picture.getBoundingClientRect().left;
          choose(Math.max(0, Number(scale.invert!(left))));
        });
      }
      place.current?.replaceChildren(picture);
    });
    return () => cancelAnimationFrame(frame);
  }, [width, theme, curves, title, x, y]);
  const rows = () => {
    const times = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
    const maps = curves.map((curve) => new Map(curve.points.map((point) => [point.x, point.y])));
    return times.map((time) => [time, ...maps.map((map) => map.get(time) ?? null)]);
  };
  const heads = [x, ...curves.map((curve) => `${curve.name}, ${y}`)];
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={place} class="picture" />
      <div class="small row">
        <Table heads={heads} rows={rows} />
        <button type="button" onClick={() => offer(`${name}.csv`, csv([heads, ...rows()]))}>CSV</button>
        <button type="button" onClick={() => offerPicture(place.current!, name, "svg")}>SVG</button>
        <button type="button" onClick={() => offerPicture(place.current!, name, "png")}>PNG</button>
      </div>
    </figure>
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
