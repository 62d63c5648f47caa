/** What identifies a plan: the same in every process, whatever numbers its primitives have there. */
import fc from 'fast-check';
import { draws } from '@polygrad/compiler/fixtures/draws';
import { createNullEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import { setEngine } from '../engine/registry.ts';
import { type AnyDefinition, definitionAt, definitions } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import { collected } from '../planner/capture/fixtures/collected.ts';
import { growGraph } from '../runtime/fixtures/random-graph.ts';
import { uploadNode } from '../runtime/upload.ts';
import { isFor, type Signature, signatureOf } from './entries.ts';

beforeAll(async () => {
  await setEngine(createNullEngine());
});

function grow(choices: readonly number[]): readonly Node[] {
  const { outputs } = growGraph(choices, (values, shape, dtype) =>
    uploadNode(dtype === 'float32' ? Float32Array.from(values) : Int32Array.from(values), shape, dtype),
  );
  return outputs;
}

/** The signature in a program where primitives have other numbers: from 255 down. `renamed` is called something else there. */
function elsewhere(outputs: readonly Node[], renamed = ''): Signature {
  const { nodes, count } = collected(outputs);
  for (const node of nodes.slice(0, count) as { kind: number; op: string; storage: unknown }[]) {
    if (node.storage !== null) continue;
    (definitions as AnyDefinition[])[255 - node.kind] = definitionAt(node.kind);
    node.kind = 255 - node.kind;
    if (node.op === renamed) node.op = `another ${node.op}`;
  }
  return signatureOf(collected(outputs), null);
}

it('is the same where primitives have other numbers, and another one where one of them is another', () => {
  let several = 0;
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 60 }), { minLength: 4, maxLength: 40 }), (choices) => {
      if (grow(choices).length === 0) return;
      const captured = collected(grow(choices));
      const numbers = captured.key.values();
      const here = signatureOf(captured, null);
      const outputs = grow(choices);
      const there = elsewhere(outputs);
      expect(there).toEqual(here);
      expect(isFor({ ...here, context: 'c' }, 'c', there)).toBe(true);
      expect(isFor({ ...here, context: 'c' }, 'd', there)).toBe(false);
      // Otherwise the numbers would be the same as well.
      expect(collected(outputs).key.values()).not.toEqual(numbers);
      const { primitives } = here;
      several += Number(primitives.length > 2);
      expect(isFor({ ...here, context: '' }, '', elsewhere(grow(choices), primitives.at(-1)))).toBe(false);
    }),
    { numRuns: 300, ...draws },
  );
  expect(several).toBeGreaterThan(30);
});
