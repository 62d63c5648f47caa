/** Convolutions and their gradients through tiles, over many geometries. */
import { describe, expect, it } from 'vitest';
import { processorCosts } from '../codegen/costs/processors.ts';
import {
  checkCase,
  machineCapsOf,
  makeCase,
  type Making,
  type Parts,
  processorCaps,
  threadCaps,
  vectorCaps,
} from './fixtures/cases.ts';
import { choose, type Cuts } from './choose.ts';
import { findContraction } from './contraction.ts';
import { stepOrders } from './orders.ts';
import { withoutPadding } from './padding.ts';
import { processorChoices } from './processor-choices.ts';
import { processorContraction } from './transposed-results.ts';
import { wholeLines } from './whole-lines.ts';
import type { KNode } from '../ir/ir.ts';
import { checkConvolution } from './fixtures/sized.ts';
import { printTransforms } from '../ir/print.ts';
import { base, convolution, type Geometry, type Kind, zeros } from './fixtures/convolutions.ts';
import { sampled } from '../fixtures/everyday.ts';

/** A processor whose facts are known, with vectors of several widths. */
const machineCaps = machineCapsOf(64);

function check(g: Geometry, kind: Kind, relu = false, caps = vectorCaps): void {
  const { lowered, worst } = checkCase('float32', convolution(g, kind, relu), caps);
  const name = `${kind} ${JSON.stringify(g)}`;
  expect(lowered, name).not.toBeNull();
  expect(worst, name).toBeLessThanOrEqual(1);
}

/** The same with a second-level cache of 32 KiB, of which a group streams through half. */
const smallCaps: typeof vectorCaps = {
  ...machineCaps,
  lowering: {
    ...machineCaps.lowering,
    products: processorCosts({ registers: 32, sums: 12, flopsPerNs: 224, cacheBytes: 2 ** 15, cacheWays: 16 }),
  },
};

/** The transforms of a convolution's tiles, and how many multiply-adds a step of them has. */
function tilesOf(g: Geometry, kind: Kind, caps = machineCaps): { readonly done: string[]; readonly products: number } {
  const { lowered, worst } = checkCase('float32', convolution(g, kind), caps, processorContraction);
  expect(worst).toBeLessThanOrEqual(1);
  const { body, transforms = [] } = lowered!.dispatches.find(({ program }) => program.name === 'contraction')!.program;
  return {
    done: printTransforms(transforms),
    products: body.filter((n) => n.op === 'MULADD' && n.lanes === 16).length,
  };
}

/** The same added to what the results were. */
function updating(build: (m: Making) => Parts): (m: Making) => Parts {
  return (m) => {
    const parts = build({
      ...m,
      param: (n, access, own) => m.param(n, access === 'write' ? 'readwrite' : access, own),
    });
    const stores = (sum: KNode): ReturnType<Parts['stores']> =>
      parts.stores(sum).map(([memory, index, value]) => [memory, index, m.e.add(value, m.e.load(memory, index))]);
    return { ...parts, stores };
  };
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

  // Few sums for each channel: a tile takes all of its kernel, as vectors of channels or with vectors along lines of the image.
  const windows: Record<string, readonly [Partial<Geometry>, least: number]> = {
    channels: [{ groups: 64, size: [7, 7] }, 18],
    'channels left over': [{ groups: 20, size: [7, 7], kernel: [4, 4] }, 16],
    'channels last': [{ groups: 40, size: [7, 7], last: true }, 9],
    'steps of two': [{ groups: 36, size: [15, 14], stride: [2, 2] }, 9],
    'along lines': [{ groups: 5, images: 6, size: [12, 32] }, 9],
    'along lines that vectors do not fill': [{ groups: 5, images: 6, size: [12, 56] }, 9],
    'along lines, steps of two': [{ groups: 8, images: 6, size: [25, 64], stride: [2, 2] }, 9],
  };
  for (const [name, [change, least]] of Object.entries(windows)) {
    const g = { ...base, inputs: 1, outputs: 1, images: 4, ...change };
    it(`depthwise, the whole kernel in a tile: ${name}`, () => {
      expect(tilesOf(g, 'kernelGradient').products).toBeGreaterThanOrEqual(least);
      const kernel = updating(convolution(g, 'kernelGradient'));
      expect(checkCase('float32', kernel, machineCaps, processorContraction).worst).toBeLessThanOrEqual(1);
      if (name.includes('vectors') || name.includes('left over'))
        checkConvolution({ ...g, least: 2 }, 'kernelGradient', false, [machineCaps]);
    });
  }

  for (const [name, change] of sampled(Object.entries(geometries), 2)) {
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

  it('stores whole vectors over what the group stored before, but where results are added to what was there', () => {
    // Rows of 14 are stored by vectors of eight, those of 28 by vectors of 16.
    for (const w of [14, 28]) {
      const g = { ...base, images: 4, inputs: 4, outputs: 16, size: [9, w] } as const;
      for (const [kernel, whole] of [
        [convolution(g, 'forward'), true],
        [updating(convolution(g, 'forward')), false],
      ] as const) {
        const { lowered, worst } = checkCase('float32', kernel, machineCaps, processorContraction);
        expect(worst).toBeLessThanOrEqual(1);
        const body = lowered?.dispatches.at(-1)?.program.body ?? [];
        const lanes = body.flatMap((n) => (n.op === 'STORE' && n.src[0].op === 'PARAM' ? [n.src[2].lanes] : []));
        expect(Math.min(...lanes) > 1, `${w} ${whole}`).toBe(whole);
      }
    }
  });

  it('takes whole lines, with vectors that reach past the end, and several of them', () => {
    const transforms: string[] = [];
    const widths = Array.from({ length: 23 }, (_, i) => i + 9);
    // Sums over many features, at 14 and 19, leave products with padding out.
    for (const w of new Set([14, 19, ...sampled(widths, 3)])) {
      const inputs = w === 14 || w === 19 ? 40 : 6;
      const g = { ...base, images: 2, inputs, outputs: 8, size: [w % 3 === 0 ? 7 : 6, w] } as const;
      for (const kernel of [convolution(g, 'forward', true), updating(convolution(g, 'forward'))]) {
        const { lowered, worst } = checkCase('float32', kernel, machineCaps, processorContraction);
        expect(worst, `${w}`).toBeLessThanOrEqual(1);
        const { body, transforms: done = [] } = lowered!.dispatches.at(-1)!.program;
        transforms.push(...printTransforms(done));
        // Products are vectors of 16 lanes, whatever the rows are.
        if (w === 14) expect(body.some((n) => n.op === 'MULADD' && n.lanes === 16)).toBe(true);
      }
    }
    expect(transforms.some((text) => text.startsWith('stage'))).toBe(true);
  });

  it('takes several lines that vectors fill', () => {
    const { done, products } = tilesOf({ ...base, inputs: 24, outputs: 8, size: [6, 16] }, 'forward');
    expect(done[0]).toMatch(/^tile .* 8 16 /);
    expect(products).toBeGreaterThanOrEqual(16);
  });

  it.each<[string, Partial<Geometry>]>([
    ['three by three in steps of two', {}],
    ['without padding', { low: zeros, high: zeros, size: [9, 67] }],
    ['many features', { inputs: 40 }],
    ['as many phases as steps', { kernel: [3, 4] }],
    ['seven in steps of three', { kernel: [5, 7], stride: [2, 3], low: [2, 3], high: [2, 3], size: [9, 100] }],
    ['one feature per group', { groups: 5, inputs: 1, outputs: 1, images: 8 }],
    ['a long line', { kernel: [1, 25], stride: [1, 2], low: [0, 12], high: [0, 12], size: [1, 200] }],
  ])('reads positions with a step side by side, from a copy by phases: %s', (_, change) => {
    const g = { ...base, stride: [2, 2], size: [9, 70], outputs: 24, ...change } as const;
    const { done } = tilesOf(g, 'forward');
    expect(done.find((text) => text.startsWith('tile'))).toMatch(/ domain$/);
    expect(done.some((text) => /^vector \S+ 16$/.test(text))).toBe(true);
  });

  it.each<[string, Partial<Geometry>]>([
    ['of few channels', {}],
    ['of few channels, without padding', { low: zeros, high: zeros, size: [9, 129] }],
    ['of as many elements as there are phases', { kernel: [3, 4], outputs: 6 }],
    ['of one feature per group', { groups: 5, inputs: 1, outputs: 1 }],
  ])('sums gradients of the kernel along positions with a step, %s', (_, change) => {
    const g = { ...base, images: 4, outputs: 32, stride: [2, 2], size: [9, 128], ...change } as const;
    const { done } = tilesOf(g, 'kernelGradient');
    expect(done.find((text) => text.startsWith('tile'))).toMatch(/ (domain inPlace|inPlace domain)$/);
  });

  it('features are columns where lines are shorter than vectors: transposing results takes less than empty lanes', () => {
    const g = { ...base, images: 64, inputs: 32, outputs: 64, size: [14, 14], low: zeros, high: zeros } as const;
    expect(tilesOf(g, 'forward').done.find((text) => text.startsWith('tile'))).toMatch(/ 6 64 /);
  });

  it('groups that follow each other have the same columns where these do not stay in a cache', () => {
    const g = { ...base, images: 16, inputs: 40, outputs: 128, size: [4, 5] } as const;
    const firstCut = (caps: typeof vectorCaps): string | undefined => {
      const { done } = tilesOf(g, 'forward', caps);
      return done.find((text) => / grid /.test(text));
    };
    // i3 are the features, i0 the lines of the image.
    expect([firstCut(smallCaps), firstCut(machineCaps)]).toEqual(['split i3 1 grid serial', 'split i0 1 grid serial']);
  });

  it('takes whole lines where the number of images is given at dispatch', () => {
    for (const w of [9, 14, 28])
      for (const kind of ['forward', 'kernelGradient'] as const)
        checkConvolution({ ...base, least: 3, images: 7, inputs: 6, outputs: 8, size: [6, w] }, kind, true, [
          machineCaps,
        ]);
  });

  for (const name of ['same padding', 'stride 2', 'transposed by 2', 'groups', 'channels last']) {
    // Enough features for vectors of them, whose results lie apart.
    const g = { ...base, images: 3, inputs: 17, outputs: 32, ...geometries[name] };
    it(`${name}: results that lie apart, read and written`, () => {
      for (const kernel of [
        convolution(g, 'forward', true),
        updating(convolution(g, 'forward')),
        updating(convolution(g, 'kernelGradient')),
      ])
        expect(checkCase('float32', kernel, machineCaps, processorContraction).worst).toBeLessThanOrEqual(1);
    });
  }

  // Enough images for rows of them: positions are loops around the tiles, and bound those over the kernel.
  const many = { ...base, images: 16, inputs: 40, outputs: 32, size: [4, 5] } as const;
  const padded: Record<string, Partial<Geometry>> = {
    'of 3 x 3': {},
    'of a sum in parts': { inputs: 256, size: [2, 2] },
    'of 5 x 5, uneven': { kernel: [5, 5], low: [3, 1], high: [2, 4] },
    'wider than the kernel': { low: [4, 4], high: [4, 4] },
    'with strides': { stride: [2, 3], size: [7, 6] },
    transposed: { lhsDilation: [2, 2], low: [2, 2], high: [1, 1] },
    'with channels last': { last: true },
  };
  for (const [name, change] of sampled(Object.entries(padded), 2))
    it(`leaves products with padding out, ${name}`, () => {
      const kernel = convolution({ ...many, ...change }, 'forward', true);
      const { lowered, worst } = checkCase('float32', kernel, machineCaps, processorContraction);
      expect(worst).toBeLessThanOrEqual(1);
      const body = lowered?.dispatches.find(({ program }) => program.name === 'contraction')?.program.body ?? [];
      expect(body.some(({ op, src }) => op === 'LOOP' && src[0]?.op !== 'CONST')).toBe(true);
    });

  // Gradients of the kernel: its positions are loops around the tiles, and bound those over the image.
  const gradients: Record<string, Partial<Geometry>> = {
    'of 3 x 3': {},
    'of 5 x 5, uneven': { kernel: [5, 5], low: [3, 1], high: [2, 4] },
    'wider than the kernel': { low: [4, 4], high: [0, 1] },
    'with strides': { stride: [2, 3], size: [15, 21] },
    'with channels last': { last: true },
    'along lines': { images: 4, inputs: 16, outputs: 12, size: [5, 32] },
  };
  for (const [name, change] of sampled(Object.entries(gradients), 2))
    it(`leaves products with padding out of gradients of the kernel, ${name}`, () => {
      const g = { ...many, inputs: 64, size: [8, 8], ...change } as const;
      const { lowered, worst } = checkCase(
        'float32',
        convolution(g, 'kernelGradient'),
        machineCaps,
        processorContraction,
      );
      expect(worst).toBeLessThanOrEqual(1);
      const body = lowered?.dispatches.find(({ program }) => program.name === 'contraction')?.program.body ?? [];
      expect(body.some(({ op, src }) => op === 'LOOP' && src[0]?.op !== 'CONST')).toBe(true);
      // Positions are sums of more terms than a form has.
      expect(body.some((n) => n.op === 'MULADD' && n.lanes === 16)).toBe(true);
    });

  it('weighs choices that cannot be the cheapest no further, and takes none but the cheapest', () => {
    for (const [change, kind] of [
      [{}, 'forward'],
      [{ low: [4, 4], high: [4, 4] }, 'forward'],
      [{ inputs: 64, size: [8, 8] }, 'kernelGradient'],
      [{ inputs: 64, size: [8, 8], kernel: [5, 5], low: [3, 1], high: [2, 4] }, 'kernelGradient'],
    ] as const) {
      const { kernel, e } = makeCase('float32', convolution({ ...many, ...change }, kind));
      const c = findContraction(kernel, e)!;
      const cuts = withoutPadding(c);
      const parts: number[] = [];
      let asked = 0;
      const of: Cuts['of'] = (choice) => {
        asked++;
        const found = cuts.of(choice);
        for (const cut of found) if (cut !== null) parts.push(cut.part);
        return found;
      };
      const workspace = (): never => {
        throw new Error('a choice makes no memory');
      };
      const more = {
        ...processorChoices(c, machineCaps),
        tiles: wholeLines,
        orders: stepOrders,
        workspace,
      };
      const facts = (least: number): readonly unknown[] => {
        const { cost, shape, lanes, along, column, row, rowWay, columnWay, cut } = choose(c, 4, machineCaps, {
          ...more,
          cuts: { least, of },
        })!;
        return [cost, shape.rows, shape.vectors, lanes, along, column, row, rowWay.kind, columnWay.kind, cut?.part];
      };
      const chosen = facts(cuts.least);
      const few = asked;
      // Where a cut may leave less than nothing, every choice is weighed to the end.
      expect(chosen).toEqual(facts(Number.NEGATIVE_INFINITY));
      expect(few).toBeLessThan((asked - few) / 2);
      expect(parts.length).toBeGreaterThan(0);
      expect(Math.min(...parts)).toBeGreaterThanOrEqual(cuts.least);
    }
  });

  it('takes sums that lie apart through memory, where more than one tensor is read or written there', () => {
    const g = { ...base, images: 16, inputs: 32, outputs: 32, size: [8, 8] } as const;
    const names = (kernel: (m: Making) => Parts): string[] =>
      checkCase('float32', kernel, machineCaps, processorContraction).lowered!.dispatches.map(
        ({ program }) => program.name,
      );
    const update = updating(convolution(g, 'kernelGradient'));
    expect(names(update).at(-1)).toMatch(/_(epilogue|combine)$/);
    expect(names(convolution({ ...g, kernel: [1, 1], low: zeros, high: zeros }, 'kernelGradient')).at(-1)).not.toMatch(
      /_epilogue$/,
    );
  });

  it('splits long sums where there are few results', () => {
    const g = { ...base, images: 60, inputs: 1, outputs: 8, size: [14, 15] } as const;
    const { lowered, worst } = checkCase('float32', convolution(g, 'kernelGradient'));
    expect(worst).toBeLessThanOrEqual(1);
    expect(lowered?.dispatches.at(-1)?.program.name).toContain('combine');
  });
});
