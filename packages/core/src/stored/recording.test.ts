/** What is recorded for pages is what pages ask for: steps that are announced change nothing there. */
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
