/**
 * calibrate: measures what each family of operations costs on two engines, at sizes from 100 to 10 million, and what transfers cost, and derives
 * thresholds. A store keeps the measurements by device.
 */
import type { IEngine, TuningStore } from '../engine/engine.ts';
import { poolOf, type PoolBuffer } from '../engine/pool.ts';
import { checkEngine, cpuEngine, getEngine } from '../engine/registry.ts';
import { EngineMissingError } from '../engine/errors.ts';
import { checkFields, numberFrom } from '@polygrad/compiler/shape/options';
import { defaultStore } from '../tuning/store.ts';
import { type EngineCosts, type TransferCost, operationFamilies } from './costs.ts';
import { fusedCost, measureCurves } from './curves.ts';
import { AdaptiveThresholds } from './thresholds.ts';

/** Options of `calibrate`. */
export interface CalibrateOptions {
  /** The device; default: the current engine. */
  readonly device?: IEngine;
  /** Where results are kept: by default files on Node, IndexedDB in browsers. null: not at all. */
  readonly store?: TuningStore | null;
  /** Measure even if the store has results. Default false. */
  readonly force?: boolean;
  /** About how many milliseconds to measure. Default 15000. */
  readonly budget?: number;
  /** A clock in milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/** Least milliseconds of a copy of `bytes` bytes, up and down. */
async function copies(engine: IEngine, bytes: number, now: () => number): Promise<readonly [number, number]> {
  const pool = poolOf(engine);
  const buffer: PoolBuffer = pool.alloc(bytes);
  const binding = { buffer: buffer.memory, offset: 0, bytes };
  const data = new Uint8Array(bytes);
  let [up, down] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  try {
    for (let i = 0; i < 5; i++) {
      let start = now();
      engine.upload(binding, data);
      await engine.idle();
      up = Math.min(up, now() - start);
      start = now();
      if (engine.downloadSync !== undefined) engine.downloadSync(binding, data);
      else await engine.download(binding, data);
      down = Math.min(down, now() - start);
    }
  } finally {
    buffer.release();
  }
  return [up, down];
}

async function transfersOf(
  engine: IEngine,
  now: () => number,
): Promise<{ upload: TransferCost; download: TransferCost }> {
  const [few, many] = [1024, 4 << 20];
  const [small, large] = [await copies(engine, few, now), await copies(engine, many, now)];
  const cost = (way: 0 | 1): TransferCost => ({
    latency: small[way],
    perByte: Math.max(0, large[way] - small[way]) / (many - few),
  });
  return { upload: cost(0), download: cost(1) };
}

/** The key under which results of two engines are stored. */
function keyOf(cpu: IEngine, device: IEngine): string {
  const nameOf = ({ name, device, caps }: IEngine): string => `${name} ${device} ${caps.parallelism}`;
  return `placement 3 ${nameOf(cpu)} ${nameOf(device)}`;
}

/**
 * Measures from which size on a device is faster than the CPU engine, for each family of operations, and what transfers cost; or loads what an
 * earlier call stored for the same devices. Thresholds are 10 % above the first crossing of the two curves; infinity if they never cross. It
 * measures work that follows other work, without the wait for a result.
 *
 * Nothing else should run meanwhile. Larger sizes of work that takes longer than 400 ms are not measured.
 *
 * @returns thresholds with measured costs, for `ExecutionContext`
 * @throws EngineMissingError without a CPU engine or another one; ArgumentError for options that do not fit; and errors of engines
 * @example no-run: it takes some seconds
 * import { calibrate, ExecutionContext, setEngine } from '@polygrad/core';
 * import '@polygrad/backend-cpu';
 * import '@polygrad/backend-webgpu';
 * await setEngine('webgpu');
 * const thresholds = await calibrate();
 * console.log(thresholds.get('product'));
 * await new ExecutionContext({ thresholds }).activate();
 */
export async function calibrate(options: CalibrateOptions = {}): Promise<AdaptiveThresholds> {
  checkFields('calibrate', options, {
    device: [(x) => typeof (x as IEngine | null)?.submit === 'function', 'an engine'],
    store: [(x) => x === null || typeof (x as TuningStore).load === 'function', 'a store, or null'],
    force: [(x) => typeof x === 'boolean', 'true or false'],
    budget: numberFrom(0),
    now: [(x) => typeof x === 'function', 'a clock'],
  });
  const { device = getEngine(), store = defaultStore(), force = false, budget = 15_000 } = options;
  const now = options.now ?? (() => performance.now());
  checkEngine('calibrate', device);
  const cpu = await cpuEngine();
  if (cpu === null || cpu === device)
    throw new EngineMissingError(
      'calibrate',
      cpu === null
        ? 'no cpu engine is there: the package @polygrad/backend-cpu brings one'
        : 'there is nothing to compare the cpu engine with; call setEngine() first, or name a device: calibrate({ device })',
    );
  const key = keyOf(cpu, device);
  const stored = force ? null : await store?.load(key);
  const known = stored == null ? null : AdaptiveThresholds.parse(stored);
  if (known !== null) return known;
  const engines = [cpu, device];
  const curves = await measureCurves(engines, budget, now);
  const costs: EngineCosts[] = [];
  for (const [i, engine] of engines.entries())
    costs.push({
      families: Object.fromEntries(
        operationFamilies.map((family) => [family, curves.get(family)![i]!]),
      ) as unknown as EngineCosts['families'],
      fused: fusedCost(curves.get('elementwise')![i]!, curves.get('fused')![i]!),
      ...(await transfersOf(engine, now)),
    });
  const thresholds = new AdaptiveThresholds({}, { cpu: costs[0]!, device: costs[1]! });
  await store?.save(key, thresholds.stringify());
  return thresholds;
}
