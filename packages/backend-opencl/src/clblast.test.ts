/**
 * Products by a library: chosen by a measurement that favours it, right in every form, and replaced by kernels where it fails. Loops on
 * the host stand for CLBlast, which compiles for seconds; clblast.long.test.ts has all of this with CLBlast itself.
 */
import { flush, getEngine, matmul, setEngine, tensor, tune } from '@polygrad/core';
import { type Binding, memoryStore, type TuningStore } from '@polygrad/core/engine';
import { type KNode, type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { type Driver, openLibrary } from './addon.ts';
import { clblast, clblastOf } from './clblast.ts';
import type { OpenClEngine } from './engine.ts';
import { setUp } from './setup.ts';
import { forms, listOf, numbers, sizes, watched } from './fixtures/clblast.ts';
import { clblastMissing, problemsOfForms } from './fixtures/clblast-forms.ts';
import { hasDevice } from './fixtures/device.ts';

const engines: OpenClEngine[] = [];
const use = async (engine: OpenClEngine): Promise<OpenClEngine> => {
  engines.push(engine);
  await setEngine(engine);
  return engine;
};
afterEach(async () => {
  flush();
  await setEngine('cpu').catch(() => {});
  for (const e of engines.splice(0)) e.dispose();
});

const { m, n, k } = sizes;

/** y[3, 2] = x[3, 4] w[4, 2], with a description of itself. */
function productProgram(): Program {
  const p = new ProgramBuilder();
  const { e } = p;
  const [x, w, y] = [
    e.param(0, 'float32', 'read', 12),
    e.param(1, 'float32', 'read', 8),
    e.param(2, 'float32', 'write', 6),
  ];
  p.loop(3, (i) =>
    p.loop(2, (j) => {
      let sum: KNode = e.constant('float32', 0);
      for (let s = 0; s < 4; s++)
        sum = e.add(sum, e.mul(p.load(x, e.add(e.mul(i, e.i32(4)), e.i32(s))), p.load(w, e.add(j, e.i32(2 * s)))));
      p.store(y, e.add(e.mul(i, e.i32(2)), j), sum);
    }),
  );
  const operand = (slot: number, stride: number) => ({ slot, offset: 0, stride, distance: 0, transposed: false });
  const matrices = { a: operand(0, 4), b: operand(1, 2), c: operand(2, 2) };
  return { ...p.build({ name: 'product' }), product: { dtype: 'float32', m: 3, n: 2, k: 4, batch: 1, ...matrices } };
}

describe.skipIf(!hasDevice())('a library for products', () => {
  it('computes products where it was measured faster', async () => {
    const { engine, products } = watched('host');
    await use(engine);
    expect(
      await problemsOfForms(engine, products, [
        'both transposed',
        'parts of larger tensors',
        'with something done to the sums',
      ]),
    ).toEqual([]);
    expect(engine.clblastMissing).toBeNull();
  });

  it('does so beside groups of threads', async () => {
    const { engine, products } = watched('host', { simt: true });
    await use(engine);
    expect(await problemsOfForms(engine, products, ['one transposed, of batches'])).toEqual([]);
  });

  it('is never used where it was not measured faster, nor before', async () => {
    const { engine, products, pace } = watched('host');
    await use(engine);
    pace(8);
    const store = memoryStore();
    const { result } = await forms['a b']!();
    await listOf(result());
    const [chosen] = await tune(engine, { budget: 0, store });
    expect(chosen?.tile).toBe('tiles');
    expect(chosen?.measured.map((x) => x.tile).sort()).toEqual(['library', 'tiles']);
    products();
    await listOf(result());
    expect(products()).toBe(0);
    // Another engine finds the decision where it was kept.
    const again = watched('host');
    await use(again.engine);
    expect(await tune(again.engine, { store, products: [{ m, n, k }] })).toEqual([]);
  });

  it('is measured unasked where that is wanted, and used by the next engine', async () => {
    let kept = '';
    let tell = (): void => {};
    const saved = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const store: TuningStore = {
      load: async () => kept || null,
      save: async (_, text) => {
        kept = text;
        tell();
      },
    };
    const run = async ({ engine }: { engine: OpenClEngine }): Promise<void> => {
      if (getEngine() !== engine) await use(engine);
      const { result } = await forms['a b']!();
      const t = result();
      // At once: whoever measures meanwhile waits for a turn of the event loop.
      t.dataSync();
      t.dispose();
    };
    const first = watched('host', { tuning: 'automatic', tuningStore: store });
    await run(first);
    expect(first.products()).toBe(0);
    await saved;
    expect(kept).toContain('library');
    first.products();
    await run(first);
    expect(first.products()).toBe(1);
    const second = watched('host', { tuning: 'load', tuningStore: store });
    await run(second);
    await run(second);
    expect(second.products()).toBeGreaterThan(0);
  });

  it('gives way to kernels when it fails, in the middle of a batch, and is not tried again', async () => {
    const { engine, products } = watched('fails');
    await use(engine);
    const put = (list: number[]): Binding => {
      const binding = { buffer: engine.alloc(4 * list.length), offset: 0, bytes: 4 * list.length };
      engine.upload(binding, Float32Array.from(list));
      return binding;
    };
    const get = (b: Binding) => [...new Float32Array(engine.downloadSync(b, new Uint8Array(b.bytes)).buffer)];
    const [x, w, y, z] = [
      put(Array.from({ length: 12 }, (_, i) => i)),
      put([1, 2, 3, 4, 5, 6, 7, 8]),
      put(Array(6).fill(0)),
      put([0, 0]),
    ];
    let told = 0;
    engine.library!.onFailure(() => told++);
    const [kernel] = engine.compile([productProgram()]);
    expect(engine.builds.compiled).toBe(0);
    const nothing = { kind: 'copy', from: { ...x, bytes: 0 }, to: { ...y, bytes: 0 } } as const;
    const product = { kind: 'dispatch', kernel: kernel!, bindings: [x, w, y], scalars: [] } as const;
    engine.submit([
      { kind: 'fill', to: { ...x, bytes: 4 }, pattern: 0x3f800000 },
      nothing,
      product,
      { kind: 'copy', from: { ...y, bytes: 8 }, to: z },
    ]);
    // x is [[1, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]].
    expect(get(y)).toEqual([35, 42, 98, 120, 162, 200]);
    expect(get(z)).toEqual([35, 42]);
    expect([products(), told, engine.builds.compiled]).toEqual([1, 1, 1]);
    expect(engine.clblastMissing).toMatch(/failed: CLBlastSgemm failed with OpenCL error -1024/);
    expect(await engine.submitTimed([product])).toHaveLength(1);
    expect(products()).toBe(0);
    // The library lowers nothing for it any more.
    const t = matmul(numbers([m, k]), numbers([k, n]));
    await t.data();
    t.dispose();
    expect(await tune(engine, { products: [{ m, n, k }] })).toEqual([]);
  });

  it('can be left out', async () => {
    const { engine } = watched('real', { clblast: false });
    await use(engine);
    expect(engine.library).toBeUndefined();
    expect(engine.clblastMissing).toMatch(/option clblast/);
    expect(await tune(engine, { products: [{ m, n, k }] })).toEqual([]);
  });
});

describe.skipIf(clblastMissing() !== null)('CLBlast itself', () => {
  it('computes a product, and keeps what is not a number', async () => {
    const { engine, products } = watched('real');
    await use(engine);
    expect(await problemsOfForms(engine, products, ['a b'])).toEqual([]);
    const values = await listOf(numbers([m, k]));
    values[5] = Number.NaN;
    values[3 * k] = Number.POSITIVE_INFINITY;
    const t = matmul(tensor(values, { shape: [m, k] }), numbers([k, n], 'float32', 2));
    const got = await listOf(t);
    expect(products()).toBe(1);
    expect(got.slice(0, n).every(Number.isNaN)).toBe(true);
    expect(got.slice(n, 3 * n).every(Number.isFinite)).toBe(true);
    expect(got.slice(3 * n, 4 * n).every((v) => !Number.isFinite(v))).toBe(true);
  });
});

describe.skipIf(!hasDevice())('a CLBlast that is not there', () => {
  const { product } = productProgram();

  it('says why, and takes nothing', async () => {
    const { driver } = setUp({ cache: false });
    const library = clblast(driver, () => 'there is none', true);
    expect(library.missing).toBe('there is none');
    expect(library.takes(product!)).toBe(false);
    expect(await library.prepare(product!)).toBe(false);
    driver.dispose();
  });

  it('fails at once and for good where it cannot be prepared', async () => {
    const { driver } = setUp({ cache: false });
    const failure = Object.assign(new Error('native'), { code: -1, call: 'CLBlastSgemm', command: -1, log: '' });
    const faulty = new Proxy(driver, {
      get: (target, name) =>
        name === 'prepareProduct' ? () => Promise.reject(failure) : target[name as keyof Driver].bind(target),
    });
    const library = clblast(faulty, () => '', false);
    let told = 0;
    library.onFailure(() => told++);
    expect(library.takes({ ...product!, dtype: 'float64' })).toBe(false);
    expect(library.takes(product!)).toBe(true);
    expect(await library.prepare(product!)).toBe(false);
    expect([library.takes(product!), library.missing, told]).toEqual([false, 'it failed: native', 1]);
    driver.dispose();
  });

  it('is not opened beside another OpenCL library, nor from a file that is none', () => {
    const addon = openLibrary();
    if (typeof addon === 'string') throw new Error(addon);
    expect(clblastOf(addon, '/opt/libOpenCL.so')()).toMatch(/another OpenCL library than \/opt\/libOpenCL\.so/);
    // Once open it stays open.
    if (clblastMissing() === null) return;
    expect(addon.openClblast('/nowhere/libclblast.so')).toMatch(/nowhere/);
    if (process.platform === 'linux') expect(addon.openClblast('libc.so.6')).toMatch(/lacks CLBlastSgemm/);
  });
});
