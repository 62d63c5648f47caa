/** Augmentation against what each change may have made of an image, in plain loops. */
import { mul, seed, setEngine, stats, type Tensor, tensor, zeros } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { crossEntropy } from '../index.ts';
import { Linear } from '../layers/linear.ts';
import { SGD } from '../optim/sgd.ts';
import { cutout, mixup, randomAffine, randomCrop, randomFlip, type BatchTransform } from './augment.ts';
import { fit } from './fit.ts';
import { accuracy } from './meter.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});
beforeEach(() => seed(4));

type Image = number[][];

/** Images of `c` channels where every pixel has its own number. */
const numbered = (n: number, c: number, h: number, w: number): Tensor =>
  tensor(Float32Array.from({ length: n * c * h * w }, (_, i) => i + 1)).reshape([n, c, h, w]);

async function changed(transform: BatchTransform, x: Tensor): Promise<Image[][]> {
  return (await transform(x, zeros([x.shape[0]!]))[0].array()) as unknown as Image[][];
}

describe('images', () => {
  it('are mirrored, some of them, all channels alike', async () => {
    const x = numbered(32, 2, 2, 3);
    const before = (await x.array()) as unknown as Image[][];
    const after = await changed(randomFlip(), x);
    const turned = after.map((image, i) => {
      const isSame = JSON.stringify(image) === JSON.stringify(before[i]);
      if (!isSame) expect(image).toEqual(before[i]!.map((channel) => channel.map((row) => [...row].reverse())));
      return !isSame;
    });
    const count = turned.filter(Boolean).length;
    expect(count).toBeGreaterThan(6);
    expect(count).toBeLessThan(26);
    expect(await changed(randomFlip({ probability: 0 }), x)).toEqual(before);
    expect(await changed(randomFlip({ probability: 1, axis: 2 }), x)).toEqual(
      before.map((image) => image.map((channel) => [...channel].reverse())),
    );
  });

  it('are moved by whole pixels, each its own way, and filled up', async () => {
    const [n, h, w, padding] = [48, 4, 5, 2];
    const before = (await numbered(n, 2, h, w).array()) as unknown as Image[][];
    const after = await changed(randomCrop({ padding, fill: -1 }), numbered(n, 2, h, w));
    const moves = new Set<string>();
    for (const [i, image] of after.entries()) {
      const found: string[] = [];
      for (let dy = -padding; dy <= padding; dy++) {
        for (let dx = -padding; dx <= padding; dx++) {
          const moved = before[i]!.map((channel) =>
            channel.map((row, y) => row.map((_, x) => channel[y + dy]?.[x + dx] ?? -1)),
          );
          if (JSON.stringify(moved) === JSON.stringify(image)) found.push(`${dy},${dx}`);
        }
      }
      expect(found).toHaveLength(1);
      moves.add(found[0]!);
    }
    // 25 moves are possible.
    expect(moves.size).toBeGreaterThan(14);
    expect(await changed(randomCrop({ padding: 0 }), numbered(n, 2, h, w))).toEqual(before);
  });

  it('lose a square around a pixel of theirs', async () => {
    const [h, w, size] = [6, 7, 3];
    const before = (await numbered(40, 2, h, w).array()) as unknown as Image[][];
    const centres = new Set<string>();
    for (const [i, image] of (await changed(cutout({ size, fill: 0 }), numbered(40, 2, h, w))).entries()) {
      const found: string[] = [];
      for (let cy = 0; cy < h; cy++) {
        for (let cx = 0; cx < w; cx++) {
          const cut = before[i]!.map((channel) =>
            channel.map((row, y) => row.map((v, x) => (Math.abs(y - cy) <= 1 && Math.abs(x - cx) <= 1 ? 0 : v))),
          );
          if (JSON.stringify(cut) === JSON.stringify(image)) found.push(`${cy},${cx}`);
        }
      }
      expect(found).toHaveLength(1);
      centres.add(found[0]!);
    }
    expect(centres.size).toBeGreaterThan(18);
  });

  it('keep their shapes when they are turned: distances from the centre stay, in pixels, of wide images too', async () => {
    const [n, h, w] = [24, 25, 41];
    const blob = Array.from({ length: h }, (_, y) =>
      Array.from({ length: w }, (_, x) => Math.exp(-((y - 12) ** 2 + (x - 27) ** 2) / 4)),
    );
    const x = mul(tensor([[blob]]), tensor(new Float32Array(n).fill(1)).reshape([n, 1, 1, 1]));
    const angles: number[] = [];
    for (const [image] of await changed(randomAffine({ degrees: 90 }), x)) {
      let [sum, sx, sy] = [0, 0, 0];
      for (const [y, row] of image!.entries())
        for (const [x, v] of row.entries()) {
          sum += v;
          sx += v * (x - 20);
          sy += v * (y - 12);
        }
      expect(Math.hypot(sx / sum, sy / sum)).toBeCloseTo(7, 1);
      angles.push((Math.atan2(sy, sx) * 180) / Math.PI);
    }
    expect(Math.min(...angles)).toBeLessThan(-45);
    expect(Math.max(...angles)).toBeGreaterThan(45);
    expect(angles.every((angle) => Math.abs(angle) <= 91)).toBe(true);
  });

  it('are scaled about the centre and moved by shares of the size', async () => {
    const x = numbered(3, 1, 6, 8);
    const same = await changed(randomAffine({}), x);
    const before = (await x.array()) as unknown as Image[][];
    for (const [i, image] of same.entries())
      for (const [y, row] of image[0]!.entries())
        for (const [k, v] of row.entries()) expect(v).toBeCloseTo(before[i]![0]![y]![k]!, 3);
    // Twice as large: each place shows the image at half the distance from the centre.
    const large = await changed(randomAffine({ scale: [2, 2] }), x);
    const at = (image: Image, y: number, x: number): number => {
      const [top, left] = [Math.floor(y), Math.floor(x)];
      const part = (dy: number, dx: number): number =>
        (image[top + dy]?.[left + dx] ?? 0) * (1 - Math.abs(y - top - dy)) * (1 - Math.abs(x - left - dx));
      return part(0, 0) + part(0, 1) + part(1, 0) + part(1, 1);
    };
    for (const [y, row] of large[1]![0]!.entries())
      for (const [k, v] of row.entries())
        expect(v).toBeCloseTo(at(before[1]![0]!, 2.5 + (y - 2.5) / 2, 3.5 + (k - 3.5) / 2), 2);
    const moved = await changed(randomAffine({ translate: [0.5, 0] }), numbered(16, 1, 6, 8));
    const zeroed = moved.map(([image]) => image!.map((row) => row.filter((v) => v === 0).length));
    expect(zeroed.every((rows) => new Set(rows).size === 1)).toBe(true);
    expect(Math.max(...zeroed.flat())).toBeGreaterThan(1);
    expect(Math.max(...zeroed.flat())).toBeLessThanOrEqual(4);
  });
});

describe('mixtures', () => {
  it('of rows and of their targets have the same shares, another for each batch, by one plan', async () => {
    const [rows, classes] = [8, 8];
    const x = tensor(
      Array.from({ length: rows }, (_, i) => Array.from({ length: classes }, (_, j) => Number(i === j))),
    );
    const y = tensor([0, 1, 2, 3, 4, 5, 6, 7], { dtype: 'int32' });
    const change = mixup({ alpha: 0.5, classes });
    const shares: number[] = [];
    let plans = 0;
    for (let i = 0; i < 60; i++) {
      const [a, b] = change(x, y);
      const [inputs, targets] = [await a.array(), await b.array()] as unknown as [Image, Image];
      // Rows are those of the identity, so inputs and targets are the same numbers.
      expect(inputs).toEqual(targets);
      for (const row of targets) expect(row.reduce((sum, v) => sum + v, 0)).toBeCloseTo(1, 6);
      const mixed = targets.map((row, k) => row[k]!).filter((v) => v < 1 - 1e-6);
      expect(new Set(mixed).size).toBeLessThanOrEqual(1);
      if (mixed.length > 0) shares.push(mixed[0]!);
      if (i === 4) plans = stats().plansMade;
    }
    expect(stats().plansMade).toBe(plans);
    // Beta(1/2, 1/2): mean 1/2, variance 1/8.
    const mean = shares.reduce((sum, v) => sum + v, 0) / shares.length;
    const variance = shares.reduce((sum, v) => sum + (v - mean) ** 2, 0) / shares.length;
    expect(mean).toBeGreaterThan(0.35);
    expect(mean).toBeLessThan(0.65);
    expect(variance).toBeGreaterThan(0.07);
    expect(variance).toBeLessThan(0.18);
  });
});

describe('in a training', () => {
  const data = [
    {
      x: { dtype: 'float32', shape: [4, 2], data: new Float32Array([-2, 1, 2, 0, -1, 1, 1, 0]) },
      y: { dtype: 'int32', shape: [4], data: new Int32Array([0, 1, 0, 1]) },
    },
  ] as const;
  const train = async (transforms: BatchTransform[], epochs = 3): Promise<[readonly number[], number]> => {
    seed(8);
    const model = new Linear(2, 2);
    const optimizer = new SGD(model.parameters(), { lr: 0.5 });
    const { epochs: reports } = await fit(model, data, {
      optimizer,
      loss: crossEntropy,
      epochs,
      transforms,
      metrics: { accuracy },
    });
    return [reports.map(({ loss }) => loss), reports.at(-1)!.metrics.accuracy!];
  };

  it('changes what the loss sees, repeats for the same seed, and metrics see the targets', async () => {
    const [plain] = await train([]);
    const [first, score] = await train([randomFlip({ probability: 0.5 }), mixup({ classes: 2 })]);
    expect(first).not.toEqual(plain);
    expect((await train([randomFlip({ probability: 0.5 }), mixup({ classes: 2 })]))[0]).toEqual(first);
    expect([0, 0.25, 0.5, 0.75, 1]).toContain(score);
  });

  it('says what is wrong with a transform', async () => {
    await expect(train([((x: Tensor) => x) as never])).rejects.toThrow(/result of a transform/);
    await expect(train([(x, y) => [x.slice([{ stop: 2 }]), y]])).rejects.toThrow(/made 2 rows of 4/);
    await expect(train([3 as never])).rejects.toThrow(NnError);
    const images = [zeros([2, 3]), zeros([2])] as const;
    for (const transform of [randomCrop(), cutout({ size: 2 }), randomAffine({ degrees: 5 })])
      expect(() => transform(...images)).toThrow(/\[2,3\].*rows, channels, height, width/);
    expect(() => randomFlip({ axis: 0 })(...images)).toThrow(/axis 0/);
    expect(() => randomFlip({ probability: 2 })).toThrow(/probability/);
    expect(() => randomAffine({ scale: [0, 1] })).toThrow(/scale/);
    expect(() => mixup({ alpha: 0 })).toThrow(/alpha/);
    expect(() => cutout({ size: 0 })).toThrow(/size is 0/);
  });
});
