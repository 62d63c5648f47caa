import { describe, expect, it } from 'vitest';
import { DEFAULT_LAYERS, LayerError, type LayerSpec, parseLayers, planNetwork, printLayers } from './layers.ts';

describe('parseLayers', () => {
  it('reads what printLayers writes', () => {
    const text = 'conv 8x3, pool 2, conv 16x5, pool 3, linear 64';
    const layers: LayerSpec[] = [
      { kind: 'conv', channels: 8, kernel: 3 },
      { kind: 'pool', size: 2 },
      { kind: 'conv', channels: 16, kernel: 5 },
      { kind: 'pool', size: 3 },
      { kind: 'linear', units: 64 },
    ];
    expect(parseLayers(text)).toEqual(layers);
    expect(printLayers(layers)).toBe(text);
    expect(parseLayers('')).toEqual([]);
    expect(printLayers([])).toBe('');
  });

  it('fills in what is left out, and does not mind spaces and capitals', () => {
    expect(parseLayers(' Conv 4 ,POOL,, linear  7')).toEqual([
      { kind: 'conv', channels: 4, kernel: 3 },
      { kind: 'pool', size: 2 },
      { kind: 'linear', units: 7 },
    ]);
  });

  for (const text of ['dense 3', 'conv', 'conv 3x', 'conv -1', 'pool 2x2', 'linear', 'linear 3x3', 'conv 1.5', '<b>']) {
    it(`refuses '${text}'`, () => {
      expect(() => parseLayers(`pool 2, ${text}`)).toThrow(LayerError);
      expect(() => parseLayers(`pool 2, ${text}`)).toThrow(`Layer 2: '${text}' is no layer`);
    });
  }
});

describe('planNetwork', () => {
  it('counts shapes and parameters', () => {
    // Those of apps/mnist: 8 * 10 + 16 * 73 + 10 * 785.
    expect(planNetwork(DEFAULT_LAYERS)).toEqual({
      shapes: [
        [8, 28, 28],
        [8, 14, 14],
        [16, 14, 14],
        [16, 7, 7],
      ],
      features: 784,
      parameters: 9098,
      work: 784 * 8 * 9 + 196 * 16 * 72 + 7840,
    });
    expect(planNetwork([])).toEqual({ shapes: [], features: 784, parameters: 7850, work: 7840 });
    expect(planNetwork(parseLayers('pool 3, linear 20, linear 5'))).toEqual({
      shapes: [[1, 9, 9], [20], [5]],
      features: 5,
      parameters: 82 * 20 + 21 * 5 + 6 * 10,
      work: 81 * 20 + 20 * 5 + 5 * 10,
    });
  });

  const wrong: [string, number, RegExp][] = [
    ['linear 10, conv 8', 1, /^Layer 2: a linear layer before it/],
    ['linear 10, pool 2', 1, /^Layer 2: a linear layer/],
    ['pool 4, pool 4, pool 2', 2, /^Layer 3: the image is 1 x 1 here/],
    ['conv 0x3', 0, /channels must be a whole number from 1 to 64/],
    ['conv 8x10', 0, /kernel must be/],
    ['pool 1', 0, /window must be a whole number from 2 to 4/],
    ['linear 513', 0, /units must be/],
    ['conv 64x9, conv 64x9, pool 4', -1, /multiply 264 million times for each image, the most is 100 million; pool/],
    ['conv 64, linear 512', -1, /25,69\d,\d{3} parameters, the most is 2,000,000/],
    [
      'pool, pool, linear 1, linear 1, linear 1, linear 1, linear 1, linear 1, linear 1',
      -1,
      /9 layers are more than the 8/,
    ],
  ];
  for (const [text, index, message] of wrong) {
    it(`refuses ${text}`, () => {
      const attempt = (): unknown => planNetwork(parseLayers(text));
      expect(attempt).toThrow(message);
      try {
        attempt();
      } catch (error) {
        expect((error as LayerError).index).toBe(index);
      }
    });
  }

  it('refuses an empty field', () => {
    expect(() => planNetwork([{ kind: 'linear', units: Number.NaN }])).toThrow('units must be a whole number');
  });
});
