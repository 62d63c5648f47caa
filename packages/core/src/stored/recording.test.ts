/** What is recorded for pages is what pages ask for: they guess no sizes before a second one is there. */
import { createNullEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { announce, clearPlans, scope, setEngine, stats, type Tensor, tensor } from '../index.ts';
import { recordPlans } from './recording.ts';

it('has the plans of both sizes of a step that is announced', async () => {
  await setEngine(createNullEngine());
  const step = (rows: number): Tensor =>
    scope(() =>
      tensor(new Float32Array(rows), { shape: [rows, 1] })
        .mul(2)
        .sum(),
    );
  const made = (): number => {
    clearPlans();
    const { plansMade } = stats();
    announce(() => step(96));
    for (const rows of [128, 96]) step(rows).dispose();
    return stats().plansMade - plansMade;
  };
  const recording = recordPlans();
  const recorded = made();
  recording.stop();
  expect([recorded, made()]).toEqual([2, 1]);
});

it('has the plan of two elements along an axis that had one', async () => {
  await setEngine(createNullEngine());
  const made = (): number => {
    clearPlans();
    const { plansMade } = stats();
    for (const length of [1, 2, 3]) {
      const row = tensor(new Float32Array(length), { shape: [length, 1] });
      scope(() => row.mul(tensor([1, 2, 3])).sum()).dispose();
      row.dispose();
    }
    return stats().plansMade - plansMade;
  };
  const recording = recordPlans();
  const recorded = made();
  recording.stop();
  expect([recorded, made()]).toEqual([3, 2]);
});
