/**
 * Numbers of a step: the learning rate and what formulas make of it. They are checked before anything is recorded, because one NaN would be in every
 * parameter after it. They are scalars on the device, because a new value then makes no new plan.
 */
import { shown } from '@polygrad/core/engine';
import { type DType, hostNumber, type Tensor } from '@polygrad/core/functions';
import { NnError } from '../errors.ts';

/** Numbers of one step as scalars on the device, by name. */
export type Scalars<Names extends string> = { readonly [Name in Names]: Tensor };

/** Scalars that depend on the number of the step. */
export type StepScalars<Names extends string> = { readonly [Name in Names]?: Tensor };

/** 1 - beta ** step, of a step whose number only the device knows. A function gives the beta of each step. */
export type Correction = (beta: number | (() => number)) => Tensor;

/** The learning rate of a step, checked. `source`: where it is from; `step`: the number of the step. */
export function checkedRate(rate: unknown, source: string, step: number): number {
  if (typeof rate === 'number' && Number.isFinite(rate) && rate >= 0) return rate;
  throw new NnError('step', `bad ${source} for step ${step}: ${shown(rate)}; must be a finite number of at least 0`, [
    'learningRate',
  ]);
}

/** What formulas give for a step, checked. */
export function checkedNumbers<Names extends string>(
  numbers: Record<Names, number>,
  step: number,
): Record<Names, number> {
  for (const [name, value] of Object.entries<unknown>(numbers)) {
    if (typeof value === 'number' && !Number.isNaN(value)) continue;
    throw new NnError('step', `bad ${name} for step ${step}: ${shown(value)}; must be a number`, [name]);
  }
  return numbers;
}

/** Numbers as scalars of a dtype, bound when a plan runs. */
export function scalarsOf<Names extends string>(numbers: () => Record<Names, number>, dtype: DType): Scalars<Names> {
  const found: Partial<Record<Names, Tensor>> = {};
  for (const name of Object.keys(numbers()) as Names[]) found[name] = hostNumber(() => numbers()[name], { dtype });
  return found as Scalars<Names>;
}
