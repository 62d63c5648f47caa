/** autocast against the same casts written by hand, inside and around everything that records or differentiates functions. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  add,
  autocast,
  cast,
  checkpoint,
  compile,
  conv2d,
  crossEntropy,
  customGradient,
  exp,
  flush,
  grad,
  GradientTape,
  grads,
  gridSample,
  jvp,
  keep,
  layerNorm,
  matmul,
  ones,
  profile,
  rand,
  relu,
  scan,
  scope,
  seed,
  setEngine,
  softmax,
  stats,
  sum,
  type Tensor,
  tensor,
  vjp,
  vmap,
  whileLoop,
  zeros,
} from '../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  seed(3);
});

const small = (t: Tensor): Tensor => cast(t, 'bfloat16');
const wide = (t: Tensor): Tensor => cast(t, 'float32');

/** Two products with a softmax between them, and a loss. */
const network = (x: Tensor, a: Tensor, b: Tensor): Tensor => sum(exp(matmul(softmax(matmul(relu(x), a)), b)));

/** The same as autocast('bfloat16', ...) says. */
const byHand = (x: Tensor, a: Tensor, b: Tensor): Tensor =>
  sum(exp(wide(matmul(small(softmax(wide(matmul(small(relu(x)), small(a))))), small(b)))));

const inside = (x: Tensor, a: Tensor, b: Tensor): Tensor => autocast('bfloat16', () => network(x, a, b));

const operands = (): [Tensor, Tensor, Tensor] => [rand([3, 4]).sub(0.5), rand([4, 5]), rand([5, 2])];

const arrays = (values: readonly Tensor[]): Promise<unknown[]> => Promise.all(values.map((t) => t.array()));

describe('autocast', () => {
  it('casts operands by the table, and nothing else', () => {
    const [f32, f16, f64] = [ones([2, 2]), ones([2, 2], { dtype: 'float16' }), ones([2, 2], { dtype: 'float64' })];
    const whole = ones([2, 2], { dtype: 'int32' });
    autocast('bfloat16', () => {
      expect(matmul(f32, f32).dtype).toBe('bfloat16');
      expect(matmul(f32, f16).dtype).toBe('bfloat16');
      expect(f32.matmul(f32).dtype).toBe('bfloat16');
      expect(matmul(f64, f64).dtype).toBe('float64');
      expect(matmul(whole, whole).dtype).toBe('int32');
      expect(exp(f16).dtype).toBe('float32');
      expect(exp(f64).dtype).toBe('float64');
      expect(relu(f16).dtype).toBe('float16');
      expect(add(f16, f32).dtype).toBe('float32');
      expect(add(small(f32), 1).dtype).toBe('bfloat16');
      expect(f16.sum().dtype).toBe('float32');
      expect(f16.max().dtype).toBe('float16');
      expect(crossEntropy(f16, tensor([0, 1], { dtype: 'int32' })).dtype).toBe('float32');
      expect(layerNorm(f16, { normalizedShape: [2], weight: ones([2]), bias: zeros([2]) }).dtype).toBe('float32');
      expect(conv2d(ones([1, 1, 2, 2]), ones([1, 1, 2, 2]), { bias: ones([1]) }).dtype).toBe('bfloat16');
      expect(gridSample(ones([1, 1, 2, 2]), zeros([1, 2, 2, 2], { dtype: 'bfloat16' })).dtype).toBe('float32');
    });
    autocast('float16', () => void expect(matmul(f32, f32).dtype).toBe('float16'));
    expect(matmul(f32, f32).dtype).toBe('float32');
  });

  it('does not cast what is no operand', async () => {
    const x = tensor([1.001, 2]);
    await autocast('bfloat16', () => {
      matmul(x, x);
      // The operation before these is a product.
      keep(x);
      const y = x.assign(tensor([1.002, 3])) as unknown;
      expect(y ?? x).toBe(x);
      expect(zeros([2]).dtype).toBe('float32');
      return undefined;
    });
    expect(x.dtype).toBe('float32');
    expect(await x.array()).toEqual([Math.fround(1.002), 3]);
  });

  it('nests, is off inside of false, and ends with its function, also with one that throws', () => {
    const x = ones([2, 2]);
    const dtype = (): string => matmul(x, x).dtype;
    expect(autocast('bfloat16', () => [dtype(), autocast('float16', dtype), autocast(false, dtype), dtype()])).toEqual([
      'bfloat16',
      'float16',
      'float32',
      'bfloat16',
    ]);
    expect(() =>
      autocast('bfloat16', () => {
        throw new Error('mine');
      }),
    ).toThrow('mine');
    expect(dtype()).toBe('float32');
  });

  it('computes what the same casts by hand compute', async () => {
    const args = operands();
    expect(await inside(...args).item()).toBe(await byHand(...args).item());
    expect(await inside(...args).item()).not.toBe(await network(...args).item());
  });

  it('has the gradients of these casts, inside and around gradient functions', async () => {
    const args = operands();
    const want = await arrays(grads(byHand)(...args));
    expect(await arrays(grads(inside)(...args))).toEqual(want);
    expect(await arrays(autocast('bfloat16', () => grads(network)(...args)))).toEqual(want);
    const [, back] = vjp(inside, args, tensor(1)) as unknown as [Tensor, Tensor[]];
    expect(await arrays(back)).toEqual(want);
    const backward = (f: typeof network): Promise<unknown[]> => {
      const leaves = args.map((t) => {
        const leaf = t.add(0);
        leaf.requiresGrad = true;
        return leaf;
      }) as [Tensor, Tensor, Tensor];
      f(...leaves).backward();
      return arrays(leaves.map((t) => t.grad!));
    };
    // Zeros may have another sign than in `want`: sums of one plan begin where those of another do not.
    expect(await backward(inside)).toEqual(await backward(byHand));
    using tape = new GradientTape();
    for (const t of args) tape.watch(t);
    const value = inside(...args);
    expect(await arrays(tape.gradient(value, [...args]) as Tensor[])).toEqual(want);
    // Parameters and their gradients are what they were.
    expect(grads(inside)(...args).map(({ dtype }) => dtype)).toEqual(['float32', 'float32', 'float32']);
  });

  it('has the derivatives of these casts forward and of second order', async () => {
    const [x, a, b] = operands();
    const along = (f: typeof network) => jvp((t: Tensor) => f(t, a, b), [x], [ones([3, 4])]) as unknown as Tensor[];
    expect(await arrays(along(inside))).toEqual(await arrays(along(byHand)));
    expect(await arrays(autocast('bfloat16', () => along(network)))).toEqual(await arrays(along(byHand)));
    const second = (f: typeof network) =>
      grad((t: Tensor) => sum(grad((u: Tensor) => f(u, a, b))(t).mul(t)))(x) as unknown as Tensor;
    expect(await second(inside).array()).toEqual(await second(byHand).array());
  });

  it('goes through vmap, either way around', async () => {
    const [, a, b] = operands();
    const xs = rand([6, 3, 4]);
    const over = (f: typeof network) => vmap((x: Tensor) => f(x, a, b))(xs);
    const want = await over(byHand).array();
    expect(await over(inside).array()).toEqual(want);
    expect(await autocast('bfloat16', () => over(network)).array()).toEqual(want);
  });

  it('goes through checkpoint: the second run casts as the first did', async () => {
    const args = operands();
    const want = await arrays(grads(byHand)(...args));
    const around = (...t: [Tensor, Tensor, Tensor]): Tensor => autocast('bfloat16', () => checkpoint(network, ...t));
    const within = (...t: [Tensor, Tensor, Tensor]): Tensor => checkpoint(inside, ...t);
    expect(await arrays(grads(around)(...args))).toEqual(want);
    expect(await arrays(grads(within)(...args))).toEqual(want);
    const off = (...t: [Tensor, Tensor, Tensor]): Tensor => autocast(false, () => checkpoint(network, ...t));
    expect(await arrays(autocast('bfloat16', () => grads(off)(...args)))).toEqual(
      await arrays(grads(network)(...args)),
    );
  });

  it('is in the backward function of customGradient what it was in the forward function', async () => {
    const seen: string[] = [];
    const f = customGradient(
      (x) => matmul(x, x),
      (g, { inputs: [x] }) => {
        const product = matmul(x!, x!);
        seen.push(product.dtype);
        return product.mul(cast(g, product.dtype));
      },
    );
    const x = ones([2, 2]);
    grad((t: Tensor) => sum(autocast('float16', () => f(t))))(x);
    autocast('float16', () => grad((t: Tensor) => sum(autocast(false, () => f(t))))(x));
    expect(seen).toEqual(['float16', 'float32']);
  });

  it('goes through scan and whileLoop', async () => {
    const w = rand([4, 4]);
    const xs = rand([5, 4]);
    const run = (body: (h: Tensor, x: Tensor) => Tensor) =>
      scan((h: Tensor, x: Tensor) => [body(h, x), h] as [Tensor, Tensor], zeros([4]), xs);
    const plain = (h: Tensor, x: Tensor): Tensor => matmul(h, w).add(x);
    const [want] = run((h, x) => matmul(small(h), small(w)).add(x));
    const [within] = run((h, x) => autocast('bfloat16', () => plain(h, x)));
    const [around] = autocast('bfloat16', () => run(plain));
    expect(await within.array()).toEqual(await want.array());
    expect(await around.array()).toEqual(await want.array());
    const loop = (body: (h: Tensor) => Tensor) =>
      whileLoop(
        (h: Tensor) => sum(h).less(100),
        (h: Tensor) => add(wide(body(h)), h),
        ones([4]),
      );
    const wanted = await (await loop((h) => matmul(small(h), small(w)))).array();
    expect(await (await loop((h) => autocast('bfloat16', () => matmul(h, w)))).array()).toEqual(wanted);
  });

  it('goes through compile, either way around, and keeps recordings apart', async () => {
    const args = operands();
    const want = await byHand(...args).item();
    const within = compile(inside);
    for (let i = 0; i < 4; i++) expect(await within(...args).item()).toBe(want);
    const plain = compile(network);
    const full = await network(...args).item();
    const { replays } = stats();
    for (let i = 0; i < 6; i++) {
      expect(await autocast('bfloat16', () => plain(...args)).item()).toBe(want);
      expect(await plain(...args).item()).toBe(full);
    }
    expect(stats().replays - replays).toBeGreaterThan(2);
    within.dispose();
    plain.dispose();
  });

  it('records one cast of a weight in the plan, however often it is used', async () => {
    const [x, y, w] = [rand([64, 64]), rand([64, 64]), rand([64, 64])];
    flush();
    const products = (): Tensor[] => [x, y].map((t) => keep(matmul(t, w)));
    const { kernels } = await profile(() => scope(() => void autocast('bfloat16', products)));
    // x and y are cast where the products read them.
    expect(kernels.filter(({ name }) => name.startsWith('cast')).map(({ bytes }) => bytes)).toEqual([
      64 * 64 * (4 + 2),
    ]);
  });
});

describe('autocast refuses', () => {
  it('dtypes that are no 16-bit floats, and what is no function', () => {
    expect(() => autocast('float32' as 'float16', () => 1)).toThrow(
      "bad dtype: 'float32'; must be 'float16' or 'bfloat16'",
    );
    expect(() => autocast('float16', 1 as unknown as () => void)).toThrow('[autocast]');
    expect(() => autocast('float16', async () => 1)).toThrow('promise');
  });

  it('dtypes that the engine does not hold', async () => {
    await setEngine(createReferenceEngine({ dtypes: ['float32', 'int32', 'float16'] }));
    expect(() => autocast('bfloat16', () => 1)).toThrow(
      "[autocast] engine 'reference' holds no bfloat16, only float32, int32, float16; use 'float16'",
    );
    expect(autocast('float16', () => 1)).toBe(1);
    expect(autocast(false, () => 1)).toBe(1);
  });
});
