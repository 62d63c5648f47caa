/** Loads, stores and atomics in OpenCL C: vloadN and vstoreN, which need no alignment beyond the element's; bool is a byte. */
import type { KNodeOf } from '@polygrad/core/kernel';
import type { Context, Memory } from '../dialect.ts';
import type { DType } from '../kernel.ts';
import { call, expression, literal, operand, type Part, type Value } from '../parts.ts';
import { bytesOf, typeName } from './types.ts';

/** Index plus a number of elements. */
function advance(index: Part, by: number): Part {
  if (by === 0) return index;
  if (/^\d+$/.test(index.text)) return literal(`${Number(index.text) + by}`, 'int32');
  return expression(`${operand(index)} + ${by}`, 'int32');
}

export function openClLoad(
  c: Context,
  mem: Memory,
  given: Part,
  sizes: readonly number[],
  gate: Part | null,
  alt: Value | null,
): Value {
  const index = sizes.length > 1 ? c.stable(given) : given;
  const open = sizes.length > 1 && gate !== null ? c.stable(gate) : gate;
  let done = 0;
  return sizes.map((lanes, part) => {
    const value = loadOne(mem, advance(index, done), lanes);
    done += lanes;
    return open === null || alt === null ? value : choose(open, value, alt[part]!);
  });
}

function loadOne(mem: Memory, index: Part, lanes: number): Part {
  const dtype = mem.node.dtype as DType;
  if (lanes === 1) {
    const text = `${mem.name}[${index.text}]`;
    return dtype === 'bool' ? expression(`${text} != 0`, dtype) : call(text, dtype);
  }
  const text = `vload${lanes}(0, ${mem.name} + ${operand(index)})`;
  return dtype === 'bool' ? expression(`convert_int${lanes}(${text}) != 0`, dtype, lanes) : call(text, dtype, lanes);
}

export function choose(condition: Part, yes: Part, no: Part): Part {
  return expression(`${operand(condition)} ? ${operand(yes)} : ${operand(no)}`, yes.dtype, yes.lanes);
}

/** `space`: the address space of the memory, with which vectors of bytes are stored whole (`wholeBytes`); null to store them by vstoreN. */
export function openClStore(
  c: Context,
  mem: Memory,
  given: Part,
  value: Value,
  space: string | null,
): readonly string[] {
  const index = value.length > 1 ? c.stable(given) : given;
  // Loads of later parts come before the store of the first.
  const parts = value.length > 1 ? value.map((p) => c.stable(p)) : value;
  let done = 0;
  return parts.map((p) => {
    const text = storeOne(c, mem, advance(index, done), p, space);
    done += p.lanes;
    return text;
  });
}

function storeOne(c: Context, mem: Memory, index: Part, value: Part, space: string | null): string {
  const { dtype, lanes, text } = value;
  if (lanes === 1) return `${mem.name}[${index.text}] = ${text};`;
  const held = dtype === 'bool' ? `convert_uchar${lanes}(${operand(value)} & 1)` : text;
  if (space !== null && bytesOf(dtype as DType) === 1) {
    const type = `${dtype === 'int8' ? 'char' : 'uchar'}${lanes}`;
    c.helper(`unaligned_${type}`, () => `typedef ${type} __attribute__((aligned(1))) unaligned_${type};`);
    return `*(${space} unaligned_${type}*)(${mem.name} + ${operand(index)}) = ${held};`;
  }
  return `vstore${lanes}(${held}, 0, ${mem.name} + ${operand(index)});`;
}

type AtomicOp = KNodeOf<'ATOMIC'>['arg']['op'];

export function openClAtomic(
  c: Context,
  op: AtomicOp,
  mem: Memory,
  index: Part,
  value: Part,
  wide: boolean,
  combine: (a: Part, b: Part) => Part,
): string {
  const { dtype } = value;
  const bytes = bytesOf(dtype);
  if (bytes < 4) c.refuse(`ATOMIC ${op} on ${dtype}: atomics need elements of four bytes`);
  if (bytes === 8 && !wide) c.refuse(`ATOMIC ${op} on ${dtype} needs cl_khr_int64_base_atomics`);
  const space = mem.node.op === 'PARAM' ? '__global' : '__local';
  const prefix = bytes === 8 ? 'atom' : 'atomic';
  const float = dtype.startsWith('float');
  if (!float) {
    const type = typeName(dtype, 1);
    return `${prefix}_${op}((volatile ${space} ${type}*)${mem.name} + ${operand(index)}, ${value.text});`;
  }
  if (op === 'or') c.refuse(`ATOMIC or on ${dtype}`);
  const type = typeName(dtype, 1);
  const bits = bytes === 8 ? 'ulong' : 'uint';
  const title = `atomic_${op}_${type}_${space.slice(2)}`;
  const sum = combine(call(`as_${type}(old)`, dtype), call('value', dtype));
  c.helper(title, () =>
    [
      `void ${title}(volatile ${space} ${bits}* at, ${type} value) {`,
      `  ${bits} old = *at;`,
      `  for (;;) {`,
      `    const ${bits} seen = ${prefix}_cmpxchg(at, old, as_${bits}(${sum.text}));`,
      `    if (seen == old) break;`,
      `    old = seen;`,
      `  }`,
      '}',
    ].join('\n'),
  );
  return `${title}((volatile ${space} ${bits}*)${mem.name} + ${operand(index)}, ${value.text});`;
}
