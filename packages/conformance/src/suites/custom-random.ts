/**
 * Random bodies of kernels of users: loops, conditions, loads at any index and arithmetic that wraps, run by two arithmetics, that of kernels and that of
 * JavaScript.
 */
import * as pg from '@polygrad/core';
import { defineKernel, type KernelContext, type KernelInput, type KernelValue } from '@polygrad/core/custom';
import { makeRandom, type Random, seedOf } from '../oracle/random.ts';
import { compared, exact } from './order/values.ts';

/** What a random body is written in. */
interface Algebra<V> {
  constant(n: number): V;
  binary(op: (typeof binaries)[number], a: V, b: V): V;
  choose(op: 'less' | 'equal', a: V, b: V, c: V, d: V): V;
  load(index: readonly V[], outside: number | null): V;
  variable(first: V): { get(): V; set(v: V): void };
  loop(count: V, most: number, body: (i: V) => void): void;
  when(a: V, b: V, body: () => void, otherwise: () => void): void;
}

const binaries = [
  'add',
  'sub',
  'mul',
  'floorDivide',
  'remainder',
  'minimum',
  'maximum',
  'bitwiseAnd',
  'bitwiseOr',
  'bitwiseXor',
  'leftShift',
  'rightShift',
] as const;

const onNumbers: Record<(typeof binaries)[number], (a: number, b: number) => number> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: Math.imul,
  floorDivide: (a, b) => (b === 0 ? 0 : Math.floor(a / b) | 0),
  remainder: (a, b) => (b === 0 ? 0 : (a - Math.floor(a / b) * b) | 0),
  minimum: Math.min,
  maximum: Math.max,
  bitwiseAnd: (a, b) => a & b,
  bitwiseOr: (a, b) => a | b,
  bitwiseXor: (a, b) => a ^ b,
  leftShift: (a, b) => a << b,
  rightShift: (a, b) => a >> b,
};

/** Values that a body has by number: the indices of its thread, then those of the loops around. */
type Term =
  | { readonly kind: 'constant'; readonly n: number }
  | { readonly kind: 'known'; readonly at: number }
  | { readonly kind: 'variable' }
  | { readonly kind: 'binary'; readonly op: (typeof binaries)[number]; readonly a: Term; readonly b: Term }
  | { readonly kind: 'choose'; readonly op: 'less' | 'equal'; readonly of: readonly [Term, Term, Term, Term] }
  | { readonly kind: 'load'; readonly index: readonly [Term, Term]; readonly outside: number | null };

type Step =
  | { readonly kind: 'set'; readonly to: Term }
  | { readonly kind: 'loop'; readonly count: Term; readonly most: number; readonly steps: readonly Step[] }
  | {
      readonly kind: 'when';
      readonly less: readonly [Term, Term];
      readonly steps: readonly Step[];
      readonly otherwise: readonly Step[];
    };

/** A random body: a variable, steps that change it, and what is written. */
interface Body {
  readonly first: Term;
  readonly steps: readonly Step[];
  readonly last: Term;
}

const extreme = [0, 1, -1, 2, 3, 7, 31, 32, 1000, -1000, 65536, 2 ** 31 - 1, -(2 ** 31)];

function randomBody(r: Random): Body {
  const pick = (n: number): number => Math.min(n - 1, Math.floor(r() * n));
  const term = (known: number, depth: number): Term => {
    const kind = depth <= 0 ? pick(3) : pick(7);
    const part = (): Term => term(known, depth - 1);
    if (kind === 0) return { kind: 'constant', n: extreme[pick(extreme.length)]! };
    if (kind === 1) return { kind: 'known', at: pick(known) };
    if (kind === 2) return { kind: 'variable' };
    if (kind === 3) return { kind: 'load', index: [part(), part()], outside: pick(2) === 0 ? null : pick(100) };
    if (kind === 4)
      return { kind: 'choose', op: pick(2) === 0 ? 'less' : 'equal', of: [part(), part(), part(), part()] };
    return { kind: 'binary', op: binaries[pick(binaries.length)]!, a: part(), b: part() };
  };
  const steps = (known: number, depth: number): Step[] =>
    Array.from({ length: pick(3) + 1 }, (): Step => {
      const kind = depth <= 0 ? 0 : pick(3);
      if (kind === 0) return { kind: 'set', to: term(known, 3) };
      if (kind === 1) return { kind: 'loop', count: term(known, 2), most: pick(6), steps: steps(known + 1, depth - 1) };
      return {
        kind: 'when',
        less: [term(known, 2), term(known, 1)],
        steps: steps(known, depth - 1),
        otherwise: steps(known, depth - 1),
      };
    });
  return { first: term(2, 0), steps: steps(2, 2), last: term(2, 3) };
}

/** Runs a body in an arithmetic. */
function play<V>(body: Body, algebra: Algebra<V>, index: readonly V[]): V {
  const variable = algebra.variable(index[0]!);
  const value = (term: Term, known: readonly V[]): V => {
    const of = (t: Term): V => value(t, known);
    switch (term.kind) {
      case 'constant':
        return algebra.constant(term.n);
      case 'known':
        return known[term.at]!;
      case 'variable':
        return variable.get();
      case 'load':
        return algebra.load(term.index.map(of), term.outside);
      case 'choose':
        return algebra.choose(term.op, of(term.of[0]), of(term.of[1]), of(term.of[2]), of(term.of[3]));
      case 'binary':
        return algebra.binary(term.op, of(term.a), of(term.b));
      default:
        return term satisfies never;
    }
  };
  const run = (steps: readonly Step[], known: readonly V[]): void => {
    for (const step of steps) {
      if (step.kind === 'set') variable.set(value(step.to, known));
      else if (step.kind === 'loop')
        algebra.loop(value(step.count, known), step.most, (i) => run(step.steps, [...known, i]));
      else
        algebra.when(
          value(step.less[0], known),
          value(step.less[1], known),
          () => run(step.steps, known),
          () => run(step.otherwise, known),
        );
    }
  };
  variable.set(value(body.first, index));
  run(body.steps, index);
  return value(body.last, index);
}

function ofKernel(k: KernelContext, x: KernelInput): Algebra<KernelValue> {
  return {
    constant: (n) => k.constant(n, 'int32'),
    binary: (op, a, b) => a[op](b),
    choose: (op, a, b, c, d) => k.where(a[op](b), c, d),
    load: (index, outside) => (outside === null ? x.at(index) : x.at(index, outside)),
    variable: (first) => {
      const v = k.variable(first);
      return { get: () => v.value, set: (n) => v.set(n) };
    },
    loop: (count, most, body) => k.loop(count.minimum(most), body),
    when: (a, b, body, otherwise) => k.ifThen(a.less(b), body, otherwise),
  };
}

function ofNumbers(x: readonly number[], [rows, columns]: readonly [number, number]): Algebra<number> {
  const near = (v: number, n: number): number => Math.max(0, Math.min(v, n - 1));
  return {
    constant: (n) => n,
    binary: (op, a, b) => onNumbers[op](a, b),
    choose: (op, a, b, c, d) => ((op === 'less' ? a < b : a === b) ? c : d),
    load: ([i, j], outside) => {
      const inside = i! >= 0 && i! < rows && j! >= 0 && j! < columns;
      return outside === null || inside ? x[near(i!, rows) * columns + near(j!, columns)]! : outside;
    },
    variable: (first) => {
      let v = first;
      return { get: () => v, set: (n) => void (v = n) };
    },
    loop: (count, most, body) => {
      for (let i = 0; i < Math.min(count, most); i++) body(i);
    },
    when: (a, b, body, otherwise) => (a < b ? body() : otherwise()),
  };
}

/** One random body on one random tensor. */
async function randomBodyCase(seed: number): Promise<void> {
  const r = makeRandom(seed);
  const [rows, columns] = [1 + Math.floor(r() * 4), 1 + Math.floor(r() * 5)];
  const x = Array.from({ length: rows * columns }, () => Math.floor((r() - 0.5) * 2 ** (1 + Math.floor(r() * 31))) | 0);
  const grid = [1 + Math.floor(r() * 9), 1 + Math.floor(r() * 9)] as const;
  const body = randomBody(r);
  const kernel = defineKernel({
    name: 'random',
    form: 'threads',
    inputs: { x: { dtype: 'int32', rank: 2 } },
    outputs: { y: () => ({ shape: [...grid], dtype: 'int32' }) },
    body: (k, inputs, { y }) => y.set(k.index, play(body, ofKernel(k, inputs.x), k.index)),
  });
  const expected: number[] = [];
  for (let i = 0; i < grid[0]; i++)
    for (let j = 0; j < grid[1]; j++) expected.push(play(body, ofNumbers(x, [rows, columns]), [i, j]));
  await compared(
    pg.scope(() => kernel({ x: pg.tensor(x, { dtype: 'int32', shape: [rows, columns] }) }).y),
    { expected, shape: grid, tolerance: exact },
  );
}

/** Random bodies of a run of the suite; each is a tensor of another form, of another program. */
const bodies = 40;

export const randomCases = (): readonly (readonly [string, () => Promise<void>])[] =>
  Array.from({ length: bodies }, (_, i) => [`random body ${i}`, () => randomBodyCase(seedOf(`custom kernels ${i}`))]);
