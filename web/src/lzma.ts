// Reads what `xz --format=lzma` wrote. Browsers unpack gzip by themselves, but the simulator is a third shorter so.

const [TOP, HALF] = [2 ** 24, 1 << 10];
// Where the probabilities of each kind of decision stand, in one table.
const MATCH = 0;
const REPEATED = MATCH + 192;
const REPEATED_0 = REPEATED + 12;
const REPEATED_1 = REPEATED_0 + 12;
const REPEATED_2 = REPEATED_1 + 12;
const REPEATED_0_LONG = REPEATED_2 + 12;
const SLOT = REPEATED_0_LONG + 192;
const DISTANCE = SLOT + 256;
const ALIGN = DISTANCE + 128;
const LENGTH = ALIGN + 16;
const LENGTH_REPEATED = LENGTH + 514;
const LITERAL = LENGTH_REPEATED + 514;

export function unpack(input: Uint8Array): Uint8Array<ArrayBuffer> {
  const properties = input[0]!;
  const lc = properties % 9;
  const lp = Math.floor(properties / 9) % 5;
  const pb = Math.floor(properties / 45);
  const probabilities = new Uint16Array(LITERAL + (0x300 << (lc + lp))).fill(HALF);
  let out = new Uint8Array(4 * input.length);
  let [at, place] = [0, 13];
  // Range and code: numbers of 32 bits that many functions change are fast in a table, and slow as variables.
  const coder = new Uint32Array([0xffffffff, 0]);
  for (let n = 0; n < 5; n++) coder[1] = (coder[1]! << 8) | input[place++]!;

  const grown = (to: number) => {
    if (to <= out.length) return;
    const longer = new Uint8Array(Math.max(to, 2 * out.length));
    longer.set(out);
    out = longer;
  };
  const bit = (index: number): number => {
    const probability = probabilities[index]!;
    let range = coder[0]!;
    let code = coder[1]!;
    const bound = Math.imul(range >>> 11, probability) >>> 0;
    let said = 0;
    if (code < bound) {
      range = bound;
      probabilities[index] = probability + ((2048 - probability) >> 5);
    } else {
      range = (range - bound) >>> 0;
      code = (code - bound) >>> 0;
      probabilities[index] = probability - (probability >> 5);
      said = 1;
    }
    if (range < TOP) {
      if (place > input.length) throw new Error("the simulator is cut off");
      range = (range << 8) >>> 0;
      code = ((code << 8) | input[place++]!) >>> 0;
    }
    coder[0] = range;
    coder[1] = code;
    return said;
  };
  const tree = (base: number, bits: number): number => {
    let node = 1;
    for (let n = 0; n < bits; n++) node = (node << 1) | bit(base + node);
    return node - (1 << bits);
  };
  const reversed = (base: number, bits: number): number => {
    let [node, value] = [1, 0];
    for (let n = 0; n < bits; n++) {
      const one = bit(base + node);
      node = (node << 1) | one;
      value |= one << n;
    }
    return value;
  };
  const direct = (bits: number): number => {
    let value = 0;
    for (let n = 0; n < bits; n++) {
      coder[0]! >>>= 1;
      const one = coder[1]! >= coder[0]! ? 1 : 0;
      if (one) coder[1]! -= coder[0]!;
      value = value * 2 + one;
      if (coder[0]! < TOP) {
        coder[0]! <<= 8;
        coder[1] = (coder[1]! << 8) | input[place++]!;
      }
    }
    return value;
  };
  const length = (base: number, side: number): number => {
    if (bit(base) === 0) return 2 + tree(base + 2 + (side << 3), 3);
    if (bit(base + 1) === 0) return 10 + tree(base + 130 + (side << 3), 3);
    return 18 + tree(base + 258, 8);
  };

  let state = 0;
  let [first, second, third, fourth] = [0, 0, 0, 0];
  for (;;) {
    const side = at & ((1 << pb) - 1);
    if (bit(MATCH + (state << 4) + side) === 0) {
      const before = at > 0 ? out[at - 1]! : 0;
      const base = LITERAL + 0x300 * (((at & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let node = 1;
      if (state >= 7) {
        let matched = out[at - first - 1]!;
        while (node < 0x100) {
          const wanted = (matched >> 7) & 1;
          matched <<= 1;
          const one = bit(base + ((1 + wanted) << 8) + node);
          node = (node << 1) | one;
          if (one !== wanted) break;
        }
      }
      while (node < 0x100) node = (node << 1) | bit(base + node);
      grown(at + 1);
      out[at++] = node;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let run: number;
    if (bit(REPEATED + state) === 1) {
      if (bit(REPEATED_0 + state) === 0) {
        if (bit(REPEATED_0_LONG + (state << 4) + side) === 0) {
          state = state < 7 ? 9 : 11;
          grown(at + 1);
          out[at] = out[at - first - 1]!;
          at++;
          continue;
        }
      } else if (bit(REPEATED_1 + state) === 0) [first, second] = [second, first];
      else if (bit(REPEATED_2 + state) === 0) [first, second, third] = [third, first, second];
      else [first, second, third, fourth] = [fourth, first, second, third];
      run = length(LENGTH_REPEATED, side);
      state = state < 7 ? 8 : 11;
    } else {
      [second, third, fourth] = [first, second, third];
      run = length(LENGTH, side);
      state = state < 7 ? 7 : 10;
      const slot = tree(SLOT + (Math.min(run, 5) - 2) * 64, 6);
      first = slot;
      if (slot >= 4) {
        const bits = (slot >> 1) - 1;
        first = (2 | (slot & 1)) * 2 ** bits;
        if (slot < 14) first += reversed(DISTANCE + first - slot, bits);
        else {
          first += direct(bits - 4) * 16;
          first += reversed(ALIGN, 4);
        }
        if (first === 0xffffffff) return out.subarray(0, at);
      }
    }
    if (first >= at) throw new Error("the simulator is damaged");
    grown(at + run);
    for (let n = 0; n < run; n++, at++) out[at] = out[at - first - 1]!;
  }
}
