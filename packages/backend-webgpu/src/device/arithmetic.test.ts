/** Float arithmetic that WGSL leaves open: found out by a probe, told, and regrouping kept away by kernels, both ways forcible. */
import { atanh, cast, exp, flush, log1p, profile, setEngine, softplus, sub, type Tensor, tensor } from '@polygrad/core';
import { afterAll, describe, expect, it } from 'vitest';
import { arithmeticOf } from './arithmetic.ts';
import { openDevice } from './device.ts';
import { testAdapter, testEngine } from '../fixtures/device.ts';

const found = await testEngine();
const [kept, plain] =
  found === null
    ? [null, null]
    : await Promise.all([testEngine({ reassociates: true }), testEngine({ reassociates: false })]);
afterAll(() => {
  for (const engine of [found, kept, plain]) engine?.dispose();
});

const single = (x: number[]): Tensor => tensor(x.map(Math.fround), { dtype: 'float32' });
const values = async (t: Tensor): Promise<number[]> => Array.from((await t.data()) as Float32Array);
const close = (got: number | undefined, want: number): void =>
  expect(Math.abs((got as number) - want)).toBeLessThan(Math.abs(want) * 1e-6);

describe.skipIf(found === null)('regrouping', () => {
  it('is found out when an engine is made, and told', async () => {
    const device = await openDevice(await testAdapter());
    expect((await arithmeticOf(device)).regroups).toBe(found?.reassociates);
    device.destroy();
    // Both do: Mesa's compiler, and the one of SPIRV-Tools.
    if (/llvmpipe|swiftshader/i.test(found?.device ?? '')) expect(found?.reassociates).toBe(true);
    expect(found?.device.includes('regroups')).toBe(found?.reassociates);
    expect(found?.caps.keepRounding !== undefined).toBe(found?.reassociates);
  });

  it('knows nothing of a lost device', async () => {
    const device = await openDevice(await testAdapter());
    device.destroy();
    expect(await arithmeticOf(device)).toEqual({});
  });

  it('is kept away: small corrections are not lost, NaN stays', async () => {
    await setEngine(found!);
    close((await values(log1p(single([1e-7]))))[0], Math.log1p(Math.fround(1e-7)));
    close((await values(atanh(single([1e-7]))))[0], Math.atanh(Math.fround(1e-7)));
    close((await values(softplus(single([-16.7]))))[0], Math.log1p(Math.exp(Math.fround(-16.7))));
    close((await values(exp(single([-80.3]))))[0], Math.exp(Math.fround(-80.3)));
    const x = single([Number.POSITIVE_INFINITY, Number.NaN, 1]);
    expect(await values(sub(x, x))).toEqual([Number.NaN, Number.NaN, 0]);
    if (!found!.caps.dtypes.has('float16')) return;
    const half = x.cast('float16');
    expect(await values(sub(half, half).cast('float32'))).toEqual([Number.NaN, Number.NaN, 0]);
  });

  it('leaves floats rounded to 16 bits what they are where they are widened in the same kernel', async () => {
    if (!found!.caps.dtypes.has('float16')) return;
    await setEngine(found!);
    const x = single([3.3, 0.1, 1 / 3, 1000.3, -2.7, 65504]);
    const wanted = [3.30078125, 0.0999755859375, 0.333251953125, 1000.5, -2.69921875, 65504];
    expect(await values(x.cast('float16').cast('float32'))).toEqual(wanted);
    const matrix = x.reshape([6, 1]).cast('float16');
    expect(
      await values(
        matrix
          .matmul(single([1]).reshape([1, 1]).cast('float16'))
          .cast('float32')
          .flatten(),
      ),
    ).toEqual(wanted);
  });

  it('tells whether denormal numbers are taken for 0, and finds them in casts to bool', async () => {
    const flushes = found!.caps.flushesDenormals;
    const device = await openDevice(await testAdapter());
    expect((await arithmeticOf(device)).flushes).toBe(flushes);
    device.destroy();
    expect(found!.device.includes('flushes')).toBe(flushes);
    if (/llvmpipe|swiftshader/i.test(found!.device)) expect(flushes).toBe(/swiftshader/i.test(found!.device));
    await setEngine(found!);
    const x = single([1e-40, 0, -1e-40]);
    expect(await values(x.mul(single([1, 1, 1])))).toEqual(
      flushes ? [0, 0, -0] : Array.from(Float32Array.of(1e-40, 0, -1e-40)),
    );
    expect(await values(cast(x, 'bool'))).toEqual([1, 0, 1]);
  });

  it('costs nothing where it is not asked for', async () => {
    const texts: string[] = [];
    for (const engine of [kept!, plain!]) {
      await setEngine(engine);
      const x = single([1, 2]);
      flush();
      const { kernels } = await profile(() => exp(x), { sources: true });
      texts.push(kernels[0]!.source!.text);
    }
    expect(texts[0]).toContain('^ zero');
    expect(texts[1]).not.toContain('zero');
  });
});
