/** Options of `createWebGpuEngine`, and what they are when not given. */
import { checkFields, type EngineTuning, numberFrom, oneOf, type OptionRule } from '@polygrad/core/engine';
import type { Adapter } from './public.ts';

/** Progress of making pipelines: `done` of `total` since all were ready last. */
export interface CompileProgress {
  readonly done: number;
  readonly total: number;
  /** The kernel that became ready last; undefined when new ones were asked for. */
  readonly kernel: string | undefined;
}

/** Options of `createWebGpuEngine`. */
export interface WebGpuEngineOptions {
  /** Which adapter the system should choose where there are several. Default 'high-performance'. */
  readonly powerPreference?: 'high-performance' | 'low-power';
  /** Takes the software adapter, where there is one. Default false. */
  readonly forceFallbackAdapter?: boolean;
  /** An adapter to use instead of asking for one. It must not have given a device before. */
  readonly adapter?: Adapter;
  /**
   * Most bytes of buffers, kept ones included. Default: no limit but the device's own; for software adapters half of the
   * machine's memory, because they take it from there.
   */
  readonly memory?: number;
  /** Most tensors one kernel may bind; less than the adapter allows makes smaller kernels. For tests. */
  readonly maxBindings?: number;
  /**
   * Measure tiles of matrix products and convolutions on the adapter, soon after a class of them was first run. They are kept between
   * runs: on Node in the cache folder, in browsers in IndexedDB. Default true; false on software adapters, whose tile is known and
   * where compiling candidates takes longer than they gain. Or where to keep them, and whether to measure unasked.
   */
  readonly tuning?: boolean | EngineTuning;
  /** False: subgroups are not used where the adapter has them. For comparisons. Default true. */
  readonly subgroups?: boolean;
  /**
   * True: kernels keep the driver's compiler from regrouping float arithmetic; false: they trust it. Default: a small kernel finds out
   * whether it regroups. For comparisons.
   */
  readonly reassociates?: boolean;
  /** Called when pipelines are requested and when each is ready: the first step of a network compiles for a while. */
  readonly onCompile?: (progress: CompileProgress) => void;
}

/** Capabilities that adapters have in common: WebGPU's default limits, with or without its features `shader-f16` and `subgroups`. */
export type WebGpuProfile = 'common' | 'f16' | 'subgroups' | 'f16-subgroups';

/** Options of `createPlannedWebGpuEngine`. */
export interface PlannedWebGpuOptions extends WebGpuEngineOptions {
  /**
   * Takes the adapter for one with these capabilities and no others, so that its plans fit all that have them: for a build that records plans. The engine then
   * has its compiler from the start, and measures no tiles. Default: the best profile that the files in use have plans for and the adapter has, unless other options say what a profile says:
   * `maxBindings`, `tuning`, `subgroups`, `reassociates`.
   */
  readonly profile?: WebGpuProfile;
}

/** Refuses what would fail later with less to say. */
export function checkOptions(options: WebGpuEngineOptions): WebGpuEngineOptions {
  const object = (wanted: string): OptionRule => [(value) => typeof value === 'object' && value !== null, wanted];
  const flag = oneOf(true, false);
  const [isTuning] = object('');
  checkFields('createWebGpuEngine', options, {
    powerPreference: oneOf('high-performance', 'low-power'),
    forceFallbackAdapter: flag,
    adapter: object('a GPUAdapter'),
    memory: numberFrom(1),
    maxBindings: numberFrom(4, 2 ** 31, true),
    tuning: [(value) => typeof value === 'boolean' || isTuning(value), 'true, false or { store, automatic }'],
    subgroups: flag,
    reassociates: flag,
    onCompile: [(value) => typeof value === 'function', 'a function'],
  });
  return options;
}
