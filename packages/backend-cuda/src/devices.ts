/** The cards of this machine as people see them, and choosing one. */
import { isNativeError, withDriverCode } from '@polygrad/addon';
import { EngineMissingError } from '@polygrad/core/engine';
import { type Addon, type DeviceRecord, openDriver } from './addon.ts';
import { startText } from './errors.ts';

/** An NVIDIA card. */
export interface CudaDevice {
  /** Its place in the list: a way to choose it. CUDA_VISIBLE_DEVICES says which cards are listed, and in which order. */
  readonly index: number;
  readonly name: string;
  /** The driver's name for this very card: `GPU-...`, or `MIG-...` for a slice. */
  readonly uuid: string;
  /** Compute capability, such as '8.6'. */
  readonly capability: string;
  readonly memoryBytes: number;
  readonly multiprocessors: number;
  /** True for a slice of a card (MIG). */
  readonly slice: boolean;
  /** True for the simulated driver of tests. */
  readonly simulated: boolean;
  /** Higher is chosen first; 0: cannot be used, see `reason`. */
  readonly score: number;
  readonly reason: string;
}

/** A card with what the driver needs to know of it. */
export interface FoundDevice {
  readonly addon: Addon;
  readonly record: DeviceRecord;
  readonly device: CudaDevice;
  readonly simulated: boolean;
}

/** The oldest cards there are kernels for, as major times ten and minor: Turing. */
const leastCapability = 75;

/**
 * The NVIDIA cards of this machine; none where there is no driver.
 *
 * @example
 * import { listCudaDevices } from '@polygrad/backend-cuda';
 * for (const { index, name, capability, score } of listCudaDevices()) console.log(index, name, capability, score);
 * console.log(Array.isArray(listCudaDevices())); //=> true
 */
export function listCudaDevices(): CudaDevice[] {
  const found = findDevices();
  return 'reason' in found ? [] : found.map(({ device }) => device);
}

/** Why there are no cards, and the driver's error that says so. */
interface Missing {
  readonly reason: string;
  readonly from?: unknown;
}

/** All cards, or the reason why there are none. */
export function findDevices(): FoundDevice[] | Missing {
  const addon = openDriver();
  if (typeof addon === 'string') return { reason: addon };
  let records: DeviceRecord[];
  try {
    records = addon.devices();
  } catch (error) {
    if (isNativeError(error)) return { reason: startText(error.code, error.call), from: error };
    return { reason: `the cards cannot be listed: ${error instanceof Error ? error.message : error}` };
  }
  if (records.length === 0) return { reason: startText(100, 'cuDeviceGetCount') };
  const simulated = addon.simulated();
  return records.map((record, index) => ({ addon, record, device: describe(record, index, simulated), simulated }));
}

/**
 * The card of this number, the first whose UUID begins so or whose name holds this text, or the one with the highest score.
 *
 * @throws EngineMissingError where there is none
 */
export function chooseDevice(wish: number | string | undefined): FoundDevice {
  const found = findDevices();
  if ('reason' in found) throw withDriverCode(new EngineMissingError('cuda', found.reason), found.from);
  const usable = found.filter(({ device }) => device.score > 0);
  if (wish === undefined) {
    const best = usable.sort((a, b) => b.device.score - a.device.score || larger(b.record, a.record))[0];
    if (best) return best;
    const reasons = found.map(({ device }) => `${device.name}: ${device.reason}`).join('; ');
    throw new EngineMissingError('cuda', `no card can be used: ${reasons}`);
  }
  const chosen = typeof wish === 'number' ? found[wish] : found.find(({ device }) => matches(device, wish));
  if (!chosen) {
    const names = found.map(({ device: d }) => `${d.index} = ${d.name} (${d.uuid})`).join(', ');
    throw new EngineMissingError(
      'cuda',
      `no card ${JSON.stringify(wish)}; give a number, a UUID or a part of the name: ${names}`,
    );
  }
  if (chosen.device.score > 0) return chosen;
  throw new EngineMissingError('cuda', `${chosen.device.name} cannot be used: ${chosen.device.reason}`);
}

/** More processors first, then more memory. */
function larger(a: DeviceRecord, b: DeviceRecord): number {
  return a.multiprocessors - b.multiprocessors || a.memoryBytes - b.memoryBytes;
}

function matches({ uuid, name }: CudaDevice, text: string): boolean {
  const wanted = text.toLowerCase();
  const own = uuid.toLowerCase();
  return (
    own.startsWith(wanted) || own.replace(/^(gpu|mig)-/, '').startsWith(wanted) || name.toLowerCase().includes(wanted)
  );
}

function describe(r: DeviceRecord, index: number, simulated: boolean): CudaDevice {
  const slice = /\bMIG\b/.test(r.name);
  const obstacle = obstacleOf(r);
  const kind = slice ? 'a slice of a card (MIG)' : r.integrated !== 0 ? "a card in the processor's memory" : 'a card';
  return {
    index,
    name: simulated ? `${r.name} (simulated)` : r.name,
    uuid: `${slice ? 'MIG' : 'GPU'}-${r.uuid}`,
    capability: `${r.major}.${r.minor}`,
    memoryBytes: r.memoryBytes,
    multiprocessors: r.multiprocessors,
    slice,
    simulated,
    score: obstacle === null ? scoreOf(r, simulated) : 0,
    reason: obstacle ?? (simulated ? 'the simulated driver of tests: not a card' : kind),
  };
}

/** Above those of the same card under OpenCL (60, 40) and WebGPU (50). The simulated driver is the processor, and slow. */
function scoreOf(r: DeviceRecord, simulated: boolean): number {
  if (simulated) return 1;
  return r.integrated !== 0 ? 55 : 80;
}

function obstacleOf(r: DeviceRecord): string | null {
  const capability = 10 * r.major + r.minor;
  if (capability < leastCapability)
    return `it is too old: its compute capability is ${r.major}.${r.minor}, 7.5 (Turing) or newer is needed; the OpenCL engine may run on it`;
  if (r.computeMode === 2) return 'it is closed to computing (compute mode prohibited): nvidia-smi -c 0 opens it';
  return null;
}
