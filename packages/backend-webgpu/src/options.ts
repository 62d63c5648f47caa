/** Options of `createWebGpuEngine`, and what they are when not given. */
import type { EngineTuning } from '@polygrad/core/engine';

/** Progress of making pipelines: `done` of `total` since all were ready last. */
export interface CompileProgress {
  readonly done: number;
  readonly total: number;
  /** The kernel that became ready last; undefined when new ones were asked for. */
  readonly kernel: string | undefined;
}

export interface WebGpuEngineOptions {
  /** Which adapter the system should choose where there are several. Default 'high-performance'. */
  readonly powerPreference?: 'high-performance' | 'low-power';
  /** Takes the software adapter, where there is one. Default false. */
  readonly forceFallbackAdapter?: boolean;
  /** An adapter to use instead of asking for one. It must not have given a device before. */
  readonly adapter?: GPUAdapter;
  /**
   * Most bytes of buffers, kept ones included. Default: no limit but the device's own; for software adapters half of the
   * machine's memory, because they take it from there.
   */
  readonly memory?: number;
  /** Most tensors one kernel may bind; less than the adapter allows makes smaller kernels. For tests. */
  readonly maxBindings?: number;
  /**
   * Measure tiles of matrix products and convolutions on the adapter soon after a class of them was first run, and keep them between
   * runs (on Node in the cache folder, in browsers in IndexedDB). Default true; false on software adapters, whose tile is known and
   * where compiling candidates takes longer than they gain. Or where to keep them, and whether to measure unasked.
   */
  readonly tuning?: boolean | EngineTuning;
  /** False: subgroups are not used where the adapter has them. For comparisons. Default true. */
  readonly subgroups?: boolean;
  /** Told when pipelines are asked for and when each is ready: the first step of a network compiles for a while. */
  readonly onCompile?: (progress: CompileProgress) => void;
}

/** Refuses what would fail later with less to say. */
export function checkOptions(options: WebGpuEngineOptions): WebGpuEngineOptions {
  const { powerPreference, memory, maxBindings, tuning, subgroups } = options;
  if (powerPreference !== undefined && powerPreference !== 'high-performance' && powerPreference !== 'low-power')
    throw refused('powerPreference', powerPreference, "'high-performance' or 'low-power'");
  if (memory !== undefined && !(memory > 0)) throw refused('memory', memory, 'a number of bytes above 0');
  if (maxBindings !== undefined && !(Number.isInteger(maxBindings) && maxBindings >= 4))
    throw refused('maxBindings', maxBindings, 'a whole number of at least 4');
  if (tuning !== undefined && typeof tuning !== 'boolean' && (typeof tuning !== 'object' || tuning === null))
    throw refused('tuning', tuning, 'true, false or { store, automatic }');
  if (subgroups !== undefined && typeof subgroups !== 'boolean') throw refused('subgroups', subgroups, 'true or false');
  return options;
}

function refused(name: string, value: unknown, wanted: string): RangeError {
  return new RangeError(`[createWebGpuEngine] ${name} is ${String(value)}; give ${wanted}`);
}
