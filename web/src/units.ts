// Numbers as people read them.

function scaled(value: number, units: [string, number][]): string {
  const [name, size] = units.find(([, size]) => Math.abs(value) >= size) ?? units.at(-1)!;
  return `${Number((value / size).toPrecision(3))} ${name}`;
}

export function bytes(value: number): string {
  return scaled(value, [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "-";
  return value === 0 ? "0 s" : scaled(value, [["s", 1], ["ms", 1e-3], ["us", 1e-6]]);
}

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? "-" : `${Number((100 * value).toPrecision(2))} %`;
}

/** A length of time in whole numbers. */
export function ago(value: number): string {
  if (value < 90) return `${value} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}
