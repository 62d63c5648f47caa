/** Schedules against PyTorch 1.13's `torch.optim.lr_scheduler`, base rate 0.1, the rates of 12 steps. */
import { describe, expect, it } from 'vitest';
import {
  constantRate,
  cosineDecay,
  exponentialDecay,
  multiStepDecay,
  oneCycle,
  polynomialDecay,
  type Schedule,
  stepDecay,
  linearWarmup,
} from './schedule.ts';

const TORCH: Record<string, [Schedule, number[]]> = {
  StepLR: [
    stepDecay(0.1, { every: 4, factor: 0.5 }),
    [0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025],
  ],
  MultiStepLR: [
    multiStepDecay(0.1, { at: [3, 7], factor: 0.1 }),
    [0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001, 0.001, 0.001],
  ],
  ExponentialLR: [
    exponentialDecay(0.1, 0.9),
    [
      0.1, 0.09000000000000001, 0.08100000000000002, 0.07290000000000002, 0.06561000000000002, 0.05904900000000002,
      0.05314410000000002, 0.04782969000000002, 0.043046721000000024, 0.03874204890000002, 0.03486784401000002,
      0.03138105960900001,
    ],
  ],
  CosineAnnealingLR: [
    cosineDecay(0.1, { steps: 11, least: 0.01 }),
    [
      0.1, 0.09817718381265239, 0.09285640897740316, 0.08446873302753784, 0.0736936755850849, 0.061404167722297835,
      0.04859583227770218, 0.036306324414915124, 0.025531266972462177, 0.01714359102259685, 0.011822816187347618, 0.01,
    ],
  ],
  PolynomialLR: [
    polynomialDecay(0.1, { steps: 11, power: 2 }),
    [
      0.1, 0.08264462809917356, 0.06694214876033057, 0.05289256198347107, 0.04049586776859504, 0.029752066115702476,
      0.020661157024793392, 0.01322314049586777, 0.007438016528925619, 0.0033057851239669403, 0.0008264462809917362, 0,
    ],
  ],
  OneCycleLR: [
    oneCycle(0.1, { steps: 12 }),
    [
      0.0040000000000000036, 0.0349789654219583, 0.08792851591221287, 0.09944154354509119, 0.09330129698414118,
      0.0811745653949763, 0.06473789976951033, 0.046263710266697504, 0.028306099820869922, 0.01334775301888306,
      0.0034566987425395223, 4e-7,
    ],
  ],
};

describe('schedules', () => {
  for (const [name, [schedule, rates]] of Object.entries(TORCH)) {
    it(`${name}`, () => {
      for (const [step, rate] of rates.entries()) expect(schedule(step)).toBeCloseTo(rate, 14);
    });
  }

  it('stay at their last rate when they are over', () => {
    expect(cosineDecay(1, { steps: 5, least: 0.25 })(50)).toBe(0.25);
    expect(polynomialDecay(1, { steps: 5, least: 0.25 })(50)).toBe(0.25);
    expect(oneCycle(1, { steps: 5 })(50)).toBeCloseTo(1 / 25 / 1e4, 14);
  });

  it('warm up to the next schedule, which then counts from 0', () => {
    const schedule = linearWarmup(4, exponentialDecay(0.8, 0.5));
    expect([0, 1, 2, 3, 4, 5, 6].map(schedule)).toEqual([0.2, 0.4, 0.6000000000000001, 0.8, 0.8, 0.4, 0.2]);
    expect(linearWarmup(0, constantRate(3))(0)).toBe(3);
  });

  it('refuse what makes no sense', () => {
    expect(() => stepDecay(1, { every: 0 })).toThrow(/every is 0/);
    expect(() => cosineDecay(1, { steps: 1.5 })).toThrow(/steps is 1.5/);
    expect(() => constantRate(-1)).toThrow(/rate is -1/);
  });
});
