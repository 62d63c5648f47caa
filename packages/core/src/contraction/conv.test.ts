/** Convolutions and their gradients through tiles, over many geometries. */
import { describe, expect, it } from 'vitest';
import type { KNode } from '../ir/ir.ts';
import { checkCase, type Making, type Parts, processorCaps, threadCaps, vectorCaps } from './fixtures/cases.ts';

interface Geometry {
  readonly images: number;
  readonly groups: number;
  /** Features in and out of one group. */
  readonly inputs: number;
  readonly outputs: number;
  readonly size: readonly [number, number];
  readonly kernel: readonly [number, number];
  readonly stride?: readonly [number, number];
  readonly low?: readonly [number, number];
  readonly high?: readonly [number, number];
  readonly dilation?: readonly [number, number];
  readonly lhsDilation?: readonly [number, number];
  /** Images have their channels last. */
  readonly last?: boolean;
}

const base: Geometry = {
  images: 2,
  groups: 1,
  inputs: 3,
  outputs: 6,
  size: [9, 11],
  kernel: [3, 3],
  low: [1, 1],
  high: [1, 1],
};
const ones = [1, 1] as const;
const zeros = [0, 0] as const;

function outSize(g: Geometry, axis: 0 | 1): number {
  const spread = (g.size[axis] - 1) * (g.lhsDilation ?? ones)[axis] + 1;
  const padded = spread + (g.low ?? zeros)[axis] + (g.high ?? zeros)[axis];
  return Math.floor((padded - (g.kernel[axis] - 1) * (g.dilation ?? ones)[axis] - 1) / (g.stride ?? ones)[axis]) + 1;
}

/** Where output `out` and kernel position `tap` read along one axis, and whether there is anything. */
function tapAt({ e, i }: Making, g: Geometry, axis: 0 | 1, out: KNode, tap: KNode): [KNode, KNode] {
  const step = (g.lhsDilation ?? ones)[axis];
  const spread = (g.size[axis] - 1) * step + 1;
  const scaled = e.add(e.mul(out, i((g.stride ?? ones)[axis])), e.mul(tap, i((g.dilation ?? ones)[axis])));
  const p = e.add(scaled, i(-(g.low ?? zeros)[axis]));
  const inside = e.and(e.le(i(0), p), e.lt(p, i(spread)));
  if (step === 1) return [p, inside];
  return [e.idiv(p, i(step)), e.and(inside, e.eq(e.irem(p, i(step)), i(0)))];
}

type Kind = 'forward' | 'kernelGradient';

/** y[image, group, output, oy, ox] over input features and taps, or the sum over images and positions that is w's gradient. */
function convolution(g: Geometry, kind: Kind, relu = false) {
  return (m: Making): Parts => {
    const { e, at } = m;
    const [oh, ow] = [outSize(g, 0), outSize(g, 1)];
    const [h, w] = g.size;
    const [kh, kw] = g.kernel;
    const x = m.param(g.images * g.groups * g.inputs * h * w);
    const [n, z, o, c, oy, ox, ky, kx] = [g.images, g.groups, g.outputs, g.inputs, oh, ow, kh, kw].map((extent) =>
      m.range(extent),
    ) as ReturnType<Making['range']>[] as [never, never, never, never, never, never, never, never];
    const [row, inRow] = tapAt(m, g, 0, oy, ky);
    const [column, inColumn] = tapAt(m, g, 1, ox, kx);
    // An element of images with so many features in a group, in either order of axes.
    const pixel = (features: number, [height, width]: readonly [number, number], f: KNode, y: KNode, x: KNode) => {
      const [channels, area] = [g.groups * features, height * width];
      return g.last
        ? at([n, channels * area], [y, width * channels], [x, channels], [z, features], [f, 1])
        : at([n, channels * area], [z, features * area], [f, area], [y, width], [x, 1]);
    };
    const a = e.load(x, pixel(g.inputs, g.size, c, row, column), e.and(inRow, inColumn));
    const taps = kh * kw;
    if (kind === 'forward') {
      const weights = m.param(g.groups * g.outputs * g.inputs * taps);
      const bias = m.param(g.groups * g.outputs);
      const y = m.param(g.images * g.groups * g.outputs * oh * ow, 'write');
      const b = e.load(
        weights,
        at([z, g.outputs * g.inputs * taps], [o, g.inputs * taps], [c, taps], [ky, kw], [kx, 1]),
      );
      const index = pixel(g.outputs, [oh, ow], o, oy, ox);
      return {
        a,
        b,
        k: [c, ky, kx],
        loops: [n, z, o, oy, ox],
        stores: (sum) => [
          [y, index, relu ? e.max(e.add(sum, e.load(bias, at([z, g.outputs], [o, 1]))), e.constant(m.dtype, 0)) : sum],
        ],
      };
    }
    const dy = m.param(g.images * g.groups * g.outputs * oh * ow);
    const dw = m.param(g.groups * g.outputs * g.inputs * taps, 'write');
    const b = e.load(dy, pixel(g.outputs, [oh, ow], o, oy, ox));
    const index = at([z, g.outputs * g.inputs * taps], [o, g.inputs * taps], [c, taps], [ky, kw], [kx, 1]);
    return { a, b, k: [n, oy, ox], loops: [z, o, c, ky, kx], stores: (sum) => [[dw, index, sum]] };
  };
}

function check(g: Geometry, kind: Kind, relu = false, caps = vectorCaps): void {
  const { lowered, worst } = checkCase('float32', convolution(g, kind, relu), caps);
  const name = `${kind} ${JSON.stringify(g)}`;
  expect(lowered, name).not.toBeNull();
  expect(worst, name).toBeLessThanOrEqual(1);
}

const geometries: Record<string, Partial<Geometry>> = {
  'same padding': {},
  'no padding': { low: zeros, high: zeros },
  'uneven padding': { low: [2, 0], high: [0, 3] },
  'negative padding': { low: [-1, 1], high: [0, -2], size: [11, 13] },
  'stride 2': { stride: [2, 2], size: [17, 19] },
  'stride 3 and 1': { stride: [3, 1], size: [20, 11] },
  dilation: { dilation: [2, 3], size: [14, 16] },
  'dilation and stride': { dilation: [2, 2], stride: [3, 2], size: [24, 22] },
  'transposed by 2': { lhsDilation: [2, 2], low: [2, 2], high: [1, 1], size: [6, 7] },
  'transposed by 3, dilated': { lhsDilation: [3, 1], dilation: [1, 2], size: [5, 12] },
  groups: { groups: 3, inputs: 2, outputs: 4 },
  'one feature per group': { groups: 5, inputs: 1, outputs: 1, images: 4, size: [16, 18] },
  'kernel of one position': { kernel: [1, 1], low: zeros, high: zeros, inputs: 20 },
  'long kernel': { kernel: [1, 7], low: [0, 3], high: [0, 3] },
  'kernel as large as the image': { kernel: [9, 11], low: zeros, high: zeros, images: 8, outputs: 9 },
  'narrow image': { size: [30, 3], images: 3 },
  'one input feature': { inputs: 1, outputs: 8, images: 3 },
  'channels last': { last: true, inputs: 5, outputs: 9 },
};

/** Convolutions of each channel by itself, channels last: vectors of channels in both factors. */
const ownChannels: Record<string, Partial<Geometry>> = {
  'as many channels as vectors hold': { groups: 8 },
  'channels left over': { groups: 19 },
  'stride 2': { groups: 12, stride: [2, 2], size: [9, 12] },
  transposed: { groups: 9, lhsDilation: [2, 2], low: [2, 2], high: [1, 1], size: [5, 4] },
  'no padding': { groups: 6, low: zeros, high: zeros },
};

describe('convolutions', () => {
  for (const [name, change] of Object.entries(geometries)) {
    const g = { ...base, ...change };
    it(name, () => check(g, 'forward', true));
    if (g.inputs === 1 && g.outputs === 1) continue;
    it(`${name}: gradient of the kernel`, () => check({ ...g, images: 3 }, 'kernelGradient'));
  }

  for (const [name, change] of Object.entries(ownChannels)) {
    const g = { ...base, inputs: 1, outputs: 1, last: true, ...change };
    it(`depthwise, ${name}`, () => {
      check(g, 'forward', true);
      check(g, 'kernelGradient');
    });
  }

  for (const [name, change] of Object.entries(geometries)) {
    const g = { ...base, images: 1, ...change };
    it(`${name}: by groups of threads`, () => {
      for (const caps of [threadCaps, processorCaps]) {
        check(g, 'forward', true, caps);
        if (g.inputs !== 1 || g.outputs !== 1) check({ ...g, images: 3 }, 'kernelGradient', false, caps);
      }
    });
  }

  it('every width from 1 to 24', () => {
    for (let w = 1; w <= 24; w++)
      check({ ...base, inputs: 8, size: [Math.max(3, Math.ceil(40 / w)), w], images: 1 }, 'forward');
  });

  it('reads what lies outside as zero times the other factor, as the loop nest does', () => {
    const { lowered } = checkCase('float32', convolution(base, 'forward'));
    expect(lowered?.dispatches.map((d) => d.program.name.replace('contraction', ''))).toEqual(['_pad', '']);
  });

  it('splits long sums where there are few results', () => {
    const g = { ...base, images: 60, inputs: 1, outputs: 8, size: [14, 15] } as const;
    const { lowered, worst } = checkCase('float32', convolution(g, 'kernelGradient'));
    expect(worst).toBeLessThanOrEqual(1);
    expect(lowered?.dispatches.at(-1)?.program.name).toContain('combine');
  });
});
