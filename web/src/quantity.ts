// Quantities as scenario files write them: "20 Mbit/s", "25 ms", "125 kB", "50 packets", 0.05.

import { scaleLog } from "d3-scale";

interface Kind {
  /** Units and how many base units each holds, the least first. */
  units: [string, number][];
  /** Ends of the slider, in base units; above 0. */
  range: [number, number];
  zero: boolean;
}

const KINDS: Kind[] = [
  { units: [["bit/s", 1], ["kbit/s", 1e3], ["Mbit/s", 1e6], ["Gbit/s", 1e9]], range: [1e3, 1e9], zero: false },
  { units: [["ns", 1e-9], ["us", 1e-6], ["ms", 1e-3], ["s", 1], ["min", 60]], range: [1e-4, 10], zero: true },
  { units: [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9]], range: [100, 1e7], zero: false },
  { units: [["packets", 1]], range: [1, 1e4], zero: false },
];
const PROBABILITY: Kind = { units: [["", 1]], range: [1e-4, 0.5], zero: true };
const COUNT: Kind = { units: [["", 1]], range: [1, 1e3], zero: true };
const STEPS = 300;

/** What a slider needs to know of a value; undefined where it is none that slides. */
export class Quantity {
  private constructor(
    private readonly kind: Kind,
    /** In base units. */
    readonly value: number,
    private readonly written: string | number,
  ) {}

  static of(written: unknown, path: string): Quantity | undefined {
    if (typeof written === "number") {
      const whole = /(packets|burst)$/.test(path);
      return new Quantity(whole ? COUNT : PROBABILITY, written, written);
    }
    if (typeof written !== "string") return undefined;
    const match = /^(\d+(?:\.\d+)?(?:e-?\d+)?) ?([a-zA-Z/]+)$/.exec(written);
    if (!match) return undefined;
    for (const kind of KINDS) {
      const unit = kind.units.find(([name]) => name === match[2]);
      if (unit) return new Quantity(kind, Number(match[1]) * unit[1], written);
    }
    return undefined;
  }

  static readonly steps = STEPS;

  /** From values to positions; below the first one is 0. */
  private get scale() {
    const [low, high] = this.kind.range;
    return scaleLog([Math.min(low, this.value || low), Math.max(high, this.value)], [this.kind.zero ? 1 : 0, STEPS]);
  }

  /** Where the slider stands. */
  get position(): number {
    return this.value > 0 ? Math.round(this.scale(this.value)) : 0;
  }

  /** What it would be at another position, as a file writes it. */
  at(position: number): string | number {
    const exact = this.kind.zero && position < 1 ? 0 : this.scale.invert(position);
    return this.write(Number(exact.toPrecision(2)));
  }

  private write(value: number): string | number {
    if (typeof this.written === "number") {
      return this.kind === COUNT ? Math.round(value) : value;
    }
    const units = this.kind.units;
    const fits = [...units].reverse().find(([name, size]) => name !== "min" && value >= size * 0.9999999);
    const [name, size] = fits ?? units.find(([unit]) => unit === "ms") ?? units[0]!;
    return `${Number((value / size).toPrecision(4))} ${name}`;
  }

  get text(): string {
    return String(this.written);
  }
}

/** As `--set` takes it. */
export function assigned(value: string | number): string {
  return typeof value === "number" ? String(value) : JSON.stringify(value);
}
