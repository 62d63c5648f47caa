/** What the page and its worker say to each other. Plain data only. */
import type { LayerSpec } from './layers.ts';

/** An engine as the page lists it. */
export interface EngineChoice {
  readonly name: string;
  readonly device: string;
  /** Higher is better; 0 or less: cannot be used here. */
  readonly score: number;
  /** Why it was chosen, or not, in words. */
  readonly reason: string;
  readonly usable: boolean;
}

export interface EngineReport {
  /** Name of the engine that runs. */
  readonly current: string;
  readonly device: string;
  readonly choices: readonly EngineChoice[];
  /** What a visitor should know about how it runs, in sentences. */
  readonly notes: readonly string[];
}

export interface DataReport {
  readonly train: number;
  readonly test: number;
}

export interface NetworkSettings {
  readonly layers: readonly LayerSpec[];
  readonly seed: number;
}

export interface NetworkReport {
  readonly layers: readonly LayerSpec[];
  readonly parameters: number;
  readonly seed: number;
}

/** Where the training is; sent several times a second while it runs. */
export interface Progress {
  readonly running: boolean;
  readonly step: number;
  /** Images seen, and passes over the training set. */
  readonly images: number;
  readonly epochs: number;
  /** Means since the last report; null where no step was taken. */
  readonly loss: number | null;
  readonly trainAccuracy: number | null;
  /** Share of test images recognised, when it was measured just now; and of how many. */
  readonly testAccuracy: number | null;
  readonly testImages: number;
  /** Training images per second since the last report. */
  readonly imagesPerSecond: number | null;
  /** Bytes of buffers in use and kept for reuse. */
  readonly usedBytes: number;
  readonly pooledBytes: number;
  /** Plans made and reused so far on this engine. */
  readonly newPlans: number;
}

/** What the network makes of an image: one probability for each digit. */
export interface Prediction {
  readonly probabilities: readonly number[];
}

/** A test image by its number in the set. */
export interface Sample {
  readonly index: number;
  readonly label: number;
  /** 28 x 28 grey values. */
  readonly pixels: Uint8Array;
}

export interface KernelLine {
  readonly name: string;
  readonly engine: string;
  readonly grid: readonly [number, number, number];
  readonly group: readonly [number, number, number];
  readonly flops: number;
  readonly bytes: number;
  readonly milliseconds: number | null;
  /** The program in the compiler's own language. */
  readonly program: string;
  readonly language: string | null;
  readonly source: string | null;
}

export interface StepProfile {
  readonly engine: string;
  readonly device: string;
  readonly batch: number;
  readonly submits: number;
  readonly milliseconds: number;
  readonly kernels: readonly KernelLine[];
}

/** What the worker does when asked. */
export interface TrainerApi {
  /** Fetches the images from the folder `data` below an address. */
  load(base: string): Promise<DataReport>;
  /** Looks for engines and takes the best, or the one named. */
  engines(prefer?: string): Promise<EngineReport>;
  /** Goes on with another engine; weights and optimizer move with it. */
  useEngine(name: string): Promise<EngineReport>;
  /** A new network with first weights. */
  build(settings: NetworkSettings): Promise<NetworkReport>;
  start(): Promise<void>;
  pause(): Promise<void>;
  setRate(rate: number): Promise<void>;
  setBatch(size: number): Promise<void>;
  predict(pixels: Uint8Array): Promise<Prediction>;
  /** One test image of each digit; other ones for another `page`. */
  samples(page: number): Promise<readonly Sample[]>;
  profileStep(): Promise<StepProfile>;
  /** A safetensors file. */
  save(): Promise<Uint8Array>;
  /** Takes weights over from a safetensors file, and its layers if it says which. */
  restore(bytes: Uint8Array, name: string): Promise<NetworkReport>;
  /** Counts the test images that are recognised, all of them; a progress event says how many. */
  measure(): Promise<void>;
  /** Only with ?debug: makes the device go away, as a driver's crash would. */
  loseDevice(): Promise<void>;
}

/** What the worker says by itself. */
export type TrainerEvent =
  | { readonly kind: 'progress'; readonly progress: Progress }
  /** Something a visitor must know. `fatal`: the training has stopped. */
  | { readonly kind: 'trouble'; readonly message: string; readonly fatal: boolean }
  | { readonly kind: 'notice'; readonly message: string }
  /** The images are on their way: bytes that have come, of those that the server announced (0: it did not say). */
  | { readonly kind: 'loading'; readonly done: number; readonly total: number }
  /** Kernels are being made; of those asked for, so many are ready. */
  | { readonly kind: 'compiling'; readonly done: number; readonly total: number }
  | { readonly kind: 'engine'; readonly report: EngineReport };
