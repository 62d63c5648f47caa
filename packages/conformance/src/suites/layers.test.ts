/** The suite has every layer and every optimizer that @polygrad/nn exports. */
import * as nn from '@polygrad/nn';
import { expect, it } from 'vitest';
import { layers, optimizerNames } from './layers.ts';

const classes = Object.entries(nn as Readonly<Record<string, unknown>>).flatMap(([name, value]) => {
  const prototype = typeof value === 'function' ? (value.prototype as object | undefined) : undefined;
  return prototype === undefined ? [] : [{ name, prototype }];
});

it('every layer', () => {
  // Containers, and what has tests of its own: int8 weights have no gradient, replicas are one module on several engines.
  const others = ['Module', 'ModuleDict', 'ModuleList', 'Sequential', 'QuantizedLinear', 'Replicated'];
  const names = classes.filter(({ prototype }) => prototype instanceof nn.Module).map(({ name }) => name);
  const tried = new Set(Object.keys(layers).map((name) => name.split(',')[0]));
  expect(names.filter((name) => !tried.has(name) && !others.includes(name))).toEqual([]);
  expect(names.length).toBeGreaterThan(80);
});

it('every optimizer', () => {
  const names = classes.filter(({ prototype }) => prototype instanceof nn.Optimizer).map(({ name }) => name);
  expect([...names].sort()).toEqual([...optimizerNames].sort());
});
