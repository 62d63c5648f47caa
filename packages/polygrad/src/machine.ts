/** What Node and the processor offer, whatever is installed. */
import os from 'node:os';
import v8 from 'node:v8';

/** The Node that runs. */
export interface NodeInfo {
  readonly version: string;
  readonly v8: string;
  /** True where Polygrad runs on it. */
  readonly supported: boolean;
}

/** The machine, and what WebAssembly can do there. */
export interface Machine {
  readonly platform: string;
  readonly cores: number;
  readonly processor: string;
  readonly memoryBytes: number;
  readonly simd: boolean;
  /** 'flag': behind a flag that the CPU engine sets by itself. */
  readonly relaxedSimd: boolean | 'flag';
  readonly threads: boolean;
  readonly sharedMemory: boolean;
  readonly memory64: boolean;
}

/** The oldest Node that the packages run on. */
export const oldestNode = 20;

/** Smallest modules that use one feature each: (module (func (result v128 or i32) ...)). */
const probes = {
  simd: [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
  relaxedSimd: [
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
    253, 128, 2, 11,
  ],
  threads: [0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 1],
  memory64: [0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1],
};

const accepts = (name: keyof typeof probes): boolean => WebAssembly.validate(new Uint8Array(probes[name]));

function relaxedSimd(): boolean | 'flag' {
  if (accepts('relaxedSimd')) return true;
  try {
    v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
  } catch {
    return false;
  }
  return accepts('relaxedSimd') ? 'flag' : false;
}

function sharedMemory(): boolean {
  try {
    return new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer instanceof SharedArrayBuffer;
  } catch {
    return false;
  }
}

/** The Node of these versions (`process.versions`). */
export function nodeInfo({ node, v8: engine }: { readonly node: string; readonly v8: string }): NodeInfo {
  return { version: node, v8: engine, supported: Number.parseInt(node, 10) >= oldestNode };
}

/** The machine this runs on. */
export function machine(): Machine {
  const processors = os.cpus();
  return {
    platform: `${os.platform()} ${os.arch()}, ${os.release()}`,
    // Node 18 may not have it: then the doctor has that to say.
    cores: os.availableParallelism?.() ?? processors.length,
    processor: processors[0]?.model.trim() ?? 'unknown model',
    memoryBytes: os.totalmem(),
    simd: accepts('simd'),
    relaxedSimd: relaxedSimd(),
    threads: accepts('threads'),
    sharedMemory: sharedMemory(),
    memory64: accepts('memory64'),
  };
}
