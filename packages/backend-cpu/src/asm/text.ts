/**
 * A function body as text, one instruction a line, for people: the names of the WebAssembly text format, indented by blocks.
 *
 * Reads only what the emitter prints. Nothing needs it to run kernels, so it is loaded when somebody asks.
 */
import type { FunctionBody } from './module.ts';
import { instructionName } from './names.ts';

/** Value types (types.ts). */
const typeNames = new Map([
  [0x7f, 'i32'],
  [0x7e, 'i64'],
  [0x7d, 'f32'],
  [0x7c, 'f64'],
  [0x7b, 'v128'],
]);

/** Where the codes behind a prefix begin. */
const groups: Readonly<Record<number, number>> = { 253: 0x200, 252: 0x400, 254: 0x800 };

class Reader {
  at = 0;
  readonly bytes: Uint8Array;
  readonly view: DataView;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  uleb(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  sleb(): bigint {
    let value = 0n;
    for (let shift = 0n; ; ) {
      const byte = this.bytes[this.at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (byte < 0x80) return BigInt.asIntN(64, byte & 0x40 ? value | (-1n << shift) : value);
    }
  }

  /** An instruction's code as in plain.ts, simd.ts and atomics.ts. */
  code(): number {
    const first = this.bytes[this.at++]!;
    const prefixed = groups[first];
    return prefixed === undefined ? first : prefixed + this.uleb();
  }
}

const isLane = (name: string): boolean => /(extract|replace)_lane/.test(name);
const isMemory = (name: string): boolean => /\.(atomic\.|load|store)/.test(name);

/** What stands after an instruction's name. */
function immediates(name: string, r: Reader): string {
  const { view } = r;
  const skip = (bytes: number): number => {
    const from = r.at;
    r.at += bytes;
    return from;
  };
  switch (name) {
    case 'block':
    case 'loop':
    case 'if':
      r.at++;
      return '';
    case 'br':
    case 'br_if':
    case 'local.get':
    case 'local.set':
    case 'local.tee':
      return ` ${r.uleb()}`;
    case 'i32.const':
    case 'i64.const':
      return ` ${r.sleb()}`;
    case 'f32.const':
      return ` ${floatText(view.getFloat32(skip(4), true))}`;
    case 'f64.const':
      return ` ${floatText(view.getFloat64(skip(8), true))}`;
    case 'v128.const': {
      const from = skip(16);
      return ` i32x4 ${[0, 4, 8, 12]
        .map(
          (i) =>
            `0x${view
              .getUint32(from + i, true)
              .toString(16)
              .padStart(8, '0')}`,
        )
        .join(' ')}`;
    }
    case 'i8x16.shuffle': {
      const from = skip(16);
      return ` ${r.bytes.subarray(from, from + 16).join(' ')}`;
    }
    case 'memory.copy':
      r.at += 2;
      return '';
    case 'memory.fill':
      r.at++;
      return '';
    default: {
      if (isLane(name)) return ` ${r.bytes[r.at++]}`;
      if (!isMemory(name)) return '';
      r.uleb();
      const offset = r.uleb();
      const lane = /\d_lane$/.test(name) ? ` ${r.bytes[r.at++]}` : '';
      return `${offset === 0 ? '' : ` offset=${offset}`}${lane}`;
    }
  }
}

function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Object.is(value, -0) ? '-0' : String(value);
}

/**
 * The function in the manner of the WebAssembly text format.
 *
 * @param body what emit/emit.ts made; its code lacks the final `end`
 */
export function functionText({ name, params, locals, code }: FunctionBody): string {
  const types = (list: readonly number[]): string => list.map((t) => typeNames.get(t)).join(' ');
  const lines = [`(func $${name}${params.length === 0 ? '' : ` (param ${types(params)})`}`];
  if (locals.length > 0) lines.push(`  (local ${types(locals)})`);
  const reader = new Reader(code);
  let depth = 1;
  while (reader.at < code.length) {
    const word = instructionName(reader.code());
    if (word === 'end' || word === 'else') depth--;
    lines.push(`${'  '.repeat(depth)}${word}${immediates(word, reader)}`);
    if (word === 'block' || word === 'loop' || word === 'if' || word === 'else') depth++;
  }
  lines.push(')');
  return lines.join('\n');
}
