/** Where graphs begin: data and numbers from outside, numbers in kernels, positions, random bits. */
import { makeNode } from '../graph/build.ts';
import type { Batches, Family } from '../graph/definition.ts';
import { fail } from '../graph/infer-checks.ts';
import type { KNode } from '../ir/ir.ts';
import { threefry } from '../planner/capture/threefry.ts';
import { flatten } from '../planner/lowering/index-map.ts';
import { part } from '../planner/lowering/values.ts';
import { showShape } from '../shape/errors.ts';
import { say } from '../shape/shown.ts';

const nothing = (): void => {};

export const leaves: Family<'buffer' | 'scalar' | 'constant' | 'iota' | 'randomBits'> = {
  buffer: {
    infer: { shape: (_, attr) => attr.shape, dtype: (_, attr) => attr.dtype },
    role: 'leaf',
    work: 0,
    sources: nothing,
    value: (c, demand, node) => c.load(demand, node, demand.index, demand.gate),
  },
  // Its value is bound at each run and leaves no trace in plan keys.
  scalar: {
    infer: { shape: () => [], dtype: (_, attr) => attr.dtype },
    role: 'leaf',
    work: 0,
    sources: nothing,
    value: (c, demand) => c.scalar(demand),
  },
  constant: {
    infer: { shape: (_, attr) => attr.shape, dtype: (_, attr) => attr.dtype },
    role: 'generate',
    work: 0,
    encode: (a, out) => out.number(a.value),
    sources: nothing,
    value: (c, _, node) => c.e.constant(node.dtype, node.attr.value),
  },
  iota: {
    infer: { shape: (_, attr) => [attr.length], dtype: () => 'int32' },
    role: 'generate',
    work: 1,
    encode: (a, out) => out.push(a.length),
    sources: nothing,
    value: (_, demand) => demand.index[0] as KNode,
  },
  randomBits: {
    infer: {
      shape: (_, attr) => attr.shape,
      dtype: (src) => {
        if (src.length !== 2 || src.some((key) => key.dtype !== 'uint32' || key.shape.length !== 0)) {
          fail(
            'randomBits',
            say`a key is two uint32 scalars: got ${src.map((key) => key.dtype + showShape(key.shape)).join(', ')}`,
          );
        }
        return 'uint32';
      },
    },
    role: 'generate',
    work: 90,
    encode: (a, out) => out.list(a.shape),
    sources: (c, node) => {
      for (const key of node.src) c.need(key, []);
    },
    value: (c, demand, node) => {
      const at = c.e.cast(flatten(c.e, node.shape, demand.index), 'uint32');
      return threefry(c.e, part(demand, 0), part(demand, 1), at);
    },
  },
};

export const leafBatches: Batches<'randomBits'> = {
  randomBits: (c) => {
    if (c.sources.some((source) => source !== null))
      throw new Error('[batch] a key depends on the batch; this is a bug');
    return makeNode('randomBits', c.src, { ...c.attr, shape: [c.size, ...c.attr.shape] });
  },
};
