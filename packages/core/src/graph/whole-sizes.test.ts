/** Sizes as engines of JavaScript keep small integers: a list of doubles makes an object of each number that is read, and code that met one stays slower. */
import { setFlagsFromString } from 'node:v8';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import * as pg from '../index.ts';
import { setEngine, type Tensor, tensor } from '../index.ts';
import { nodeOf } from '../tensor/handle.ts';
import type { Node } from './node.ts';

setFlagsFromString('--allow-natives-syntax');
const hasDoubles = new Function('list', 'return %HasDoubleElements(list)') as (list: readonly number[]) => boolean;

/** Nodes that a tensor is computed from whose shapes are lists of doubles. */
function inDoubles(t: Tensor): string[] {
  const found: string[] = [];
  const stack: Node[] = [nodeOf(t)];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (hasDoubles(n.shape)) found.push(`${n.op} [${n.shape}]`);
    stack.push(...n.src);
  }
  return found;
}

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

it('those that users reckon with fractions', () => {
  const [two, six] = [0.5, 1.5].map((x) => x * 4) as [number, number];
  const shape = [two, six, 0.5].slice(0, 2);
  expect(hasDoubles(shape)).toBe(true);
  const x = tensor(new Float32Array(12), { shape });
  const made: Record<string, Tensor> = {
    tensor: x,
    zeros: pg.zeros(shape),
    full: pg.full(shape, 2),
    rand: pg.rand(shape),
    randn: pg.randn(shape),
    randint: pg.randint(0, 6, shape),
    reshape: pg.reshape(pg.arange(12), shape),
    rest: pg.reshape(x, [-1, six / 2]),
    broadcastTo: pg.broadcastTo(tensor(1), shape),
    arange: pg.arange(0, two * six, 1),
    slice: pg.slice(x, [null, { start: two / 2, stop: six - 1 }]),
    sum: pg.sum(x, { axis: two / 2 }),
  };
  expect(Object.entries(made).flatMap(([name, t]) => inDoubles(t).map((node) => `${name}: ${node}`))).toEqual([]);
});
