/**
 * PNG and JPEG files as arrays of bytes, by `fast-png` and `jpeg-js`: libraries in JavaScript alone, the same pixels in Node and in pages. They
 * are loaded with the first file of their kind.
 *
 * Not the browser's own decoder: it changes colours by the screen's profile, and Node has none.
 */
import { bytesOf, type HostArray } from '../arrays.ts';
import { checkFits, checkOptions, DataError, reasonOf, isList } from '../errors.ts';
import { checkSize, type Resizing, resizeImage } from './resize.ts';

/** Options of `decodeImage`. */
export interface DecodeOptions {
  /** 1 grey, 3 red, green and blue, 4 with alpha; default as in the file (palettes become 3 or 4). */
  readonly channels?: 1 | 3 | 4;
  /** Height and width of the result; default those of the file. */
  readonly size?: readonly [height: number, width: number];
  /** How it is resized (default 'bilinear'). */
  readonly resizing?: Resizing;
  /** What to call the file in errors (default 'image'). */
  readonly source?: string;
}

/** Pixels with their channels side by side. */
interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly data: ArrayLike<number>;
}

/** Most pixels of an image: what a damaged or hostile header announces must not fill the memory. */
const mostPixels = 2 ** 27;

const op = 'decodeImage';

const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

function checkPixels(width: number, height: number, source: string): void {
  if (width > 0 && height > 0 && width * height <= mostPixels) return;
  throw new DataError(
    'format',
    source,
    `[${op}] ${source} says it is ${width} x ${height}; images have 1 to ${mostPixels} pixels`,
  );
}

/** Walks the chunks of a PNG: a file that ends within one, or before its last, was cut off there. */
function checkChunks(bytes: Uint8Array, source: string): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = pngSignature.length; ; ) {
    const length = at + 12 > bytes.length ? 0 : view.getUint32(at);
    const kind = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const end = at + 12 + length;
    if (end > bytes.length)
      throw new DataError(
        'truncated',
        source,
        `[${op}] ${source} ends at byte ${bytes.length}, within a part that begins at byte ${at}; get the file again`,
      );
    if (kind === 'IEND') return;
    at = end;
  }
}

async function decodePng(bytes: Uint8Array, source: string): Promise<Pixels> {
  if (bytes.length < 33)
    throw new DataError(
      'truncated',
      source,
      `[${op}] ${source} ends at byte ${bytes.length}, within the header of a PNG; get the file again`,
    );
  const header = new DataView(bytes.buffer, bytes.byteOffset);
  checkPixels(header.getUint32(16), header.getUint32(20), source);
  checkChunks(bytes, source);
  const { decode, convertIndexedToRgb } = await import('fast-png');
  const image = decode(bytes, { checkCrc: true });
  const { width, height, depth } = image;
  if (image.palette !== undefined) {
    const channels = image.palette[0]!.length;
    return { width, height, channels, data: convertIndexedToRgb(image) };
  }
  const size = width * height * image.channels;
  if (depth === 16)
    return {
      width,
      height,
      channels: image.channels,
      data: Uint8Array.from(image.data, (value) => Math.round(value / 257)),
    };
  if (depth === 8) return { width, height, channels: image.channels, data: image.data };
  // Fewer bits than eight: rows begin at bytes.
  const data = new Uint8Array(size);
  const most = 2 ** depth - 1;
  const stride = Math.ceil((width * depth) / 8);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const bit = x * depth;
      const value = (image.data[y * stride + (bit >> 3)]! >> (8 - depth - (bit & 7))) & most;
      data[y * width + x] = Math.round((value * 255) / most);
    }
  return { width, height, channels: 1, data };
}

/** True where the marker of a JPEG's end is nowhere. Inside of pixels it cannot be: those write ff as ff 00. */
function lacksEnd(bytes: Uint8Array): boolean {
  for (let at = bytes.length - 2; at >= 2; at--) if (bytes[at] === 0xff && bytes[at + 1] === 0xd9) return false;
  return true;
}

async function decodeJpeg(bytes: Uint8Array, source: string): Promise<Pixels> {
  const { decode } = (await import('jpeg-js')).default;
  let image: Pick<Pixels, 'width' | 'height' | 'data'>;
  try {
    image = decode(bytes, {
      useTArray: true,
      formatAsRGBA: false,
      tolerantDecoding: false,
      maxResolutionInMP: mostPixels / 1e6,
      maxMemoryUsageInMB: 4096,
    });
  } catch (error) {
    if (!lacksEnd(bytes)) throw error;
    throw new DataError(
      'truncated',
      source,
      `[${op}] ${source} ends at byte ${bytes.length} without the end of a JPEG; get the file again`,
      { cause: error },
    );
  }
  const { width, height, data } = image;
  checkPixels(width, height, source);
  return { width, height, channels: 3, data };
}

/** Grey by the weights of ITU-R 601-2 in 16 bits, as PIL has them. */
const greyOf = (r: number, g: number, b: number): number => (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;

/** Pixels side by side to channels one after the other, as many as are wanted. */
function planar({ width, height, channels, data }: Pixels, wanted: number): HostArray<'uint8'> {
  const size = width * height;
  const planes = new Uint8Array(wanted * size);
  const isColour = channels >= 3;
  for (let i = 0; i < size; i++) {
    const at = i * channels;
    const [r, g, b] = isColour ? [data[at]!, data[at + 1]!, data[at + 2]!] : [data[at]!, data[at]!, data[at]!];
    const hasAlpha = channels === 2 || channels === 4;
    if (wanted < 3) {
      planes[i] = isColour ? greyOf(r, g, b) : r;
      if (wanted === 2) planes[size + i] = data[at + channels - 1]!;
      continue;
    }
    planes[i] = r;
    planes[size + i] = g;
    planes[2 * size + i] = b;
    if (wanted === 4) planes[3 * size + i] = hasAlpha ? data[at + channels - 1]! : 255;
  }
  return { dtype: 'uint8', shape: [wanted, height, width], data: planes };
}

/**
 * The pixels of a PNG or JPEG file: uint8 [channels, height, width], as torchvision's `decode_image`. 16-bit PNGs become 8 bits. A rotation that a
 * camera notes in EXIF is not applied.
 *
 * @param file the whole file
 * @param options channels, size, resizing ('bilinear'), source
 * @throws DataError `format` or `truncated` for files that are damaged or of another kind; `argument`
 * @example
 * const png = await encodePng({ dtype: 'uint8', shape: [1, 1, 2], data: new Uint8Array([0, 255]) });
 * (await decodeImage(png)).data; // Uint8Array [0, 255]
 * (await decodeImage(png, { channels: 3, size: [4, 4] })).shape; // [3, 4, 4]
 */
export async function decodeImage(
  file: Uint8Array | ArrayBuffer,
  options: DecodeOptions = {},
): Promise<HostArray<'uint8'>> {
  checkOptions(op, options, { channels: 'number', size: 'any', resizing: 'string', source: 'string' });
  const { channels, size, resizing = 'bilinear', source = 'image' } = options;
  checkFits(op, 'channels', channels, [undefined, 1, 3, 4].includes(channels), '1, 3 or 4');
  if (size !== undefined) checkSize(op, size);
  const bytes = bytesOf(op, file, source);
  const isPng = pngSignature.every((byte, i) => bytes[i] === byte);
  const isJpeg = bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff;
  if (!isPng && !isJpeg) {
    const begin = Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    throw new DataError(
      'format',
      source,
      `[${op}] ${source} is neither PNG nor JPEG: its ${bytes.length} bytes begin with ${begin || 'nothing'}; convert it`,
    );
  }
  let pixels: Pixels;
  try {
    pixels = await (isPng ? decodePng : decodeJpeg)(bytes, source);
    const { width, height, data } = pixels;
    if (data.length !== width * height * pixels.channels)
      throw new Error(`it holds ${data.length} values for ${width} x ${height} pixels`);
  } catch (error) {
    if (error instanceof DataError) throw error;
    const kind = isPng ? 'PNG' : 'JPEG';
    const text = `[${op}] ${source} is a damaged ${kind} of ${bytes.length} bytes: ${reasonOf(error)}; get the file again`;
    throw new DataError('format', source, text, { cause: error });
  }
  const image = planar(pixels, channels ?? pixels.channels);
  return size === undefined ? image : resizeImage(image, size, { resizing });
}

/**
 * A PNG file of pixels: uint8 [channels, height, width], 1 to 4 channels.
 *
 * @throws DataError `argument` for arrays of another form
 * @example
 * const file = await encodePng({ dtype: 'uint8', shape: [3, 2, 2], data: new Uint8Array(12) });
 * file[1]; // 80
 */
export async function encodePng(image: HostArray<'uint8'>): Promise<Uint8Array> {
  const [channels, height, width] = checkImage('encodePng', image);
  const size = height * width;
  const data = new Uint8Array(channels * size);
  for (let c = 0; c < channels; c++) for (let i = 0; i < size; i++) data[i * channels + c] = image.data[c * size + i]!;
  const { encode } = await import('fast-png');
  return encode({ width, height, channels, data });
}

/** Channels, height and width of an image. @throws DataError `argument` */
function checkImage(name: string, image: HostArray<'uint8'>): [number, number, number] {
  const { dtype, shape, data } = image ?? {};
  const isImage =
    dtype === 'uint8' &&
    isList(shape) &&
    shape.length === 3 &&
    data instanceof Uint8Array &&
    shape[0]! >= 1 &&
    shape[0]! <= 4 &&
    shape.every((extent) => Number.isSafeInteger(extent) && extent > 0) &&
    shape.reduce((a, b) => a * b, 1) === data.length;
  checkFits(name, 'image', image, isImage, 'uint8 [channels, height, width] with 1 to 4 channels');
  return shape as unknown as [number, number, number];
}
