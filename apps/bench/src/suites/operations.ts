/**
 * Public operations one by one at realistic sizes, and their gradients (the operation included), beside PyTorch: to find those that are far slower.
 * Results are compared with PyTorch's at eight places.
 */
import type { BenchCase } from '../work/cases.ts';
import type { Suite } from '../harness/suite.ts';
import { operationRows } from '../operations/rows.ts';

function cases(): BenchCase[] {
  return operationRows.flatMap(({ name, operands, torch, backward, random }) =>
    [false, ...(backward ? [true] : [])].map((back) => ({
      id: back ? `${name} + gradients` : name,
      work: { kind: 'operation' as const, name, operands, torch, random, backward: back },
    })),
  );
}

export const operations: Suite = {
  name: 'operations',
  title: 'Public operations of 2^16 to 2^20 elements, microseconds',
  peers: ['torch', 'cpu-engine'],
  oneThread: true,
  pace: { rounds: 3, turnMs: 3, warmMs: 10, maxSamples: 10 },
  cases,
  goals: () => [],
};
