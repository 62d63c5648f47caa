import { describe, expect, it } from 'vitest';
import { centreDigit, type Drawing, inkBox, SIDE } from './centre.ts';

/** A drawing of filled rectangles [left, top, width, height]. */
function drawing(size: number, ...boxes: (readonly [number, number, number, number])[]): Drawing {
  const ink = new Uint8Array(size * size);
  for (const [left, top, width, height] of boxes) {
    for (let y = top; y < top + height; y++) ink.fill(255, y * size + left, y * size + left + width);
  }
  return { width: size, height: size, ink };
}

/** Box and centre of mass of an image, plainly. */
function measure(image: Uint8Array): { box: ReturnType<typeof inkBox>; x: number; y: number; mass: number } {
  let [mass, x, y] = [0, 0, 0];
  image.forEach((value, i) => {
    mass += value;
    x += value * ((i % SIDE) + 0.5);
    y += value * (Math.floor(i / SIDE) + 0.5);
  });
  return { box: inkBox({ width: SIDE, height: SIDE, ink: image }), x: x / mass, y: y / mass, mass };
}

describe('centreDigit', () => {
  it('gives nothing for an empty drawing', () => {
    expect(centreDigit(drawing(280))).toBeNull();
    expect(centreDigit({ width: 4, height: 4, ink: new Uint8Array(16).fill(10) })).toBeNull();
  });

  it('makes the longer side 20 pixels, wherever and however large it was drawn', () => {
    for (const [left, top, width, height] of [
      [10, 20, 30, 240],
      [200, 5, 60, 20],
      [100, 100, 7, 7],
      [0, 0, 280, 280],
    ] as const) {
      const image = centreDigit(drawing(280, [left, top, width, height]))!;
      const { box, x, y } = measure(image);
      const scale = 20 / Math.max(width, height);
      expect([box!.width, box!.height]).toEqual([
        Math.max(1, Math.round(width * scale)),
        Math.max(1, Math.round(height * scale)),
      ]);
      expect(Math.abs(x - 14)).toBeLessThanOrEqual(0.5);
      expect(Math.abs(y - 14)).toBeLessThanOrEqual(0.5);
    }
  });

  it('puts the centre of mass, not of the box, into the middle', () => {
    // A heavy square with a thin tail to the right.
    const image = centreDigit(drawing(200, [20, 60, 60, 60], [80, 85, 60, 10]))!;
    const { box, x, y } = measure(image);
    expect(Math.abs(x - 14)).toBeLessThanOrEqual(0.5);
    expect(Math.abs(y - 14)).toBeLessThanOrEqual(0.5);
    expect(box!.left + box!.width / 2).toBeGreaterThan(15.5);
  });

  it('keeps everything inside the image', () => {
    // So heavy at one end that centring would push the other out.
    const image = centreDigit(drawing(400, [0, 100, 30, 200], [30, 199, 370, 1]))!;
    const { box } = measure(image);
    expect(box!.left).toBeGreaterThanOrEqual(0);
    expect(box!.left + box!.width).toBeLessThanOrEqual(SIDE);
  });

  it('keeps the amount of ink: a pixel is the mean of what it covers', () => {
    const size = 90;
    const ink = Uint8Array.from({ length: size * size }, (_, i) => ((i % size) * 7 + Math.floor(i / size) * 13) % 256);
    ink.fill(200, 0, 1);
    ink[size * size - 1] = 200;
    const image = centreDigit({ width: size, height: size, ink })!;
    const mean = ink.reduce((sum, v) => sum + v, 0) / ink.length;
    expect(Math.abs(measure(image).mass / 400 - mean)).toBeLessThan(1);
  });

  it('halves and doubles exactly', () => {
    // 40 x 40 with one dark quarter: 20 x 20 with the same quarter.
    const image = centreDigit(drawing(40, [0, 0, 20, 20], [39, 39, 1, 1]))!;
    const { box } = measure(image);
    const at = (x: number, y: number): number => image[(box!.top + y) * SIDE + box!.left + x]!;
    expect([at(0, 0), at(9, 9), at(10, 9), at(9, 10), at(19, 19)]).toEqual([255, 255, 0, 0, 64]);
  });
});
