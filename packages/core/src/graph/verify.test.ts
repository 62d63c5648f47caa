/** The verifier of graphs and their printer. */
import { describe, expect, it } from 'vitest';
import { exp } from '../index.ts';
import { sameShape } from '@polygrad/compiler/shape/view';
import { wrap } from '../tensor/handle.ts';
import type { Node } from './node.ts';
import { GraphInvariantError, printGraph, verifyGraph } from './print.ts';
import { data, pretend } from './fixtures/pretended.ts';

pretend();

describe('verifier and printer', () => {
  it('prints one line per node', () => {
    const x = data(2);
    const text = printGraph([x.mul(3).add(x)]).replaceAll(/buffer \d+/g, 'buffer N');
    expect(text.split('\n').map((line) => line.replace(/\s+#.*/, ''))).toEqual([
      '%0 = buffer : float32 [2]',
      '%1 = scalar {value=3} : float32 []',
      '%2 = mul %0 %1 : float32 [2]',
      '%3 = add %2 %0 : float32 [2]',
    ]);
    expect(text).toContain('buffer N');
  });

  it('finds nodes that do not fit their rule', () => {
    const y = exp(data(2));
    verifyGraph([y]);
    const broken = { ...y.node, shape: [3] } as Node;
    expect(sameShape(broken.shape, [3])).toBe(true);
    expect(() => verifyGraph([broken])).toThrow(GraphInvariantError);
    const lost = { ...y.node, src: [] } as Node;
    expect(() => verifyGraph([lost])).toThrow(/lost its sources/);
    expect(() => verifyGraph([wrap(lost)])).toThrow(GraphInvariantError);
  });
});
