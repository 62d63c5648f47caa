/** The devices of all platforms as people see them, and choosing one. */
import { EngineMissingError } from '@polygrad/core/engine';
import { type Addon, type DeviceRecord, openLibrary } from './addon.ts';

/** An OpenCL device. */
export interface OpenClDevice {
  /** Its place in the list: a way to choose it. */
  readonly index: number;
  readonly platform: string;
  readonly name: string;
  readonly vendor: string;
  /** Version of OpenCL the device supports, as the driver says it. */
  readonly version: string;
  readonly driver: string;
  readonly type: 'gpu' | 'cpu' | 'accelerator' | 'other';
  readonly memoryBytes: number;
  readonly computeUnits: number;
  /** True where host and device share one memory. */
  readonly unifiedMemory: boolean;
  readonly extensions: readonly string[];
  /** Higher is chosen first; 0: cannot be used, see `reason`. */
  readonly score: number;
  readonly reason: string;
}

/** A device with what the driver needs to know of it. */
export interface FoundDevice {
  readonly addon: Addon;
  readonly record: DeviceRecord;
  readonly device: OpenClDevice;
}

/**
 * The OpenCL devices of this machine; none where there is no library or no driver.
 *
 * @example
 * import { listOpenClDevices } from '@polygrad/backend-opencl';
 * for (const { index, name, type, score } of listOpenClDevices()) console.log(index, name, type, score);
 * console.log(Array.isArray(listOpenClDevices())); //=> true
 */
export function listOpenClDevices(): OpenClDevice[] {
  const found = findDevices();
  return typeof found === 'string' ? [] : found.map(({ device }) => device);
}

/** All devices, or the reason why there are none. */
export function findDevices(): FoundDevice[] | string {
  const addon = openLibrary();
  if (typeof addon === 'string') return addon;
  let records: DeviceRecord[];
  try {
    records = addon.devices();
  } catch (error) {
    return `the devices cannot be listed: ${error instanceof Error ? error.message : error}`;
  }
  if (records.length === 0)
    return 'the OpenCL loader is there and knows no device: install the OpenCL driver of your card, or pocl-opencl-icd for the processor';
  return records.map((record, index) => ({ addon, record, device: describe(record, index) }));
}

/**
 * The device of this number, the first whose name, vendor or platform holds this text, or the one with the highest score.
 *
 * @throws EngineMissingError where there is none
 */
export function chooseDevice(wish: number | string | undefined): FoundDevice {
  const found = findDevices();
  if (typeof found === 'string') throw new EngineMissingError('opencl', found);
  const names = found.map(({ device: d }) => `${d.index} = ${d.name} (${d.platform})`).join(', ');
  const usable = found.filter(({ device }) => device.score > 0);
  if (wish === undefined) {
    const best = usable.sort((a, b) => b.device.score - a.device.score)[0];
    if (best) return best;
    const reasons = found.map(({ device }) => `${device.name}: ${device.reason}`).join('; ');
    throw new EngineMissingError('opencl', `no device can be used: ${reasons}`);
  }
  const chosen = typeof wish === 'number' ? found[wish] : found.find(({ device }) => matches(device, wish));
  if (!chosen)
    throw new EngineMissingError(
      'opencl',
      `no device ${JSON.stringify(wish)}; give a number or a part of the name: ${names}`,
    );
  if (chosen.device.score > 0) return chosen;
  throw new EngineMissingError('opencl', `device ${chosen.device.name} cannot be used: ${chosen.device.reason}`);
}

function matches(device: OpenClDevice, text: string): boolean {
  const wanted = text.toLowerCase();
  return [device.name, device.vendor, device.platform].some((name) => name.toLowerCase().includes(wanted));
}

function describe(r: DeviceRecord, index: number): OpenClDevice {
  const type = r.typeBits & 4 ? 'gpu' : r.typeBits & 2 ? 'cpu' : r.typeBits & 8 ? 'accelerator' : 'other';
  const obstacle = obstacleOf(r);
  return {
    index,
    platform: r.platform,
    name: r.name,
    vendor: r.vendor,
    version: r.version,
    driver: r.driver,
    type,
    memoryBytes: r.globalBytes,
    computeUnits: r.computeUnits,
    unifiedMemory: r.unifiedMemory !== 0,
    extensions: r.extensions.split(' ').filter(Boolean),
    score: obstacle === null ? scoreOf(type, r.unifiedMemory !== 0) : 0,
    reason: obstacle ?? (type === 'cpu' ? 'a processor' : `a ${type}`),
  };
}

/** The CPU engine scores 10; a card with memory of its own comes first. Processors come after it unless measured faster (auto-detect). */
function scoreOf(type: OpenClDevice['type'], unified: boolean): number {
  if (type === 'gpu') return unified ? 40 : 60;
  return type === 'accelerator' ? 20 : 5;
}

function obstacleOf(r: DeviceRecord): string | null {
  if (!r.available) return 'the driver says it is not available';
  if (!r.compiler) return 'its driver has no compiler';
  if (!r.littleEndian) return 'it is big-endian';
  const version = /OpenCL C (\d+)\.(\d+)/.exec(r.language);
  if (version !== null && Number(version[1]) === 1 && Number(version[2]) < 2)
    return `it has ${r.language}: OpenCL C 1.2 is needed`;
  return null;
}
