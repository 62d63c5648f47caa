import { beforeEach, describe, expect, it } from 'vitest';
import { type DType, scope, setEngine, tensor, zeros } from '../index.ts';
import { createReferenceEngine } from '../testing/reference-engine.ts';

describe('dtypes the engine does not compute with', () => {
  beforeEach(async () => {
    const engine = createReferenceEngine();
    const dtypes = new Set<DType>(['float32', 'float64', 'int32', 'uint32', 'bool']);
    await setEngine({ ...engine, caps: { ...engine.caps, dtypes } });
  });

  it('can be stored and read back', async () => {
    using t = tensor([1, -2, 127], { dtype: 'int8' });
    expect([...((await t.data()) as Int8Array)]).toEqual([1, -2, 127]);
  });

  it('are refused at the call, naming both sides, and other work goes on', async () => {
    using t = tensor([1, 2], { dtype: 'int8' });
    expect(() => t.add(1)).toThrow(/\[add\] engine 'reference' does not compute with int8, only with float32/);
    expect(() => t.cast('float32')).toThrow(/\[cast\].*int8/);
    expect(() => zeros([2], { dtype: 'float16' })).toThrow(/float16/);
    using sum = scope(() => tensor([1, 2]).sum());
    expect(await sum.item()).toBe(3);
  });
});
