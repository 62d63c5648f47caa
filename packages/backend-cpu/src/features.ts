/**
 * What this JavaScript engine's WebAssembly can do, found by validating and running small modules once.
 */
import { type Probe, UnsupportedError } from '@polygrad/core/engine';
import { assembleModule } from './asm/module.ts';
import * as S from './asm/simd.ts';
import * as W from './asm/plain.ts';
import * as T from './asm/types.ts';
import { ByteWriter } from './asm/writer.ts';
import { allowRelaxed, memoryRemedy } from '#host';

/** What the engine holds. */
// biome-ignore format: a list
export const everyDType: NonNullable<Probe['dtypes']> = [
  'float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];

export interface Features {
  /** relaxed_madd exists and rounds once. */
  readonly fusedMadd: boolean;
  /** relaxed_laneselect exists. */
  readonly laneSelect: boolean;
  /** Memories with 64-bit addresses can be made. */
  readonly memory64: boolean;
}

let found: Features | null = null;

/**
 * The features of this process; the first call may turn on an engine flag (relaxed SIMD on Node 20).
 *
 * @throws UnsupportedError where nothing may be compiled, or there is no room for a memory
 */
export function detectFeatures(): Features {
  if (found !== null) return found;
  try {
    new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  } catch (error) {
    const remedy = "a page's content security policy must allow it: script-src 'wasm-unsafe-eval'";
    throw new UnsupportedError('cpu', `WebAssembly cannot be compiled here; ${remedy} (${(error as Error).message})`);
  }
  const probe = maddProbe();
  const valid = WebAssembly.validate(probe) || (allowRelaxed() && WebAssembly.validate(probe));
  found = { fusedMadd: valid && roundsOnce(probe), laneSelect: valid, memory64: hasMemory64() };
  return found;
}

/** Why there is no memory, for a person. V8 reserves addresses around each one, so that accesses need no checks. */
export function noMemory(error: unknown): UnsupportedError {
  return new UnsupportedError(
    'cpu',
    `no memory for WebAssembly (${(error as Error).message}): V8 reserves 10 GiB of addresses for each; ${memoryRemedy}`,
  );
}

/** A memory of the engine's kind. 64-bit memories count their pages in BigInt. */
export function makeMemory(
  initial: number,
  maximum: number,
  shared: boolean,
  addressBits: 32 | 64,
): WebAssembly.Memory {
  if (addressBits === 32) return new WebAssembly.Memory({ initial, maximum, shared });
  const descriptor = { initial: BigInt(initial), maximum: BigInt(maximum), shared, address: 'i64' };
  return new WebAssembly.Memory(descriptor as unknown as WebAssembly.MemoryDescriptor);
}

function hasMemory64(): boolean {
  try {
    const memory = makeMemory(1, 2, false, 64);
    const module = assembleModule({ minPages: 1, maxPages: 2, shared: false, addressBits: 64 }, []);
    new WebAssembly.Instance(new WebAssembly.Module(module), { m: { m: memory } });
    return true;
  } catch {
    return false;
  }
}

/** A module whose function writes a * b + c of two doubles and two floats at addresses 0 and 16. */
function maddProbe(): Uint8Array<ArrayBuffer> {
  const w = new ByteWriter();
  const load = (at: number): void => {
    w.code(W.i32Const);
    w.sleb(at);
    w.code(S.load);
    w.uleb(0);
    w.uleb(0);
  };
  for (const [madd, at] of [
    [S.f64RelaxedMadd, 0],
    [S.f32RelaxedMadd, 64],
  ] as const) {
    w.code(W.i32Const);
    w.sleb(at);
    for (let i = 1; i <= 3; i++) load(at + 16 * i);
    w.code(madd);
    w.code(S.store);
    w.uleb(0);
    w.uleb(0);
  }
  return assembleModule({ minPages: 1, shared: false, addressBits: 32 }, [
    { name: 'madd', params: [], results: [], locals: [T.v128], code: w.take() },
  ]);
}

function roundsOnce(probe: Uint8Array<ArrayBuffer>): boolean {
  let memory: WebAssembly.Memory;
  try {
    memory = new WebAssembly.Memory({ initial: 1 });
  } catch (error) {
    throw noMemory(error);
  }
  const instance = new WebAssembly.Instance(new WebAssembly.Module(probe), { m: { m: memory } });
  // (1 + u)^2 - (1 + 2u) is u^2 with one rounding and 0 with two.
  const f64 = new Float64Array(memory.buffer);
  const u = 2 ** -40;
  f64.fill(1 + u, 2, 6).fill(-(1 + 2 * u), 6, 8);
  const f32 = new Float32Array(memory.buffer);
  const v = 2 ** -20;
  f32.fill(1 + v, 20, 28).fill(-(1 + 2 * v), 28, 32);
  (instance.exports['0'] as () => void)();
  return f64[0] === u * u && f32[16] === v * v;
}
