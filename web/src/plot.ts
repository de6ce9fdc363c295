// Lines on axes, as SVG in the colours of the page.
import { bisectCenter, extent, sort } from "d3-array";
import { format } from "d3-format";
import { scaleLinear, scaleLog } from "d3-scale";
import { line } from "d3-shape";

/** Colours that the colour-blind tell apart (Okabe and Ito), and dashes for who sees none. */
const DASHES = ["", "6 3", "2 3", "9 3 2 3", "1 4", "12 4"];
const COLOURS = 6;

export interface Point {
  x: number;
  y: number | null;
  /** Half the width of its 95 % interval. */
  half?: number | null;
}

export interface Curve {
  name: string;
  /** Which colour it has. */
  at: number;
  points: Point[];
  /** Whether its points stand alone, as those of the whole picture can. */
  dots?: boolean;
  /** Published values, and the values that agree with them. */
  published?: { x: number; y: number; low: number; high: number }[];
  /** Times that are marked below it. */
  marks?: number[];
}

export interface Axes {
  title: string;
  /** What the axes measure, with units. */
  x: string;
  y: string;
  log?: boolean;
  /** Names in place of numbers below the points 0, 1, 2, .. */
  names?: string[];
  /** Whether the points stand alone. */
  dots?: boolean;
}

export interface Drawing {
  svg: SVGSVGElement;
  /** The values of all curves nearest to a place of the picture, and where they stand. */
  near(left: number): { left: number; x: number; lines: string[] } | undefined;
}

const HEIGHT = 214;
const [LEFT, RIGHT, TOP] = [56, 14, 26];

const text = (value: string) => value.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

const [plain, prefixed] = [format(",.4~r"), format(".4~s")];
/** How an axis of this unit writes its numbers: a unit has at most one prefix, and small numbers have none. */
const numbers = (unit: string) => (value: number) => (["bit/s", "B"].includes(unit) && Math.abs(value) >= 1e3 ? prefixed : plain)(value);

export function colour(at: number): string {
  return `var(--way-${at % COLOURS})`;
}

export function dash(at: number): string {
  return DASHES[(at + Math.floor(at / COLOURS)) % DASHES.length]!;
}

export function draw({ title, x: xs, y: ys, log, names, dots }: Axes, curves: Curve[], width: number): Drawing {
  // Long names below the axis are turned.
  const room = (width - LEFT - RIGHT) / Math.max(1, names?.length ?? 1);
  const turned = names?.some((name) => name.length * 6.6 + 6 > room) ?? false;
  const below = turned ? Math.min(90, 24 + 4.4 * Math.max(...names!.map((name) => name.length))) : 34;
  const height = HEIGHT + below - 34;
  const base = height - below;

  const known = sort(new Set(curves.flatMap(({ points }) => points.map(({ x }) => x))));
  const [left = 0, right = 1] = names ? [-0.5, names.length - 0.5] : [known[0], known.at(-1)];
  const px = scaleLinear(left < right ? [left, right] : [left - 0.5, left + 0.5], [LEFT, width - RIGHT]);
  const ends = curves.flatMap(({ points, published = [] }) => [
    ...published.flatMap(({ y, low, high }) => [y, low, high]),
    ...points.flatMap(({ y, half }) => (y === null ? [] : half ? [y, y - half, y + half] : [y])),
  ]);
  const seen = ({ y }: Point) => y !== null && (!log || y > 0);
  const [low = 0.1, high = 1] = extent(log ? ends.filter((y) => y > 0) : [0, ...ends]);
  const py = log ? scaleLog(low < high ? [low, high] : [low / 2, low * 2], [base, TOP]) : scaleLinear([low, low < high ? high : 1], [base, TOP]).nice(5);
  py.clamp(true);
  const at = (value: number) => value.toFixed(1);

  const parts: string[] = [];
  // Between powers of ten there are lines without a number.
  const short = numbers(ys);
  const numbered = "base" in py ? py.tickFormat(5) : String;
  for (const mark of py.ticks(5)) {
    const number = numbered(mark) && short(mark);
    parts.push(`<path d="M${LEFT} ${at(py(mark))}H${width - RIGHT}" stroke="var(--line)" opacity="${number ? 1 : 0.4}"/><text x="${LEFT - 6}" y="${at(py(mark) + 4)}" text-anchor="end">${number}</text>`);
  }
  if (names) {
    names.forEach((name, n) => {
      const place = `${at(px(n))} ${base + 14}`;
      parts.push(turned ? `<text transform="translate(${place})rotate(-35)" text-anchor="end">${text(name)}</text>` : `<text x="${at(px(n))}" y="${base + 16}" text-anchor="middle">${text(name)}</text>`);
    });
  } else {
    for (const mark of px.ticks(Math.max(2, Math.min(8, width / 80)))) parts.push(`<text x="${at(px(mark))}" y="${base + 16}" text-anchor="middle">${plain(mark)}</text>`);
  }
  parts.push(`<text x="4" y="11">${text(ys)}</text><text x="${width - RIGHT}" y="${height - 3}" text-anchor="end">${text(xs)}</text>`);
  curves.forEach((curve, nth) => {
    const stroke = colour(curve.at);
    const { points, published = [], marks = [] } = curve;
    // Side by side where several stand at one name.
    const wide = Math.min(room * 0.7, 14 * curves.length) / curves.length;
    const beside = names ? wide * (nth - (curves.length - 1) / 2) : 0;
    for (const mark of published) {
      const band = Math.max(12, wide);
      const from = at(px(mark.x) + beside - band / 2);
      const [top, bottom] = [at(py(mark.high)), at(py(mark.low))];
      parts.push(`<path class="published" d="M${from} ${bottom}V${top}h${at(band)}V${bottom}z" fill="${stroke}" opacity="0.25"/><path d="M${from} ${at(py(mark.y))}h${at(band)}" stroke="${stroke}" stroke-width="1.6"/>`);
    }
    const x = (point: Point) => px(point.x) + beside;
    for (const point of points.filter((point) => point.half && seen(point))) {
      const { y, half } = point as { y: number; half: number };
      parts.push(`<path d="M${at(x(point))} ${at(py(y - half))}V${at(py(y + half))}" stroke="${stroke}" stroke-width="1.2"/>`);
    }
    const path = line<Point>(x, ({ y }) => py(y!)).defined(seen).digits(1)(points);
    const single = points.filter((point, n) => seen(point) && (names || curve.dots || ![points[n - 1], points[n + 1]].some((next) => next && seen(next))));
    if (path && !dots && !curve.dots) parts.push(`<path class="curve" d="${path}" fill="none" stroke="${stroke}" stroke-width="1.8" stroke-linejoin="round" stroke-dasharray="${dash(curve.at)}"/>`);
    if (single.length > 0) {
      const places = single.map((point) => `M${at(x(point))} ${at(py(point.y!))}h0`).join("");
      parts.push(`<path d="${places}" stroke="${stroke}" stroke-width="${names ? 6 : curve.dots ? 5 : 3}" stroke-linecap="${curve.at % 2 ? "square" : "round"}"/>`);
    }
    for (const time of marks) parts.push(`<path d="M${at(px(time))} ${base - 5}l4 7h-8z" fill="${stroke}"/>`);
  });

  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const set = { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title, fill: "var(--ink)", "font-family": "system-ui, sans-serif", "font-size": 12 };
  for (const [name, value] of Object.entries(set)) svg.setAttribute(name, String(value));
  svg.innerHTML = parts.join("");

  return {
    svg,
    near(place) {
      const x = known[bisectCenter(known, px.invert(place))];
      if (x === undefined) return undefined;
      const lines = curves.flatMap(({ name, points }) => {
        const y = points.find((point) => point.x === x)?.y ?? null;
        return y === null ? [] : [`${name}: ${short(y)}`];
      });
      return { left: px(x), x, lines: [`${xs}: ${names?.[x] ?? x}`, ...lines] };
    },
  };
}
