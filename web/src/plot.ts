// Lines on axes, as SVG that stands alone: all colours are written out, so that it can be kept as it is drawn.

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
const [LEFT, RIGHT, TOP] = [56, 10, 26];

const text = (value: string) => value.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** A number on an axis. */
function short(value: number): string {
  const [letter, size] = ([["G", 1e9], ["M", 1e6], ["k", 1e3]] as const).find(([, size]) => Math.abs(value) >= size) ?? ["", 1];
  return `${Number((value / size).toPrecision(4))}${letter}`;
}

/** Steps of 1, 2 or 5 times a power of ten, about so many. */
function ticks(low: number, high: number, many: number): number[] {
  const raw = (high - low) / many;
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const decade = 10 ** Math.floor(Math.log10(raw));
  const step = decade * (raw / decade > 5 ? 10 : raw / decade > 2 ? 5 : raw / decade > 1 ? 2 : 1);
  const found: number[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(Number((n * step).toPrecision(12)));
  return found;
}

function powers(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) found.push(Number((10 ** power).toPrecision(1)));
  return found.length > 1 ? found : [low, high].map((value) => Number(value.toPrecision(2)));
}

export function colour(at: number): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--way-${at % COLOURS}`).trim();
}

export function dash(at: number): string {
  return DASHES[(at + Math.floor(at / COLOURS)) % DASHES.length]!;
}

export function draw({ title, x: xs, y: ys, log, names, dots }: Axes, curves: Curve[], width: number): Drawing {
  const style = getComputedStyle(document.documentElement);
  const [ink, grid] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
  let [left, right, low, high] = [Infinity, -Infinity, log ? Infinity : 0, -Infinity];
  for (const { points, published } of curves) {
    for (const { y } of published ?? []) if (!log || y > 0) [low, high] = [Math.min(low, y), Math.max(high, y)];
    for (const { x, y, half } of points) {
      if (x < left) left = x;
      if (x > right) right = x;
      if (y === null || (log && y <= 0)) continue;
      const [bottom, top] = [y - (half ?? 0), y + (half ?? 0)];
      if (bottom < low && (!log || bottom > 0)) low = bottom;
      if (y < low) low = y;
      if (top > high) high = top;
    }
  }
  if (names) [left, right] = [-0.5, names.length - 0.5];
  if (!(left < right)) [left, right] = Number.isFinite(left) ? [left - 0.5, left + 0.5] : [0, 1];
  if (!(high > low)) [low, high] = Number.isFinite(high) && high !== 0 ? [log ? high / 2 : Math.min(0, high), Math.max(high, log ? high * 2 : 0)] : log ? [0.1, 1] : [0, 1];
  const marks = log ? powers(low, high) : ticks(low, high, 5);
  if (!log) {
    const step = (marks[1] ?? high) - (marks[0] ?? 0);
    if (marks.at(-1)! < high) marks.push(marks.at(-1)! + step);
    if (marks[0]! > low) marks.unshift(marks[0]! - step);
    [low, high] = [Math.min(low, marks[0]!), marks.at(-1)!];
  }
  // Long names below the axis are turned.
  const room = (width - LEFT - RIGHT) / Math.max(1, names?.length ?? 1);
  const turned = names?.some((name) => name.length * 6.6 > room) ?? false;
  const below = turned ? Math.min(90, 24 + 4.4 * Math.max(...names!.map((name) => name.length))) : 34;
  const height = HEIGHT + below - 34;
  const base = height - below;
  const px = (x: number) => LEFT + ((width - LEFT - RIGHT) * (x - left)) / (right - left);
  const scaled = log ? (y: number) => Math.log(Math.max(y, low) / low) / Math.log(high / low) : (y: number) => (y - low) / (high - low);
  const py = (y: number) => base - (base - TOP) * scaled(y);
  const at = (value: number) => value.toFixed(1);

  const parts: string[] = [];
  for (const mark of marks) {
    parts.push(`<path d="M${LEFT} ${at(py(mark))}H${width - RIGHT}" stroke="${grid}"/><text x="${LEFT - 6}" y="${at(py(mark) + 4)}" text-anchor="end">${short(mark)}</text>`);
  }
  if (names) {
    names.forEach((name, n) => {
      const place = `${at(px(n))} ${base + 14}`;
      parts.push(turned ? `<text transform="translate(${place})rotate(-35)" text-anchor="end">${text(name)}</text>` : `<text x="${at(px(n))}" y="${base + 16}" text-anchor="middle">${text(name)}</text>`);
    });
  } else {
    for (const mark of ticks(left, right, Math.max(2, Math.min(8, width / 80)))) parts.push(`<text x="${at(px(mark))}" y="${base + 16}" text-anchor="middle">${short(mark)}</text>`);
  }
  parts.push(`<text x="4" y="11">${text(ys)}</text><text x="${width - RIGHT}" y="${height - 3}" text-anchor="end">${text(xs)}</text>`);
  curves.forEach((curve, nth) => {
    const stroke = colour(curve.at);
    // Side by side where several stand at one name.
    const beside = names ? (Math.min(room * 0.7, 14 * curves.length) / curves.length) * (nth - (curves.length - 1) / 2) : 0;
    for (const mark of curve.published ?? []) {
      const [x, wide] = [px(mark.x) + beside, Math.max(12, Math.min(room * 0.7, 14 * curves.length) / curves.length)];
      const [top, bottom] = [mark.high, mark.low].map((y) => Math.min(base, Math.max(TOP, py(y)))) as [number, number];
      parts.push(`<path class="published" d="M${at(x - wide / 2)} ${at(bottom)}V${at(top)}h${at(wide)}V${at(bottom)}z" fill="${stroke}" opacity="0.25"/><path d="M${at(x - wide / 2)} ${at(py(mark.y))}h${at(wide)}" stroke="${stroke}" stroke-width="1.6"/>`);
    }
    let path = "";
    let pen = "M";
    let single = "";
    const { points } = curve;
    for (let n = 0; n < points.length; n++) {
      const { x, y, half } = points[n]!;
      if (y === null || (log && y <= 0)) {
        pen = "M";
        continue;
      }
      const place = `${at(px(x) + beside)} ${at(py(y))}`;
      path += pen + place;
      if (names || curve.dots || (pen === "M" && (points[n + 1]?.y ?? null) === null)) single += `M${place}h0`;
      if (half) parts.push(`<path d="M${at(px(x) + beside)} ${at(py(y - half))}V${at(py(y + half))}" stroke="${stroke}" stroke-width="1.2"/>`);
      pen = "L";
    }
    if (path && !dots && !curve.dots) parts.push(`<path class="curve" d="${path}" fill="none" stroke="${stroke}" stroke-width="1.8" stroke-linejoin="round" stroke-dasharray="${dash(curve.at)}"/>`);
    if (single) parts.push(`<path d="${single}" stroke="${stroke}" stroke-width="${names ? 6 : curve.dots ? 5 : 3}" stroke-linecap="${curve.at % 2 ? "square" : "round"}"/>`);
    for (const time of curve.marks ?? []) parts.push(`<path d="M${at(px(time))} ${base - 5}l4 7h-8z" fill="${stroke}"/>`);
  });

  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const set = { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title, fill: ink, "font-family": "system-ui, sans-serif", "font-size": 12 };
  for (const [name, value] of Object.entries(set)) svg.setAttribute(name, String(value));
  svg.innerHTML = parts.join("");

  const known = [...new Set(curves.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
  return {
    svg,
    near(place) {
      if (known.length === 0) return undefined;
      const wanted = left + ((place - LEFT) / (width - LEFT - RIGHT)) * (right - left);
      let [from, to] = [0, known.length - 1];
      while (from < to) {
        const middle = (from + to) >> 1;
        if (known[middle]! < wanted) from = middle + 1;
        else to = middle;
      }
      const before = known[from - 1];
      const x = before !== undefined && wanted - before < known[from]! - wanted ? before : known[from]!;
      const lines = curves.flatMap(({ name, points }) => {
        const y = points.find((point) => point.x === x)?.y ?? null;
        return y === null ? [] : [`${name}: ${short(Number(y.toPrecision(4)))}`];
      });
      return { left: px(x), x, lines: [`${xs}: ${names?.[x] ?? x}`, ...lines] };
    },
  };
}

const waiting = new Set<() => void>();
let begun = false;

/** Calls this in a task of its own, so that keys are heard between two pictures; what it returns takes it back. */
export function inTurn(drawOne: () => void): () => void {
  waiting.add(drawOne);
  const next = () => {
    const [first] = waiting;
    begun = first !== undefined;
    if (!first) return;
    waiting.delete(first);
    setTimeout(next);
    first();
  };
  if (!begun) {
    begun = true;
    setTimeout(next);
  }
  return () => waiting.delete(drawOne);
}
