/** Plan keys: equal for equal structures, different for different ones. */
import fc from 'fast-check';
import * as p from '../../graph/primitives.ts';
import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import { type Node, retain } from '../../graph/node.ts';
import { createNullEngine } from '@polygrad/testing';
import { collected } from './fixtures/collected.ts';
import { growGraph } from '../../runtime/fixtures/random-graph.ts';
import { uploadNode } from '../../runtime/upload.ts';
import { draws } from '@polygrad/compiler/fixtures/draws';

beforeAll(async () => {
  await setEngine(createNullEngine());
});

const keyOf = (outputs: readonly Node[]): string => collected(outputs).key.values().join();

/** The structure as text, written without the encoder: a node by its primitive, attributes and sources. */
function textOf(outputs: readonly Node[]): string {
  const names = new Map<Node, number>();
  const lines: string[] = [];
  const visit = (node: Node): number => {
    const known = names.get(node);
    if (known !== undefined) return known;
    const sources = node.storage === null ? node.src.map(visit) : [];
    names.set(node, names.size);
    const attr = node.op === 'scalar' ? 'number' : JSON.stringify(node.attr);
    lines.push(`${node.op} ${node.dtype} ${node.shape} ${attr} ${sources}`);
    return names.size - 1;
  };
  const order = outputs.map(visit);
  return `${lines.join('\n')}\n${order}`;
}

function grow(choices: readonly number[]): readonly Node[] {
  const { outputs } = growGraph(choices, (values, shape, dtype) =>
    uploadNode(dtype === 'float32' ? Float32Array.from(values) : Int32Array.from(values), shape, dtype),
  );
  return outputs;
}

describe('plan keys', () => {
  it('are equal exactly where the structure is', () => {
    const seen = new Map<string, string>();
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 60 }), { minLength: 4, maxLength: 40 }), (choices) => {
        const outputs = grow(choices);
        if (outputs.length === 0) return;
        const key = keyOf(outputs);
        const text = textOf(outputs);
        expect(seen.get(key) ?? text).toBe(text);
        seen.set(key, text);
        expect(keyOf(grow(choices))).toBe(key);
      }),
      { numRuns: 1500, ...draws },
    );
    expect(seen.size).toBeGreaterThan(100);
    expect(new Set(seen.values()).size).toBe(seen.size);
  });

  it('leave out bound numbers, and tell numbers of kernels apart by their bits', () => {
    const x = uploadNode(new Float32Array(3), [3], 'float32');
    retain(x);
    const times = (n: Node): string => keyOf([p.mul(x, n)]);
    expect(times(p.scalar(2, 'float32'))).toBe(times(p.scalar(3, 'float32')));
    expect(times(p.constant(2, 'float32'))).not.toBe(times(p.constant(3, 'float32')));
    expect(times(p.constant(0, 'float32'))).not.toBe(times(p.constant(-0, 'float32')));
  });
});
