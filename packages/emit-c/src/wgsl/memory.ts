/**
 * Loads, stores and atomics in WGSL. Buffers are arrays of scalars, so vectors are gathered element by element at any alignment;
 * bool lies in words. Memory some ATOMIC works on is an array of atomics, accessed only as such; float32 then goes by its bits.
 */
import type { KNodeOf } from '@polygrad/core/kernel';
import type { Context, Memory } from '../dialect.ts';
import type { DType } from '../kernel.ts';
import { call, expression, literal, operand, type Part, type Value } from '../parts.ts';
import { storageType, typeName } from './types.ts';

/** The element type of a memory's declaration. */
export function elementType({ node, atomic }: Memory, packed: boolean): string {
  const dtype = node.dtype as DType;
  if (packed) return typeName(dtype, 4);
  if (atomic) return `atomic<${dtype === 'int32' ? 'i32' : 'u32'}>`;
  return node.op === 'SHARED' && dtype === 'bool' ? 'bool' : storageType(dtype);
}

/** What the memory holds for a bool. */
const isWord = ({ node, atomic }: Memory): boolean => node.dtype === 'bool' && (node.op === 'PARAM' || atomic);

/** Index plus a number of elements. */
function advance(index: Part, by: number): Part {
  if (by === 0) return index;
  const constant = /^(\d+)i$/.exec(index.text);
  if (constant !== null) return literal(`${Number(constant[1]) + by}i`, 'int32');
  return expression(`${operand(index)} + ${by}i`, 'int32');
}

export function wgslLoad(
  c: Context,
  mem: Memory,
  at: Part,
  sizes: readonly number[],
  gate: Part | null,
  alt: Value | null,
  packed: boolean,
): Value {
  const dtype = mem.node.dtype as DType;
  const single = sizes.length === 1 && sizes[0] === 1;
  // A closed gate reads element 0 and drops it: no branch.
  const open = gate === null ? null : c.stable(gate);
  let index = open === null ? at : call(`select(0i, ${at.text}, ${open.text})`, 'int32');
  if (!single && !packed) index = c.stable(index);
  if (packed) {
    // The index counts groups of four.
    const first = sizes.length > 1 ? c.stable(index) : index;
    return sizes.map((lanes, part) => {
      const value = call(`${mem.name}[${advance(first, part).text}]`, dtype, lanes);
      return open === null || alt === null ? value : choose(open, value, alt[part]!);
    });
  }
  let done = 0;
  return sizes.map((lanes, part) => {
    const elements = Array.from({ length: lanes }, (_, i) => element(mem, advance(index, done + i)));
    done += lanes;
    const value =
      lanes === 1
        ? elements[0]!
        : call(`${typeName(dtype, lanes)}(${elements.map((e) => e.text).join(', ')})`, dtype, lanes);
    return open === null || alt === null ? value : choose(open, value, alt[part]!);
  });
}

export function choose(condition: Part, yes: Part, no: Part): Part {
  return call(`select(${no.text}, ${yes.text}, ${condition.text})`, yes.dtype, yes.lanes);
}

function element(mem: Memory, index: Part): Part {
  const dtype = mem.node.dtype as DType;
  const place = `${mem.name}[${index.text}]`;
  const text = mem.atomic ? `atomicLoad(&${place})` : place;
  if (isWord(mem)) return expression(`${text} != 0u`, dtype);
  return call(mem.atomic && dtype === 'float32' ? `bitcast<f32>(${text})` : text, dtype);
}

export function wgslStore(c: Context, mem: Memory, index: Part, value: Value, packed: boolean): readonly string[] {
  if (packed) {
    const first = value.length > 1 ? c.stable(index) : index;
    // Loads of later parts come before the store of the first.
    const parts = value.length > 1 ? value.map((p) => c.stable(p)) : value;
    return parts.map((p, i) => `${mem.name}[${advance(first, i).text}] = ${p.text};`);
  }
  const [only] = value as [Part];
  if (value.length === 1 && only.lanes === 1) return [storeOne(mem, index, only)];
  const at = c.stable(index);
  const parts = value.map((p) => (p.elements === undefined ? c.runtime(p) : p));
  let done = 0;
  return parts.flatMap((p) =>
    Array.from({ length: p.lanes }, (_, i) =>
      storeOne(
        mem,
        advance(at, done++),
        p.lanes === 1 ? p : (p.elements?.[i] ?? call(`${p.text}.${'xyzw'[i]}`, p.dtype)),
      ),
    ),
  );
}

function storeOne(mem: Memory, index: Part, value: Part): string {
  const place = `${mem.name}[${index.text}]`;
  const { text } = held(mem, value);
  return mem.atomic ? `atomicStore(&${place}, ${text});` : `${place} = ${text};`;
}

/** The value as the memory holds it. */
function held(mem: Memory, value: Part): Part {
  if (isWord(mem)) return call(`u32(${value.text})`, 'uint32');
  return mem.atomic && value.dtype === 'float32' ? call(`bitcast<u32>(${value.text})`, 'uint32') : value;
}

const functions = { add: 'atomicAdd', max: 'atomicMax', min: 'atomicMin', or: 'atomicOr' } as const;

export function wgslAtomic(
  c: Context,
  op: KNodeOf<'ATOMIC'>['arg']['op'],
  mem: Memory,
  index: Part,
  value: Part,
  combine: (a: Part, b: Part) => Part,
): string {
  const { dtype } = value;
  if (dtype === 'int32' || dtype === 'uint32') return `${functions[op]}(&${mem.name}[${index.text}], ${value.text});`;
  if (dtype === 'bool') {
    const plain = op === 'add' ? 'atomicOr' : op === 'min' ? 'atomicAnd' : functions[op];
    return `${plain}(&${mem.name}[${index.text}], u32(${value.text}));`;
  }
  if (dtype !== 'float32' || op === 'or') c.refuse(`ATOMIC ${op} on ${dtype}`);
  const name = `atomic_${op}_${mem.name}`;
  const sum = combine(call('bitcast<f32>(old)', 'float32'), call('value', 'float32'));
  c.helper(
    name,
    () =>
      `fn ${name}(index: i32, value: f32) {\n` +
      `  var old = atomicLoad(&${mem.name}[index]);\n` +
      `  loop {\n` +
      `    let tried = atomicCompareExchangeWeak(&${mem.name}[index], old, bitcast<u32>(${sum.text}));\n` +
      `    if (tried.exchanged) { break; }\n` +
      `    old = tried.old_value;\n` +
      `  }\n}`,
  );
  return `${name}(${index.text}, ${value.text});`;
}
