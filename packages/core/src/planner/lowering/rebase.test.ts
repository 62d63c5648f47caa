import { describe, expect, it } from 'vitest';
import { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode, LoopKernel } from '@polygrad/compiler/ir/ir';
import { printLoopKernel } from '@polygrad/compiler/ir/print';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { rebase } from './lower.ts';

const elementBytes: number[] = [];
for (const { id, bytes } of Object.values(dtypeInfo)) elementBytes[id] = bytes;
const options = { elementBytes, bindAlign: 4, simt: false };

/** `out[i + to] = x[4 i + from]` of 5 elements, `x` also read where `more` says. */
function copy(e: Exprs, from: number, to: number, more?: (x: KNode, i: KNode) => KNode): LoopKernel {
  const x = e.param(0, 'float32', 'read', 64);
  const out = e.param(1, 'float32', 'write', 40);
  const i = e.range(5);
  const value = e.load(x, e.add(e.mul(i, 4), from));
  const store = e.store(out, e.add(i, to), more === undefined ? value : e.add(value, more(x, i)));
  return { name: 'copy', params: [x, out], scalars: [], stores: [{ store, ranges: [i] }] };
}

function text(kernel: LoopKernel): string {
  return printLoopKernel(kernel);
}

describe('rebase', () => {
  it('makes one kernel of reads and writes at different places', () => {
    const e = new Exprs();
    const [a, b] = [rebase(copy(e, 7, 10), e, options), rebase(copy(e, 12, 1), e, options)];
    expect(a?.shifts).toEqual([7, 10]);
    expect(b?.shifts).toEqual([12, 1]);
    expect(text(a!.loop)).toBe(text(b!.loop));
    expect(a!.loop.params.map(({ arg }) => arg.length)).toEqual([17, 5]);
    expect(text(a!.loop)).toBe(
      text({ ...copy(e, 0, 0), params: a!.loop.params })
        .replace('[64]', '[17]')
        .replace('[40]', '[5]'),
    );
  });

  it('leaves alone what begins at the first element, may be read anywhere, or is read and written', () => {
    const e = new Exprs();
    expect(rebase(copy(e, 0, 0), e, options)).toBeNull();
    const anywhere = (x: KNode, i: KNode): KNode => e.load(x, e.cast(e.load(x, i), 'int32'));
    expect(rebase(copy(e, 7, 0, anywhere), e, options)).toBeNull();
    const outside = (x: KNode, i: KNode): KNode => e.load(x, e.sub(i, 2), e.lt(1, i));
    expect(rebase(copy(e, 7, 0, outside), e, options)).toBeNull();
    const both = e.param(0, 'float32', 'readwrite', 64);
    const i = e.range(5);
    const store = e.store(both, e.add(i, 3), e.load(both, e.add(i, 3)));
    const kernel: LoopKernel = { name: 'both', params: [both], scalars: [], stores: [{ store, ranges: [i] }] };
    expect(rebase(kernel, e, options)).toBeNull();
  });

  it('begins at the first of several places, going backwards or not', () => {
    const e = new Exprs();
    const earlier = (x: KNode, i: KNode): KNode => e.load(x, e.sub(e.i32(9), i));
    const rebased = rebase(copy(e, 8, 0, earlier), e, options);
    expect(rebased?.shifts).toEqual([5, 0]);
    expect(rebased?.loop.params[0]?.arg.length).toBe(20);
  });

  it('moves places that were read first', () => {
    const e = new Exprs();
    const index = e.param(0, 'int32', 'read', 9);
    const x = e.param(1, 'float32', 'read', 64);
    const out = e.param(2, 'float32', 'write', 5);
    const i = e.range(5);
    const at = e.max(0, e.min(e.load(index, e.add(i, 4)), 59));
    const store = e.store(out, i, e.load(x, e.add(at, 4)));
    const params = [index, x, out];
    const rebased = rebase({ name: 'gather', params, scalars: [], stores: [{ store, ranges: [i] }] }, e, options);
    expect(rebased?.shifts).toEqual([4, 4, 0]);
    expect(rebased?.loop.params.map(({ arg }) => arg.length)).toEqual([5, 60, 5]);
  });

  it('keeps to the places where an engine may bind', () => {
    const e = new Exprs();
    expect(rebase(copy(e, 7, 10), e, { ...options, bindAlign: 16 })?.shifts).toEqual([4, 8]);
    expect(rebase(copy(e, 7, 10), e, { ...options, bindAlign: 256 })).toBeNull();
  });
});
