/**
 * From a drawing to an image like those of MNIST: the ink is cut out, scaled into a box of 20 x 20 without distortion. It is put into 28 x 28 so that
 * its centre of mass is in the middle. Pure: grey values in, bytes out.
 *
 * Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits": size normalised to fit a 20 x 20 box while
 * preserving the aspect ratio, then centred in 28 x 28 by the centre of mass of the pixels.
 */

/** Grey values, 0 for paper and 255 for ink, row by row. */
export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly ink: Uint8Array | Uint8ClampedArray;
}

export const SIDE = 28;
const BOX = 20;
/** Values up to this are paper: the soft edge of a stroke does not widen the digit. */
const PAPER = 16;

interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The smallest box around the ink; null for an empty drawing. */
export function inkBox({ width, height, ink }: Drawing): Box | null {
  let [left, right, top, bottom] = [width, -1, height, -1];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (ink[y * width + x]! <= PAPER) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = y;
    }
  }
  return right < 0 ? null : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/**
 * Mean ink over a rectangle with fractional edges: `sums` are sums over the rectangles from the origin, one row and column more
 * than the drawing.
 */
function areaSum(sums: Float64Array, stride: number, x0: number, y0: number, x1: number, y1: number): number {
  const at = (x: number, y: number): number => {
    const [i, j] = [Math.floor(x), Math.floor(y)];
    const [u, v] = [x - i, y - j];
    const here = j * stride + i;
    const [right, below] = [u > 0 ? 1 : 0, v > 0 ? stride : 0];
    return (
      (1 - v) * ((1 - u) * sums[here]! + u * sums[here + right]!) +
      v * ((1 - u) * sums[here + below]! + u * sums[here + below + right]!)
    );
  };
  return at(x1, y1) - at(x0, y1) - at(x1, y0) + at(x0, y0);
}

/** Sums over all rectangles from the origin. */
function integral({ width, height, ink }: Drawing): Float64Array {
  const stride = width + 1;
  const sums = new Float64Array(stride * (height + 1));
  for (let y = 0; y < height; y++) {
    let row = 0;
    for (let x = 0; x < width; x++) {
      row += ink[y * width + x]!;
      sums[(y + 1) * stride + x + 1] = sums[y * stride + x + 1]! + row;
    }
  }
  return sums;
}

/**
 * The drawing as a 28 x 28 image of MNIST's kind, or null if there is no ink.
 *
 * Every pixel is the mean of the ink it covers, so that no part of a stroke is lost. What would leave the image when the centre of mass comes to the
 * middle stays inside instead.
 */
export function centreDigit(drawing: Drawing): Uint8Array | null {
  const box = inkBox(drawing);
  if (box === null) return null;
  const sums = integral(drawing);
  const stride = drawing.width + 1;
  const scale = BOX / Math.max(box.width, box.height);
  const [columns, rows] = [box.width, box.height].map((n) => Math.max(1, Math.round(n * scale))) as [number, number];
  const [stepX, stepY] = [box.width / columns, box.height / rows];
  const small = new Float64Array(columns * rows);
  let [mass, sumX, sumY] = [0, 0, 0];
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const [x0, y0] = [box.left + x * stepX, box.top + y * stepY];
      const value = areaSum(sums, stride, x0, y0, x0 + stepX, y0 + stepY) / (stepX * stepY);
      small[y * columns + x] = value;
      mass += value;
      sumX += value * (x + 0.5);
      sumY += value * (y + 0.5);
    }
  }
  const place = (centre: number, extent: number): number =>
    Math.min(SIDE - extent, Math.max(0, Math.round(SIDE / 2 - centre)));
  const [left, top] = [place(sumX / mass, columns), place(sumY / mass, rows)];
  const image = new Uint8Array(SIDE * SIDE);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      image[(top + y) * SIDE + left + x] = Math.min(255, Math.round(small[y * columns + x]!));
    }
  }
  return image;
}
