/** Scopes, with buffers and flushes that are only pretended: what they dispose, what they keep. */
import { describe, expect, it } from 'vitest';
import { add, exp, isTensor, keep, noGrad, ones, scope, softmax, type Tensor, tensor, traceOrigins } from '../index.ts';
import { graph } from './state.ts';
import { counts, data, pretend } from './fixtures/pretended.ts';

pretend();

describe('scopes', () => {
  it('disposes what is not returned, kept or nested in the result', () => {
    const before = graph.live.tensors;
    let saved: Tensor | undefined;
    const result = scope(() => {
      const a = data();
      saved = keep(data());
      return { list: [exp(a)], map: new Map([['x', data()]]), text: 'a' };
    });
    expect(counts.flushes).toBe(1);
    expect(graph.live.tensors - before).toBe(3);
    expect(counts.buffers).toBe(3);
    result.list[0]?.dispose();
    result.map.get('x')?.dispose();
    saved?.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('inner results belong to the outer scope', () => {
    scope(() => {
      const inner = scope(() => exp(data()));
      expect(inner.disposed).toBe(false);
      return 1;
    });
    expect(counts.buffers).toBe(0);
    expect(counts.flushes).toBe(0);
  });

  it('releases everything when the function throws', () => {
    expect(() =>
      scope(() => {
        softmax(data());
        throw new Error('on purpose');
      }),
    ).toThrow('on purpose');
    expect(counts.buffers).toBe(0);
  });

  it('refuses asynchronous functions', () => {
    expect(() => scope(async () => data())).toThrow(/\[scope\].*promise/);
    expect(() => noGrad(async () => 1)).toThrow(/\[noGrad\].*promise/);
    expect(counts.buffers).toBe(0);
  });

  it('composites leave nothing behind but their result', () => {
    const x = data();
    const before = graph.live.tensors;
    const pending = graph.pending.length;
    const y = softmax(x);
    expect(graph.live.tensors - before).toBe(1);
    expect(graph.pending.length - pending).toBe(1);
    y.dispose();
    x.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('composites that throw leave nothing behind', () => {
    const before = graph.live.tensors;
    const x = tensor([[1, 2]]);
    expect(() => softmax(x, 5)).toThrow(/\[softmax\] axis out of range: 5/);
    x.dispose();
    expect(graph.live.tensors).toBe(before);
  });

  it('says where a disposed tensor was made', () => {
    const y = scope(() => {
      softmax(data());
      return [data()];
    });
    const gone = y[0]!;
    gone.dispose();
    expect(() => add(gone, 1)).toThrow(/\[add\] tensor used after it was disposed: float32 \[4\] made by tensor/);
    traceOrigins(true);
    const traced = ones([1]);
    traceOrigins(false);
    traced.dispose();
    expect(() => exp(traced)).toThrow(/scopes\.test/);
  });

  it('works with using', () => {
    const x = data();
    x[Symbol.dispose]();
    expect(x.disposed).toBe(true);
    expect(isTensor(x)).toBe(true);
    expect(counts.buffers).toBe(0);
  });
});
