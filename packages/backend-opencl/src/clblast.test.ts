/** CLBlast itself, and what is said where it is not there; all of its forms are in clblast.long.test.ts. */
import { flush, matmul, setEngine, tensor } from '@polygrad/core';
import { listOf, numbers, problemsOfForms, sizes } from '@polygrad/addon/fixtures/forms';
import { productProgram } from '@polygrad/addon/fixtures/products';
import { watched } from '@polygrad/addon/fixtures/watched';
import type { MatrixProduct } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { type Driver, openLibrary } from './addon.ts';
import { clblast, clblastOf } from './clblast.ts';
import { clblastMissing } from './fixtures/clblast.ts';
import { hasDevice } from './fixtures/device.ts';
import { kit } from './fixtures/kit.ts';
import { setUp } from './setup.ts';

const { m, n, k } = sizes;

describe.skipIf(clblastMissing() !== null)('CLBlast itself', () => {
  it('computes a product, and keeps what is not a number', async () => {
    const { engine, products } = watched(kit, 'real');
    await setEngine(engine);
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
    flush();
    engine.dispose();
  });
});

describe.skipIf(!hasDevice())('a CLBlast that is not there', () => {
  const product = productProgram().product as MatrixProduct;

  it('says why, and takes nothing', async () => {
    const { driver } = setUp({ cache: false });
    const library = clblast(driver, () => 'there is none', true);
    expect(library.reason).toBe('there is none');
    expect(library.takes(product)).toBe(false);
    expect(await library.prepare(product)).toBe(false);
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
    expect(library.takes({ ...product, dtype: 'float64' })).toBe(false);
    expect(library.takes(product)).toBe(true);
    expect(await library.prepare(product)).toBe(false);
    expect([library.takes(product), library.reason, told]).toEqual([false, 'it failed: native', 1]);
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
