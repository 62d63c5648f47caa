import { describe, expect, it } from 'vitest';
import { confusionChart, trainingChart } from './charts.ts';

describe('charts', () => {
  it('draws the training as one SVG with both lines and their axes', () => {
    const points = Array.from({ length: 20 }, (_, index) => ({ at: index / 10, loss: 2 / (index + 1) }));
    const svg = trainingChart(points, [0.91, 0.975], 'digits & more');
    expect(svg).toMatch(/^<svg [^>]*width="720"/);
    expect(svg.trimEnd().endsWith('</svg>')).toBe(true);
    for (const text of ['digits &amp; more', 'training loss', 'test accuracy', 'epochs']) expect(svg).toContain(text);
  });

  it('draws a confusion matrix with every count', () => {
    const svg = confusionChart(
      [
        [101, 7],
        [3, 202],
      ],
      'matrix',
    );
    for (const text of ['>101<', '>7<', '>3<', '>202<', 'predicted', 'label']) expect(svg).toContain(text);
  });

  it('draws the same text for the same numbers', () => {
    const draw = () => trainingChart([{ at: 0.5, loss: 1 }], [0.5], 'same');
    expect(draw()).toBe(draw());
  });
});
