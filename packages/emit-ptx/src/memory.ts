/** Loads, stores and atomics. A closed gate is a predicate on the instruction; vectors go as wide as their alignment is certain. */
import type { KNodeOf } from '@polygrad/core/kernel';
import { combine } from './arithmetic.ts';
import type { Addressed } from './addresses.ts';
import { bitsType, bytesOf, isFloat, isUnsigned, memoryType, registerOf } from './dtypes.ts';
import type { DType } from './kernel.ts';
import type { Writer } from './writer.ts';

type Address = (behind: number) => string;

/** Lanes of each instruction for so many elements whose first lies at a multiple of `aligned` elements. Addresses of tensors are multiples of 16 bytes. */
function pieces(lanes: number, bytes: number, aligned: number): readonly number[] {
  const sizes: number[] = [];
  for (let done = 0; done < lanes; ) {
    const size =
      [4, 2, 1].find((n) => n * bytes <= 16 && n <= lanes - done && aligned % n === 0 && done % n === 0) ?? 1;
    sizes.push(size);
    done += size;
  }
  return sizes;
}

function space(mem: Addressed): 'global' | 'shared' {
  return mem.op === 'PARAM' ? 'global' : 'shared';
}

function vector(registers: readonly string[]): string {
  return registers.length === 1 ? registers[0]! : `{${registers.join(', ')}}`;
}

const suffix = (size: number): string => (size === 1 ? '' : `.v${size}`);

/** A load of consecutive elements; where the gate is closed, `other`, and no access. */
export function load(
  w: Writer,
  mem: Addressed,
  address: Address,
  lanes: number,
  aligned: number,
  gate: string | null,
  other: readonly string[],
): readonly string[] {
  const { dtype } = mem;
  const kind = dtype === 'bool' ? 'r' : registerOf[dtype];
  const values: string[] = [];
  for (const size of pieces(lanes, bytesOf(dtype), aligned)) {
    const first = values.length;
    const to = Array.from({ length: size }, () => w.fresh(kind));
    if (gate !== null)
      for (const [i, register] of to.entries()) {
        const alternative = other[Math.min(first + i, other.length - 1)] ?? '0';
        if (dtype === 'bool') w.line(`selp.b32 ${register}, 1, 0, ${alternative};`);
        else w.line(`mov.${bitsType[kind]} ${register}, ${alternative};`);
      }
    const when = gate === null ? '' : `@${gate} `;
    const type = memoryType[dtype];
    w.line(`${when}ld.${space(mem)}${suffix(size)}.${type} ${vector(to)}, ${address(first * bytesOf(dtype))};`);
    for (const register of to) values.push(dtype === 'bool' ? w.op('p', 'setp.ne.s32', register, '0') : register);
  }
  return values;
}

/** A store of consecutive elements; none where the gate is closed. */
export function store(
  w: Writer,
  mem: Addressed,
  address: Address,
  value: readonly string[],
  aligned: number,
  gate: string | null,
): void {
  const { dtype } = mem;
  const held = dtype === 'bool' ? value.map((x) => w.op('r', 'selp.b32', '1', '0', x)) : value;
  const when = gate === null ? '' : `@${gate} `;
  const type = memoryType[dtype].replace('s', 'u');
  let done = 0;
  for (const size of pieces(held.length, bytesOf(dtype), aligned)) {
    const part = held.slice(done, done + size);
    w.line(`${when}st.${space(mem)}${suffix(size)}.${type} ${address(done * bytesOf(dtype))}, ${vector(part)};`);
    done += size;
  }
}

type AtomicOp = KNodeOf<'ATOMIC'>['arg']['op'];

/** An atomic combine. Floats go by compare and exchange: the instruction for sums takes denormal numbers in device memory for 0. */
export function atomic(
  w: Writer,
  op: AtomicOp,
  mem: Addressed,
  address: Address,
  value: string,
  gate: string | null,
): void {
  const { dtype } = mem;
  const bytes = bytesOf(dtype);
  if (bytes < 4) w.refuse(`ATOMIC ${op} on ${dtype}: atomics need elements of four bytes`);
  if (op === 'or' && isFloat(dtype)) w.refuse(`ATOMIC or on ${dtype}`);
  const bits = 8 * bytes;
  if (!isFloat(dtype)) {
    const type = op === 'or' ? `b${bits}` : `${op === 'add' || isUnsigned(dtype) ? 'u' : 's'}${bits}`;
    w.line(`${gate === null ? '' : `@${gate} `}red.${space(mem)}.${op}.${type} ${address(0)}, ${value};`);
    return;
  }
  const [kind, whole] = [registerOf[dtype], bytes === 8 ? ('rd' as const) : ('r' as const)];
  const [again, end] = [w.label(), w.label()];
  if (gate !== null) w.line(`@!${gate} bra ${end};`);
  const old = w.op(whole, `ld.${space(mem)}.b${bits}`, address(0));
  w.place(again);
  const made = combine(w, op, dtype, w.op(kind, `mov.b${bits}`, old), value);
  const seen = w.op(whole, `atom.${space(mem)}.cas.b${bits}`, address(0), old, w.op(whole, `mov.b${bits}`, made));
  const differs = w.op('p', `setp.ne.b${bits}`, seen, old);
  w.line(`mov.b${bits} ${old}, ${seen};`);
  w.line(`@${differs} bra ${again};`);
  w.place(end);
}

/** The registers an operation of a dtype needs for each lane of a REG. */
export function registers(w: Writer, dtype: DType, lanes: number): readonly string[] {
  return Array.from({ length: lanes }, () => w.fresh(registerOf[dtype]));
}
