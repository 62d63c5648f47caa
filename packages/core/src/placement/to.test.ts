/** Tensors moved between engines: values, where work goes, gradients, copies that are not made twice. */
import { describe, expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import type { IEngine } from '../engine/engine.ts';
import {
  flush,
  GradientTape,
  grads,
  idle,
  memory,
  ones,
  scan,
  setEngine,
  stats,
  type Tensor,
  tensor,
  vmap,
} from '../index.ts';
import { calc, cpu, gpu, guard, numbers, own, start } from '../tensor/fixtures/placement.ts';

guard();

/** An engine that counts what goes in and out. */
function counting(name: string, synchronous = true): IEngine & { bytes: { in: number; out: number } } {
  const engine = createReferenceEngine({ name, synchronous });
  const bytes = { in: 0, out: 0 };
  const { upload, download, downloadSync } = engine;
  return Object.assign(engine, {
    bytes,
    upload: (to: Parameters<typeof upload>[0], data: ArrayBufferView) => {
      bytes.in += to.bytes;
      upload(to, data);
    },
    download: (from: Parameters<typeof download>[0], into: Uint8Array) => {
      bytes.out += from.bytes;
      return download(from, into);
    },
    ...(downloadSync === undefined
      ? {}
      : {
          downloadSync: (from: Parameters<typeof download>[0], into: Uint8Array) => {
            bytes.out += from.bytes;
            return downloadSync(from, into);
          },
        }),
  });
}

describe.each([true, false])('to, on engines that read at once: %s', (synchronous) => {
  it('moves values, and what is computed from them is computed there', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const x = own(tensor([1, 2, 3]));
    const y = own(x.to(other));
    expect([x.device, y.device]).toEqual(['gpu', 'other']);
    const z = calc(() => y.mul(2).add(x));
    expect(z.device).toBe('other');
    expect(await numbers(z)).toEqual([3, 6, 9]);
    expect(z.device).toBe('other');
    const before = stats(other).kernels;
    const again = calc(() => z.add(1));
    expect(await numbers(again)).toEqual([4, 7, 10]);
    expect([again.device, stats(other).kernels > before, stats(gpu).kernels]).toEqual(['other', true, 0]);
    const back = own(again.to('gpu'));
    expect(await numbers(back)).toEqual([4, 7, 10]);
    expect(back.device).toBe('gpu');
  });

  it('copies once what does not change', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const x = own(ones([64]));
    flush();
    for (let i = 0; i < 5; i++) {
      const y = calc(() => x.to(other).sum());
      expect(await numbers(y)).toEqual([64]);
    }
    expect(other.bytes.in).toBe(256);
    const home = own(own(x.to(other)).to('gpu'));
    expect(await numbers(home)).toEqual(new Array(64).fill(1));
    expect(other.bytes.in).toBe(256);
  });

  it('a copy goes back with its tensors', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const x = tensor([1, 2, 3]);
    const y = x.to(other);
    flush();
    await idle();
    x.dispose();
    expect(await numbers(y)).toEqual([1, 2, 3]);
    y.dispose();
    flush();
    expect([memory(other).numBuffers, memory(gpu).numBuffers]).toEqual([0, 0]);
  });

  it('moves numbers, empty tensors, views and what is computed on the way', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const x = own(
      tensor([
        [1, 2, 3],
        [4, 5, 6],
      ]),
    );
    const turned = calc(() => x.transpose().to(other).mul(10));
    expect(await turned.array()).toEqual([
      [10, 40],
      [20, 50],
      [30, 60],
    ]);
    expect(await numbers(calc(() => ones([]).to(other).add(1)))).toEqual([2]);
    expect(await calc(() => x.narrow(0, 0, 0).to(other).add(1)).array()).toEqual([]);
    expect(await numbers(calc(() => x.add(1).sum().to(other).sqrt()))).toEqual([Math.fround(Math.sqrt(27))]);
  });

  it('gradients go back to where the tensors belong', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const w1 = own(tensor([2, 3], { requiresGrad: true }));
    const w2 = own(own(tensor([5, 7])).to(other));
    const [g1, g2] = own2(grads((a: Tensor, b: Tensor) => a.square().to(other).mul(b).sum())(w1, w2));
    expect(await numbers(g1)).toEqual([20, 42]);
    expect(await numbers(g2)).toEqual([4, 9]);
    expect([g1.device, g2.device]).toEqual(['gpu', 'other']);
    using tape = new GradientTape();
    tape.watch(w2);
    const back = own(
      tape.gradient(
        calc(() => w2.to('gpu').square().sum()),
        w2,
      ) as Tensor,
    );
    expect(await numbers(back)).toEqual([10, 14]);
    expect(back.device).toBe('other');
  });

  it('is the value as it is inside loops and vmap', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const xs = own(tensor([1, 2, 3]));
    const [last, all] = scan((c: Tensor, x: Tensor) => [c.add(x.to(other)), c] as const, own(tensor(0)), xs) as [
      Tensor,
      Tensor,
    ];
    own(all);
    expect(await numbers(own(last))).toEqual([6]);
    expect(await numbers(own(vmap((x: Tensor) => x.to(other).mul(2))(xs) as Tensor))).toEqual([2, 4, 6]);
  });

  it('assigned tensors stay where they were moved', async () => {
    await start(synchronous);
    const other = counting('other', synchronous);
    const w = own(own(tensor([1, 2])).to(other));
    for (let i = 0; i < 4; i++) {
      using next = w.mul(2);
      w.assign(next);
      flush();
      await idle();
    }
    expect(w.device).toBe('other');
    expect(await numbers(w)).toEqual([16, 32]);
    expect(stats(gpu).kernels + stats(cpu).kernels).toBe(0);
  });
});

function own2(list: readonly Tensor[] | Tensor): [Tensor, Tensor] {
  for (const t of list as readonly Tensor[]) own(t);
  return list as unknown as [Tensor, Tensor];
}

it('says which engines there are', async () => {
  await start(true);
  const x = own(ones([2]));
  expect(() => x.to('abacus')).toThrow(/no engine 'abacus' is in use, only 'gpu'/);
  expect(() => x.to(3 as never)).toThrow(/not an engine: 3/);
  expect(() => x.to(null as never)).toThrow(/not an engine: null/);
  expect(await numbers(own(x.to('cpu')))).toEqual([1, 1]);
  await setEngine(cpu);
  expect(own(x.to('cpu')).device).toBe('cpu');
});

it('data under way holds up neither the engine it leaves nor the one it goes to', async () => {
  const other = counting('other', false);
  const held = counting('held', false);
  await setEngine(held);
  const [x, w] = [own(tensor([1, 2, 3])), own(tensor([4, 5, 6]))];
  const there = own(w.to(other));
  expect(await numbers(calc(() => there.mul(1)))).toEqual([4, 5, 6]);
  const { download } = held;
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const log: string[] = [];
  let first = true;
  held.download = async (from, into) => {
    if (first) {
      first = false;
      await gate;
      log.push('arrived');
    }
    return download(from, into);
  };
  const y = own(x.to(other));
  const doubled = calc(() => y.mul(2));
  const late = numbers(doubled);
  // Both read before the gate opens, so neither waits for it.
  log.push(`other ${await numbers(calc(() => there.add(1)))}`, `held ${await numbers(calc(() => w.sub(1)))}`);
  open();
  expect(await late).toEqual([2, 4, 6]);
  expect(log).toEqual(['other 5,6,7', 'held 3,4,5', 'arrived']);
});
