/** Every operation in mixed precision: its dtypes are those of the table, and the table those of what operations are made of. */
import { readFileSync } from 'node:fs';
import * as pg from '@polygrad/core';
import { castPolicies } from '@polygrad/core/internals';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { draw } from '../expand.ts';
import { makeTensor } from '../layouts.ts';
import type { Instance, OpSpec } from '../spec.ts';
import { operations } from './registry.ts';

type Node = pg.Tensor['node'];

/** In 16 bits although they sum nothing, and why. */
const otherNarrow: Readonly<Record<string, string>> = {
  kron: 'every element is a product',
  outer: 'every element is a product',
  prelu: "as in PyTorch's table",
};

/** Composed of products, but computed in float32, and why. */
const otherProducts: Readonly<Record<string, string>> = {
  cdist: 'a norm of differences',
};

const isSmall = (dtype: pg.DType): boolean => dtype === 'float32' || dtype === 'bfloat16';

function called(spec: OpSpec, instance: Instance, dtypeAt: (i: number) => pg.DType): pg.Tensor {
  const inputs = draw(spec, instance).map((a, i) => makeTensor(a, spec.inputDTypes?.[i] ?? dtypeAt(i)));
  return spec.run(inputs, instance.options ?? {});
}

/** Primitives below a node. */
function primitives(root: Node): Set<string> {
  const found = new Set<string>();
  const seen = new Set<Node>();
  const stack = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    found.add(node.op);
    stack.push(...node.src);
  }
  return found;
}

const cases = operations.flatMap(({ name, specs }) =>
  specs
    .filter(({ dtypes }) => dtypes.includes('float32'))
    .flatMap((spec) => spec.instances.slice(0, 3).map((instance) => ({ name, spec, instance }))),
);

describe('operations in mixed precision', () => {
  beforeAll(() => pg.setEngine(createReferenceEngine()));

  it('are in the table for what they are made of', () => {
    const products = new Set<string>();
    for (const { name, spec, instance } of cases)
      pg.scope(() => {
        const ops = primitives(called(spec, instance, () => 'float32').node);
        if (ops.has('dotGeneral') || ops.has('conv')) products.add(name);
      });
    const narrow = [...castPolicies].filter(([, policy]) => policy === 'narrow').map(([name]) => name);
    expect([...products].filter((name) => !narrow.includes(name) && !(name in otherProducts))).toEqual([]);
    expect(narrow.filter((name) => !products.has(name)).sort()).toEqual(Object.keys(otherNarrow).sort());
  });

  it('are told of in docs/mixed-precision.md', () => {
    const page = readFileSync(new URL('../../../../docs/mixed-precision.md', import.meta.url), 'utf8');
    const told = new Map<string, string>();
    for (const [, label, cell] of page.matchAll(/^\| (16 bits|float32) +\| (.*?) +\|$/gm))
      for (const [, name] of cell!.matchAll(/`(\w+)`/g)) told.set(name!, label === 'float32' ? label : 'narrow');
    expect([...told]).toEqual([...castPolicies]);
  });

  it('are public operations', () => {
    expect([...castPolicies.keys()].filter((name) => !(name in pg))).toEqual([]);
  });

  it('have the dtypes that the table says', () => {
    const wrong: string[] = [];
    for (const { name, spec, instance } of cases)
      for (const [label, dtypeAt] of [
        ['float32', (): pg.DType => 'float32'],
        ['bfloat16', (): pg.DType => 'bfloat16'],
        ['both', (i: number): pg.DType => (i % 2 === 0 ? 'float32' : 'bfloat16')],
        ['both, turned', (i: number): pg.DType => (i % 2 === 0 ? 'bfloat16' : 'float32')],
      ] as const)
        pg.scope(() => {
          const policy = castPolicies.get(name);
          try {
            const { dtype } = pg.autocast('bfloat16', () => called(spec, instance, dtypeAt));
            if (!isSmall(dtype)) return;
            const want =
              policy === 'narrow'
                ? 'bfloat16'
                : policy === 'float32'
                  ? 'float32'
                  : called(spec, instance, dtypeAt).dtype;
            if (dtype !== want) wrong.push(`${spec.name} / ${instance.label} / ${label}: ${dtype}, not ${want}`);
          } catch (error) {
            wrong.push(`${spec.name} / ${instance.label} / ${label}: ${(error as Error).message.slice(0, 100)}`);
          }
        });
    expect(wrong).toEqual([]);
  });
});
