/** The images: fetched from the page's own server, unpacked, and handed out in batches and as samples. */
import { type Batch, type ImageDataset, imageDatasetFromIdx, shuffledIndices } from '@polygrad/data';
import { DATA_FILES, DATA_FOLDER } from '../common/data-files.ts';
import type { Sample } from '../common/protocol.ts';

export interface Digits {
  readonly train: ImageDataset;
  readonly test: ImageDataset;
}

/** Mean and deviation of MNIST's pixels; drawings are normalised the same way. */
export const MEAN = 0.1307;
export const DEVIATION = 0.3081;

const AGAIN = 'Reload the page to try again.';
/** Milliseconds between two words on how much has come. */
const TELL_EVERY = 100;

/** Told of every piece that arrives: its bytes, and those of the whole file the first time (0 where the server does not say). */
type Arrived = (bytes: number, announced: number) => void;

/** A body as it comes. */
async function collect(response: Response, arrived: Arrived): Promise<Uint8Array> {
  arrived(0, Number(response.headers.get('Content-Length') ?? 0));
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      arrived(chunk.length, 0);
      controller.enqueue(chunk);
    },
  });
  return new Uint8Array(await new Response(response.body?.pipeThrough(counting)).arrayBuffer());
}

async function fetchBytes(base: string, name: string, arrived: Arrived): Promise<Uint8Array> {
  const address = new URL(`${DATA_FOLDER}/${name}.gz`, base);
  let response: Response;
  try {
    response = await fetch(address);
  } catch {
    throw new Error(`The images could not be fetched: the server does not answer for ${address.pathname}. ${AGAIN}`);
  }
  if (!response.ok) {
    throw new Error(`The images could not be fetched: ${address.pathname} answered ${response.status}. ${AGAIN}`);
  }
  let bytes: Uint8Array;
  try {
    bytes = await collect(response, arrived);
  } catch {
    throw new Error(`The images could not be fetched: ${address.pathname} broke off. ${AGAIN}`);
  }
  // Some servers announce .gz files as packed text; then the browser has unpacked them already.
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const unpacked = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

/**
 * Fetches both sets.
 *
 * @param progress bytes that have come of those that were announced, at most every 100 milliseconds
 * @throws Error in words where a file is missing or damaged
 */
export async function fetchDigits(
  base: string,
  progress: (done: number, total: number) => void = () => {},
): Promise<Digits> {
  let [done, total] = [0, 0];
  let pause: ReturnType<typeof setTimeout> | undefined;
  let over = false;
  const arrived: Arrived = (bytes, announced) => {
    done += bytes;
    total += announced;
    if (over) return;
    // The word is said after the pause, not before it: a server that falls silent leaves the last figure standing, not an older one.
    pause ??= setTimeout(() => {
      pause = undefined;
      // A server that unpacks on the way announces less than comes.
      progress(done, done > total ? 0 : total);
    }, TELL_EVERY);
  };
  const { trainImages, trainLabels, testImages, testLabels } = DATA_FILES;
  const files = [trainImages, trainLabels, testImages, testLabels];
  const all = Promise.all(files.map((name) => fetchBytes(base, name, arrived)));
  // If one is missing, the others are not checked.
  const [a, b, c, d] = (await all.finally(() => {
    over = true;
    clearTimeout(pause);
  })) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
  const normal = { mean: MEAN, std: DEVIATION };
  return {
    train: imageDatasetFromIdx(a, b, normal, { images: trainImages, labels: trainLabels }),
    test: imageDatasetFromIdx(c, d, normal, { images: testImages, labels: testLabels }),
  };
}

type Images = Batch<'x' | 'y'>;

/** Endless batches, every image once per epoch, in an order that the seed determines. What is left of an epoch is dropped. */
export class Sampler {
  readonly #data: ImageDataset;
  readonly #seed: number;
  #order: Uint32Array;
  #at = 0;
  #epoch = 0;
  #spare: Images | undefined;

  constructor(data: ImageDataset, seed: number) {
    this.#data = data;
    this.#seed = seed;
    this.#order = shuffledIndices(data.size, seed, 0);
  }

  /** The next images; the arrays are filled again by the next call with the same size. */
  next(size: number): Images {
    if (this.#at + size > this.#order.length) {
      this.#order = shuffledIndices(this.#data.size, this.#seed, ++this.#epoch);
      this.#at = 0;
    }
    const from = this.#at;
    this.#at += size;
    const spare = this.#spare?.x.shape[0] === size ? this.#spare : undefined;
    this.#spare = this.#data.gather(this.#order, from, from + size, spare);
    return this.#spare;
  }
}

/** One image of every class, the `page`-th of each in the set, in the order of classes. */
export function samplesOf({ images, labels, size, classes, height, width }: ImageDataset, page: number): Sample[] {
  const found: Sample[] = [];
  const pixels = height * width;
  for (let label = 0; label < classes; label++) {
    const places: number[] = [];
    for (let i = 0; i < size; i++) if (labels.data[i] === label) places.push(i);
    if (places.length === 0) continue;
    const index = places[((page % places.length) + places.length) % places.length]!;
    found.push({ index, label, pixels: images.data.slice(index * pixels, (index + 1) * pixels) });
  }
  return found;
}
