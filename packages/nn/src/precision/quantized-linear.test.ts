/** int8 Linear layers: PyTorch's numbers, error bounds, bytes, files, and kernels that hold no float weights. */
import '@polygrad/backend-cpu';
import {
  autocast,
  flush,
  getEngine,
  grad,
  matmul,
  profile,
  randn,
  scope,
  seed,
  setEngine,
  sum,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { printProgram } from '@polygrad/core/kernel';
import { decodeSafetensors, encodeSafetensors } from '@polygrad/data';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';
import { Linear, QuantizedLinear, quantize } from '../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  seed(5);
});

const given =
  (values: number[][]): nn.Initializer =>
  (_shape, dtype) =>
    tensor(values, dtype === undefined ? {} : { dtype });

const asQuantized = (layer: Linear): QuantizedLinear => quantize(layer) as unknown as QuantizedLinear;

describe('quantize', () => {
  it('gives the numbers of torch.quantize_per_channel (PyTorch 1.13.1)', async () => {
    const rows = [1, 0, 3].map((k) =>
      Array.from({ length: 5 }, (_, j) => (k === 0 ? 0 : (((37 * j + 11 * k) % 19) - 9) / 20)),
    );
    const layer = asQuantized(new Linear(5, 3, { weightInit: given(rows) }));
    expect(await layer.weight.array()).toEqual([
      [127, 64, 0, -64, -127],
      [0, 0, 0, 0, 0],
      [127, 102, 76, 51, 25],
    ]);
    expect(await layer.scale.array()).toEqual([0.0007874015718698502, 1, 0.0019685039296746254]);
  });

  it('keeps results within half a step of every weight', async () => {
    const layer = new Linear(200, 30);
    const x = randn([8, 200]);
    const want = (await layer.forward(x).array()) as number[][];
    const quantized = asQuantized(layer);
    const found = (await quantized.forward(x).array()) as number[][];
    const scale = (await quantized.scale.array()) as number[];
    const magnitudes = (await sum(x.abs(), 1).array()) as number[];
    let worst = 0;
    for (const [i, row] of found.entries())
      for (const [j, value] of row.entries()) {
        const error = Math.abs(value - want[i]![j]!);
        worst = Math.max(worst, error);
        expect(error).toBeLessThanOrEqual((magnitudes[i]! * scale[j]!) / 2 + 1e-5);
      }
    expect(worst).toBeGreaterThan(0);
    // Roundings are independent: the errors add up like a random walk.
    expect(worst).toBeLessThan(0.01);
  });

  it('changes the layers of any container in place, each once, and says so in summary', async () => {
    const shared = new Linear(16, 16);
    const list = new nn.ModuleList([shared, new Linear(16, 16)]);
    class Net extends nn.Module {
      readonly parts = list;
      readonly tower = new nn.Sequential(shared, new nn.ReLU(), new Linear(16, 4, { bias: false }));
      forward(x: Tensor): Tensor {
        return this.tower.forward(list.at(1)!.forward(x));
      }
    }
    const model = new Net();
    const before = nn.summary(model, [1, 16]);
    expect(before.stateBytes).toBe(4 * (2 * (256 + 16) + 64));
    expect(quantize(model, { filter: (name) => name !== 'tower.2' })).toBe(model);
    const after = nn.summary(model, [1, 16]);
    expect(after.stateBytes).toBe(2 * (256 + 4 * (16 + 16)) + 4 * 64);
    expect(after.rows.filter(({ kind }) => kind === 'QuantizedLinear').length).toBe(2);
    expect(after.parameters).toBe(64);
    expect(model.parameters().length).toBe(1);
    expect(model.parameters()[0]).toBe((model.tower.layers[2] as Linear).weight);
    expect(Object.keys(model.stateDict()).filter((name) => name.startsWith('parts.0'))).toEqual([
      'parts.0.weight',
      'parts.0.bias',
      'parts.0.scale',
    ]);
  });

  it('disposes the float weights, but for those used elsewhere', () => {
    class Tied extends nn.Module {
      readonly embedding = new nn.Embedding(7, 4);
      readonly head = new Linear(4, 7, { bias: false });
      constructor() {
        super();
        Object.defineProperty(this.head, 'weight', {
          value: this.embedding.weight,
          enumerable: true,
          configurable: true,
        });
      }
      forward(x: Tensor): Tensor {
        return this.head.forward(this.embedding.forward(x));
      }
    }
    const tied = quantize(new Tied());
    expect(tied.forward(tensor([1, 2], { dtype: 'int32' })).shape).toEqual([2, 7]);
    const layer = new Linear(3, 3);
    const { weight } = layer;
    quantize(layer);
    expect(() => weight.add(1)).toThrow('disposed');
  });

  it('is saved and loaded, with int8 in the file', async () => {
    const make = () => new nn.Sequential(new Linear(6, 5), new nn.Tanh(), new Linear(5, 2));
    const model = quantize(make());
    const file = encodeSafetensors((await nn.hostState(model.stateDict())) as never);
    const { tensors } = decodeSafetensors(file);
    expect((tensors as unknown as Map<string, nn.StateArray>).get('0.weight')!.dtype).toBe('int8');
    const other = new nn.Sequential(new QuantizedLinear(6, 5), new nn.Tanh(), new QuantizedLinear(5, 2));
    other.loadStateDict(tensors as never);
    const x = randn([3, 6]);
    flush();
    expect(await other.forward(x).array()).toEqual(await model.forward(x).array());
    expect(() => make().loadStateDict(tensors as never)).toThrow('int8');
  });

  it('has gradients by its inputs, and results in the dtype of its inputs', async () => {
    const layer = asQuantized(new Linear(3, 2));
    const x = randn([1, 3]);
    const slope = grad((t: Tensor) => sum(layer.forward(t)))(x) as unknown as Tensor;
    const weights = layer.weight.cast('float32').mul(layer.scale.reshape([2, 1]));
    expect(await slope.array()).toEqual(await matmul(tensor([[1, 1]]), weights).array());
    expect(layer.forward(x.cast('float16')).dtype).toBe('float16');
    expect(autocast('bfloat16', () => layer.forward(x)).dtype).toBe('bfloat16');
    expect(layer.forward(tensor([[1, 2, 3]], { dtype: 'int32' })).dtype).toBe('float32');
  });

  it('refuses layers with hooks and computed weights, and what is no model', () => {
    const hooked = new nn.Sequential(new Linear(2, 2), new Linear(2, 2));
    nn.forwardHook(hooked.layers[1] as Linear, () => undefined);
    expect(() => quantize(hooked)).toThrow("[quantize] layer '1' has hooks");
    expect((hooked.layers[0] as Linear).weight.dtype).toBe('float32');
    const normed = new nn.Sequential(new Linear(2, 2));
    nn.weightNorm(normed.layers[0] as Linear);
    expect(() => quantize(normed)).toThrow("[quantize] the weight of layer '0' is computed");
    expect(() => quantize({} as Linear)).toThrow('[quantize]');
    expect(() => new QuantizedLinear(0, 2)).toThrow('[QuantizedLinear] inputs is 0');
  });
});

describe('kernels', () => {
  it('read int8 weights in the product, and write no float ones, where rows are few', async () => {
    await setEngine('cpu');
    expect(getEngine().name).toBe('cpu');
    const layer = new Linear(512, 512);
    const x = randn([1, 512]);
    flush();
    const weights = async (): Promise<string[]> => {
      const { kernels } = await profile(() => scope(() => layer.forward(x)).data());
      expect(kernels.length).toBe(1);
      return printProgram(kernels[0]!.program).match(/\w+ = PARAM .*\[262144\]/g)!;
    };
    expect(await weights()).toEqual([expect.stringMatching(/^float32 = PARAM slot \d read/)]);
    quantize(layer);
    expect(await weights()).toEqual([expect.stringMatching(/^int8 = PARAM slot \d read/)]);
  });
});
