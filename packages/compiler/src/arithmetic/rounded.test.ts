/** Rounding kept from a compiler that regroups sums and products: one that is written here, and as careless as it may be. */
import { describe, expect, it } from 'vitest';
import { around, decomposed, floats, functions, singleCaps, ulps, worst } from './fixtures/accuracy.ts';
import { toJsFunction } from '../ir/fixtures/js-function.ts';
import { decompose } from '@polygrad/core/kernel';
import { fma32 } from '../interpreter/values.ts';
import { Exprs } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';
import type { UnaryOp } from '../ir/operations.ts';
import { remake } from '../ir/rewrite.ts';
import { keepRounding } from './rounded.ts';
import { nodesOf, sourcesFirst } from '../ir/node.ts';

const guarded = { ...singleCaps, nativeOps: new Set(['ROUNDED'] as const), keepRounding };
const unguarded = { ...singleCaps, nativeOps: new Set(['ROUNDED'] as const) };

/** The terms of a sum with their signs, as deep as it goes. */
function termsOf(e: Exprs, root: KNode): [number, KNode][] {
  const found: [number, KNode][] = [];
  const stack: [number, KNode][] = [[1, root]];
  while (stack.length > 0) {
    const [sign, n] = stack.pop() as [number, KNode];
    const [a, b, c] = n.src;
    if (n.op === 'ADD') stack.push([sign, b], [sign, a]);
    else if (n.op === 'SUB') stack.push([-sign, b], [sign, a]);
    else if (n.op === 'NEG') stack.push([-sign, a]);
    else if (n.op === 'MULADD') stack.push([sign, c], [sign, e.mul(a, b)]);
    else found.push([sign, n]);
  }
  return found;
}

/** The factor a product has that is no constant, and the constant. */
function coefficient(n: KNode): readonly [KNode | null, number] {
  if (n.op === 'CONST') return [null, Number(n.arg.value)];
  const [a, b] = n.src;
  if (n.op !== 'MUL' || (a.op !== 'CONST' && b.op !== 'CONST')) return [n, 1];
  return a.op === 'CONST' ? [b, Number(a.arg.value)] : [a, Number((b as { arg: { value: number } }).arg.value)];
}

/** A sum with equal terms brought together: what stands once stays as it is. */
function regrouped(e: Exprs, n: KNode): KNode {
  const terms = new Map<KNode | null, number>();
  for (const [sign, term] of termsOf(e, n)) {
    const [x, factor] = coefficient(term);
    terms.set(x, (terms.get(x) ?? 0) + sign * factor);
  }
  let sum: KNode | null = null;
  for (const [x, factor] of terms) {
    if (factor === 0) continue;
    const term = x === null ? e.f32(factor) : e.mul(x, e.f32(factor));
    sum = sum === null ? term : e.add(sum, term);
  }
  return sum ?? e.f32(0);
}

/** An expression made anew, sources first; `change` is given each node with its new sources. */
function remade(e: Exprs, root: KNode, change: (n: KNode) => KNode): KNode {
  const done = new Map<KNode, KNode>();
  sourcesFirst(
    root,
    (n) => done.has(n),
    (n) => n.src,
    (n) => {
      const src = n.src.map((s) => done.get(s) as KNode);
      done.set(n, change(remake(e, n, src)));
    },
  );
  return done.get(root) as KNode;
}

const careless = (e: Exprs, root: KNode): KNode =>
  remade(e, root, (n) => {
    const sum = n.dtype === 'float32' && (n.op === 'ADD' || n.op === 'SUB' || n.op === 'MULADD');
    return sum ? regrouped(e, n) : n;
  });

function compiled(op: UnaryOp, caps: typeof unguarded): (x: number) => number {
  const { root, variables } = decomposed(op, 'float32', 1, caps);
  return toJsFunction(careless(new Exprs(), root), variables);
}

const inputs = (): number[] => [...floats(3000), ...around(-2, 2, 3000), ...around(-90, 90, 2000)];

describe('a compiler that regroups', () => {
  it.each(functions)('leaves $op its five units', ({ op, exact }) => {
    const found = worst(compiled(op, guarded as never), exact, inputs());
    expect(found.ulp, `at ${found.at}`).toBeLessThanOrEqual(5);
  });

  it('would take them otherwise', () => {
    const off = (op: UnaryOp, exact: (x: number) => number): number =>
      worst(compiled(op, unguarded), exact, inputs()).ulp;
    expect(ulps(compiled('LOG1P', unguarded)(Math.fround(1e-7)), Math.log1p(Math.fround(1e-7)))).toBeGreaterThan(1e5);
    expect(off('EXP', Math.exp)).toBeGreaterThan(5);
  });
});

/** Products and the sums that follow in one operation, as drivers of many GPUs do it. */
const contracted = (e: Exprs, root: KNode): KNode =>
  remade(e, root, (n) => {
    if (n.dtype !== 'float32' || (n.op !== 'ADD' && n.op !== 'SUB')) return n;
    const [a, b] = n.src;
    const [x, y] = a.src;
    const [z, w] = b.src;
    if (b.op === 'MUL') return e.ternary('FMA', n.op === 'SUB' ? e.neg(z) : z, w, a);
    return a.op === 'MUL' ? e.ternary('FMA', x, y, n.op === 'SUB' ? e.neg(b) : b) : n;
  });

describe('a compiler that contracts', () => {
  it('leaves FMA one rounding, and the functions their five units', () => {
    const { root, variables } = decomposed('FMA', 'float32', 3, unguarded);
    const f = toJsFunction(contracted(new Exprs(), root), variables);
    const x = [...around(0.9, 1.7, 60)];
    for (const a of x) {
      for (const b of x) {
        const c = -Math.fround(a * b);
        expect(f(a, b, c)).toBe(fma32(a, b, c));
        expect(ulps(f(a, b, Math.fround(c / 3)), fma32(a, b, Math.fround(c / 3)))).toBeLessThanOrEqual(0.5);
      }
    }
    for (const { op, exact } of functions) {
      const own = decomposed(op, 'float32', 1, unguarded);
      const g = toJsFunction(contracted(new Exprs(), own.root), own.variables);
      expect(worst(g, exact, [...floats(1000), ...around(-4, 4, 1000)]).ulp, op).toBeLessThanOrEqual(5);
    }
  });
});

describe('where values are rounded', () => {
  const e = new Exprs();
  const [x, y, z] = [0, 1, 2].map((slot) => e.scalar(slot, 'float32')) as [KNode, KNode, KNode];
  const kept = (n: KNode): KNode => decompose([n], e, guarded as never)[0]!;
  const hold = (n: KNode): KNode => e.unary('ROUNDED', n);

  it('between sums, between products, and before comparisons', () => {
    expect(kept(e.sub(e.add(x, 1), 1))).toBe(e.sub(hold(e.add(x, 1)), 1));
    expect(kept(e.add(x, e.neg(e.sub(y, z))))).toBe(e.add(x, hold(e.neg(e.sub(y, z)))));
    expect(kept(e.mul(e.div(x, 3), 3))).toBe(e.mul(hold(e.div(x, 3)), 3));
    expect(kept(e.lt(e.add(x, y), x))).toBe(e.lt(hold(e.add(x, y)), x));
    expect(kept(e.ternary('MULADD', x, e.f32(2), e.add(y, z)))).toBe(e.add(e.mul(x, 2), hold(e.add(y, z))));
  });

  it('where NaN and infinity count', () => {
    expect(kept(e.sub(x, x))).toBe(e.sub(x, hold(x)));
    expect(kept(e.add(x, e.neg(x)))).toBe(e.add(x, hold(e.neg(x))));
    expect(kept(e.mul(x, 0))).toBe(e.mul(x, hold(e.f32(0))));
    expect(kept(e.sub(e.mul(x, y), e.mul(z, x)))).toBe(e.sub(e.mul(x, y), hold(e.mul(z, x))));
  });

  it('where a float of 16 bits is widened that was rounded here', () => {
    const small = e.cast(e.add(x, y), 'float16');
    expect(kept(e.cast(small, 'float32'))).toBe(e.cast(hold(small), 'float32'));
    const given = e.scalar(4, 'float32');
    expect(kept(e.cast(given, 'float16'))).toBe(e.cast(given, 'float16'));
  });

  it('nowhere else', () => {
    for (const n of [
      e.add(x, y),
      e.add(x, x),
      e.mul(e.add(x, y), z),
      e.add(e.mul(x, y), z),
      e.unary('SQRT', e.mul(x, x)),
    ])
      expect(kept(n)).toBe(n);
    const i = e.scalar(3, 'int32');
    const whole = e.add(e.mul(i, 3), e.scalar(4, 'int32'));
    expect(kept(whole)).toBe(whole);
  });

  it('what is summed is one value', () => {
    const r = e.range(4);
    const sum = e.reduce('sum', e.sub(x, y), [r]);
    expect(kept(sum)).toBe(e.reduce('sum', hold(e.sub(x, y)), [r]));
    const product = e.reduce('sum', e.mul(x, y), [r]);
    expect(kept(product)).toBe(product);
    expect(kept(e.sub(product, z))).toBe(e.sub(hold(product), z));
    const power = e.reduce('prod', e.mul(x, y), [r]);
    expect(kept(e.mul(power, z))).toBe(e.mul(hold(e.reduce('prod', hold(e.mul(x, y)), [r])), z));
  });

  it('engines that keep rounding by themselves have none', () => {
    for (const { op } of functions) {
      const { root } = decomposed(op, 'float32', 1, singleCaps);
      expect([...nodesOf([root])].some((n) => n.op === 'ROUNDED')).toBe(false);
    }
    expect(decompose([hold(x)], e, singleCaps)[0]).toBe(x);
  });
});
