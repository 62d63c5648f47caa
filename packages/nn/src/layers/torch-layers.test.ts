/**
 * Values, gradients, names of parameters and buffers of layers, as PyTorch 1.13.1 has them (tooling/goldens/layers.py). Core comes through its entry without
 * methods, as in functions-only.test.ts.
 */
import { readFileSync } from 'node:fs';
import { cast, concat, flatten, setEngine, sum, type Tensor } from '@polygrad/core/functions';
import { decodeSafetensors } from '@polygrad/data';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import * as nn from '../index.ts';
import { cases, dtype, value } from './fixtures/torch-layer-cases.ts';

const file = decodeSafetensors(readFileSync(new URL('./fixtures/layers.safetensors', import.meta.url)));

beforeAll(() => setEngine(createReferenceEngine()));

const isShape = (input: readonly number[] | Tensor): input is readonly number[] => Array.isArray(input);
const isFloat = (t: Tensor): boolean => t.dtype.startsWith('float');

for (const [name, make] of Object.entries(cases)) {
  it(`${name} as in PyTorch`, async () => {
    const [layer, given, call] = make();
    const [parameters, buffers] = [layer.namedParameters(), layer.namedBuffers()];
    expect([...parameters, ...buffers].map(([label]) => label).join()).toBe(file.metadata![name]);
    for (const [i, [, parameter]] of parameters.entries()) parameter.assign(value(i + 1, parameter.shape));
    const inputs = given.map((input, i) => (isShape(input) ? value(i * 20, input, true) : input));
    const forward = (layer as unknown as { forward(...inputs: Tensor[]): Tensor }).forward.bind(layer);
    const result = (call ?? forward)(...inputs);
    const outputs = Array.isArray(result) ? (result as readonly Tensor[]) : [result as Tensor];
    outputs
      .map((y, i) => (isFloat(y) ? sum(y.mul(value(50 + i, y.shape))) : null))
      .filter((loss) => loss !== null)
      .reduce((total, loss) => total.add(loss))
      .backward();
    const learned = [...inputs.filter(isFloat), ...parameters.map(([, parameter]) => parameter)];
    const parts = [...outputs, ...learned.map((t) => t.grad ?? t.mul(0)), ...buffers.map(([, t]) => t)];
    const found = await concat(parts.map((t) => flatten(cast(t, dtype)))).data();
    const wanted = file.tensors.get(name)!.data as Float32Array;
    expect(found.length).toBe(wanted.length);
    const worst = Math.max(...wanted.map((w, i) => Math.abs(Number(found[i]) - w) / Math.max(1, Math.abs(w))));
    expect(worst).toBeLessThan(1e-6);
  });
}

it('holds a case for each that PyTorch was asked for', () => {
  expect([...file.tensors.keys()].sort()).toEqual(Object.keys(cases).sort());
});

/** What PyTorch 1.13 does not have, or has no values of its own: where it is tested. */
const without: Readonly<Record<string, string>> = {
  Module: 'every layer is one',
  ModuleDict: 'module/tools.test.ts',
  ModuleList: 'module/tools.test.ts',
  QuantizedLinear: 'precision/quantized-linear.test.ts',
  RMSNorm: 'layers.test.ts',
  RotaryEmbedding: 'sequences.test.ts',
  Sequential: 'module/torch.test.ts',
  TransformerBlock: 'sequences.test.ts',
};

it('holds a case for each layer', () => {
  const layers = Object.entries(nn).flatMap(([name, value]) =>
    typeof value === 'function' && (value === nn.Module || value.prototype instanceof nn.Module) ? [name] : [],
  );
  const named = new Set(Object.values(cases).flatMap((make) => make()[0].constructor.name));
  expect(layers.filter((name) => !named.has(name)).sort()).toEqual(Object.keys(without).sort());
});
