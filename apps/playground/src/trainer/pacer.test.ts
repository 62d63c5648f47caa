import { describe, expect, it } from 'vitest';
import { Pacer } from './pacer.ts';

describe('Pacer', () => {
  it('reports several times a second, and counts training time only', () => {
    let now = 1000;
    const pacer = new Pacer(() => now);
    expect(pacer.reportDue()).toBe(false);
    pacer.trained(1, 50);
    pacer.trained(1, 50);
    now += 250;
    expect(pacer.reportDue()).toBe(true);
    expect(pacer.rate(64)).toBe(640);
    expect(pacer.reportDue()).toBe(false);
    expect(pacer.rate(64)).toBeNull();
  });

  it('takes as many steps in a turn as keep it short', () => {
    const pacer = new Pacer(() => 0);
    const seen = [pacer.steps];
    for (let i = 0; i < 5; i++) {
      pacer.trained(pacer.steps, pacer.steps * 4);
      seen.push(pacer.steps);
    }
    expect(seen).toEqual([1, 2, 4, 8, 10, 10]);
    pacer.trained(10, 2000);
    expect(pacer.steps).toBe(1);
    for (let i = 0; i < 20; i++) pacer.trained(pacer.steps, 0);
    expect(pacer.steps).toBe(64);
  });

  it('measures on test images seldom enough that it takes little of the time', () => {
    let now = 0;
    const pacer = new Pacer(() => now);
    now = 1400;
    expect(pacer.evaluationDue()).toBe(false);
    now = 1500;
    expect(pacer.evaluationDue()).toBe(true);
    pacer.evaluated(1000);
    now += 4900;
    expect(pacer.evaluationDue()).toBe(false);
    now += 100;
    expect(pacer.evaluationDue()).toBe(true);
    pacer.restart();
    expect(pacer.evaluationDue()).toBe(false);
  });
});
