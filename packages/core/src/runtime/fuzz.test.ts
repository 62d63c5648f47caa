/** Random graphs: what is computed fused, and flushed after every node, against values by definition. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { setEngine } from '../engine/registry.ts';
import { makeNode } from '../graph/primitives.ts';
import { type Node, release, retain, type TrackedHandle } from '../graph/node.ts';
import { trackHandle } from '../graph/recorder.ts';
import { rowMajorStrides, sizeOf } from '@polygrad/compiler/shape/view';
import { type Values, valuesOf } from '../graph/fixtures/graph-values.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { growGraph } from './fixtures/random-graph.ts';
import { flushNodes } from './fixtures/flush-nodes.ts';
import { readNode } from './reading.ts';
import { flush, stats } from './runtime.ts';
import { uploadNode } from './upload.ts';
import { draws } from '@polygrad/compiler/fixtures/draws';

const runs = Number(process.env.FUZZ_RUNS ?? 60);

const engines: readonly [string, () => IEngine][] = [
  ['reference', () => createReferenceEngine({ nativeFunctions: true })],
  ['reference with groups', () => createReferenceEngine({ nativeFunctions: true, simt: true })],
  [
    'reference with 6 bindings and no arenas',
    () => {
      const engine = createReferenceEngine({ nativeFunctions: true });
      return { ...engine, caps: { ...engine.caps, maxBindings: 6, arena: false, bindAlign: 256 } };
    },
  ],
];

/** clip(c - sum(c), -8, 8), where c = clip(scatterAdd(w, [0, 0, 0], w), -8, 8): the sum was once taken in the loop of the scattered sums. */
const sumOfScattered = [
  [44, 0, 0, 0, 6267, 0, 0, 0, 3748, 0, 0, 0, 0, 1, 0, 0, 6286],
  [0, 0, 0, 0, 0, 0, 0, 4453, 0, 0, 0, 0, 0, 131, 0, 0],
].flat();

/** Copies of a graph, so that one description can be computed twice in different ways. */
function build(choices: readonly number[]): { nodes: Node[]; outputs: Node[]; leaves: Map<Node, Values> } {
  const leaves = new Map<Node, Values>();
  const leaf = (values: readonly number[], shape: readonly number[], dtype: 'float32' | 'int32'): Node => {
    const node = uploadNode(dtype === 'float32' ? Float32Array.from(values) : Int32Array.from(values), shape, dtype);
    leaves.set(node, Float64Array.from(values));
    return node;
  };
  return { ...growGraph(choices, leaf), leaves };
}

function handleOf(node: Node): TrackedHandle {
  return {
    node,
    disposed: false,
    watched: { live: { tensors: 1 }, node },
    kept: false,
    stamp: 0,
    dispose: () => undefined,
  };
}

function compare(got: ArrayLike<number>, want: Values, what: string): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    const [a, b] = [got[i] as number, want[i] as number];
    const close = Object.is(a, b) || a === b || Math.abs(a - b) <= 1e-4 + 1e-4 * Math.abs(b);
    if (!close) throw new Error(`${what}: element ${i} is ${a}, should be ${b}`);
  }
}

describe.each(engines)('random graphs on %s', (_, make) => {
  beforeAll(async () => {
    await setEngine(make());
  });

  it('give the values of their definition, all at once and node by node', async () => {
    const choices = fc.array(fc.nat({ max: 9999 }), { minLength: 20, maxLength: 160 });
    await fc.assert(
      fc.asyncProperty(choices, async (list) => {
        const before = stats().bytes;
        const fused = build(list);
        const want = valuesOf(fused.outputs, fused.leaves);
        for (const node of [...fused.leaves.keys(), ...fused.outputs]) retain(node);
        flushNodes(fused.outputs);
        for (const [i, node] of fused.outputs.entries()) {
          compare((await readNode(node)) as Float32Array, want[i] as Values, `fused ${node.op} [${node.shape}]`);
        }
        for (const node of [...fused.outputs, ...fused.leaves.keys()]) release(node);

        const single = build(list);
        for (const node of single.nodes) retain(node);
        for (const node of single.nodes) if (node.op !== 'scalar') flushNodes([node]);
        for (const [i, node] of single.outputs.entries()) {
          compare((await readNode(node)) as Float32Array, want[i] as Values, `alone ${node.op} [${node.shape}]`);
        }
        for (const node of single.nodes) release(node);
        expect(stats().bytes).toBe(before);

        // No handle holds the inputs when the work is done: outputs may be written over them.
        const last = build(list);
        for (const node of [...last.leaves.keys(), ...last.outputs]) retain(node);
        for (const node of last.outputs) trackHandle(handleOf(node));
        for (const node of last.leaves.keys()) release(node);
        flush();
        for (const [i, node] of last.outputs.entries()) {
          compare((await readNode(node)) as Float32Array, want[i] as Values, `over inputs ${node.op} [${node.shape}]`);
        }
        for (const node of last.outputs) release(node);
        expect(stats().bytes).toBe(before);
      }),
      {
        numRuns: runs,
        examples: [[sumOfScattered]],
        ...draws,
      },
    );
  });
});

describe('views', () => {
  it('of strided leaves are read in place', async () => {
    const base = uploadNode(
      Float32Array.from({ length: 24 }, (_, i) => i),
      [4, 6],
      'float32',
    );
    retain(base);
    const flipped = makeNode('slice', [base], { start: [3, 5], length: [2, 3], step: [-2, -2] });
    const sum = makeNode('add', [flipped, flipped], null);
    retain(sum);
    expect(rowMajorStrides(sum.shape)).toEqual([3, 1]);
    expect(sizeOf(sum.shape)).toBe(6);
    expect(Array.from((await readNode(sum)) as Float32Array)).toEqual([46, 42, 38, 22, 18, 14]);
    release(sum);
    release(base);
  });
});
