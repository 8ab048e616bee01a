// The core, as playground/pack.py wrote it: characters of seven bits, and LZMA as its specification describes it
// (Pavlov, LZMA specification, 2015), with lc = 4, lp = 0, pb = 0.

const TAKEN = [0, 10, 13, 60];

/** The bytes of characters of seven bits. */
export function bytesOf(text: string): Uint8Array {
  const made = new Uint8Array(Math.ceil((text.length * 14) / 8));
  let held = 0, bits = 0, at = 0;
  const put = (value: number) => {
    held = (held << 7) | value;
    bits += 7;
    if (bits >= 8) {
      bits -= 8;
      made[at++] = held >> bits;
      held &= (1 << bits) - 1;
    }
  };
  for (let place = 0; place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (code >= 0x80) put(TAKEN[(code >> 7) & 3]!);
    put(code & 127);
  }
  return made.subarray(0, at);
}

const EVEN = 1024;
const LITERAL_BITS = 4;

/** Unfolds a stream whose first four bytes are the length of what it holds. */
export function unpack(source: Uint8Array): Uint8Array<ArrayBuffer> {
  const size = new DataView(source.buffer, source.byteOffset).getUint32(0);
  const made = new Uint8Array(size);
  let place = 9, range = 0xffffffff, code = 0;
  for (let at = 5; at < 9; at++) code = ((code << 8) | source[at]!) >>> 0;

  const probabilities = (count: number) => new Uint16Array(count).fill(EVEN);
  const bit = (from: Uint16Array, at: number): number => {
    const chance = from[at]!;
    const bound = (range >>> 11) * chance;
    let found = 0;
    if (code < bound) {
      range = bound;
      from[at] = chance + ((2048 - chance) >> 5);
    } else {
      range -= bound;
      code -= bound;
      from[at] = chance - (chance >> 5);
      found = 1;
    }
    if (range < 0x1000000) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | source[place++]!) >>> 0;
    }
    return found;
  };
  const tree = (from: Uint16Array, offset: number, bits: number): number => {
    let at = 1;
    for (let n = 0; n < bits; n++) at = (at << 1) | bit(from, offset + at);
    return at - (1 << bits);
  };
  const backwards = (from: Uint16Array, offset: number, bits: number): number => {
    let at = 1, value = 0;
    for (let n = 0; n < bits; n++) {
      const one = bit(from, offset + at);
      at = (at << 1) | one;
      value |= one << n;
    }
    return value;
  };
  const lengths = () => ({ choice: probabilities(2), low: probabilities(8), mid: probabilities(8), high: probabilities(256) });
  const length = (of: ReturnType<typeof lengths>): number => {
    if (!bit(of.choice, 0)) return 2 + tree(of.low, 0, 3);
    if (!bit(of.choice, 1)) return 10 + tree(of.mid, 0, 3);
    return 18 + tree(of.high, 0, 8);
  };

  const literals = probabilities(0x300 << LITERAL_BITS);
  const match = probabilities(12), rep = probabilities(12), rep0 = probabilities(12), rep1 = probabilities(12), rep2 = probabilities(12), long = probabilities(12);
  const slots = probabilities(4 * 64), near = probabilities(115), align = probabilities(16);
  const matched = lengths(), repeated = lengths();
  let state = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0, at = 0;

  while (at < size) {
    if (!bit(match, state)) {
      const offset = 0x300 * ((at ? made[at - 1]! : 0) >> (8 - LITERAL_BITS));
      let symbol = 1;
      if (state >= 7) {
        let like = made[at - d0 - 1]!;
        while (symbol < 0x100) {
          const its = (like >> 7) & 1;
          like <<= 1;
          const one = bit(literals, offset + ((1 + its) << 8) + symbol);
          symbol = (symbol << 1) | one;
          if (its !== one) break;
        }
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bit(literals, offset + symbol);
      made[at++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count: number;
    if (bit(rep, state)) {
      if (!bit(rep0, state)) {
        if (!bit(long, state)) {
          state = state < 7 ? 9 : 11;
          made[at] = made[at - d0 - 1]!;
          at++;
          continue;
        }
      } else {
        let distance: number;
        if (!bit(rep1, state)) distance = d1;
        else {
          if (!bit(rep2, state)) distance = d2;
          else {
            distance = d3;
            d3 = d2;
          }
          d2 = d1;
        }
        d1 = d0;
        d0 = distance;
      }
      count = length(repeated);
      state = state < 7 ? 8 : 11;
    } else {
      d3 = d2;
      d2 = d1;
      d1 = d0;
      count = length(matched);
      state = state < 7 ? 7 : 10;
      const slot = tree(slots, 64 * Math.min(count - 2, 3), 6);
      d0 = slot;
      if (slot >= 4) {
        const direct = (slot >> 1) - 1;
        d0 = (2 | (slot & 1)) << direct;
        if (slot < 14) d0 += backwards(near, d0 - slot, direct);
        else {
          let value = 0;
          for (let n = direct - 4; n > 0; n--) {
            range >>>= 1;
            const one = code >= range ? 1 : 0;
            if (one) code -= range;
            value = value * 2 + one;
            if (range < 0x1000000) {
              range = (range << 8) >>> 0;
              code = ((code << 8) | source[place++]!) >>> 0;
            }
          }
          d0 += value * 16 + backwards(align, 0, 4);
        }
      }
    }
    if (d0 >= at || count > size - at) throw new Error("the core's text is damaged");
    for (let n = 0; n < count; n++, at++) made[at] = made[at - d0 - 1]!;
  }
  return made;
}
