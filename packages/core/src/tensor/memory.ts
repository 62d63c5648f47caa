/** memory(): what tensors and buffers hold now. */
import type { IEngine } from '../engine/engine.ts';
import { poolOf } from '../engine/pool.ts';
import { getEngine } from '../engine/registry.ts';
import { ArgumentError } from '../shape/errors.ts';
import { shown } from '../shape/options.ts';
import { graph } from '../graph/state.ts';
import { say } from '../shape/shown.ts';

/** Figures of one engine, but `numTensors`, which counts Tensors of all engines. */
export interface MemoryInfo {
  /** Tensors that exist and are not disposed. */
  readonly numTensors: number;
  /** Buffers in use. */
  readonly numBuffers: number;
  /** Bytes of those buffers. */
  readonly bytes: number;
  /** Most bytes in use at any time. */
  readonly peakBytes: number;
  /** Bytes kept for reuse. */
  readonly pooledBytes: number;
}

/**
 * What is held now. Values that are recorded but not computed hold nothing yet.
 *
 * @param engine the current one unless given
 * @throws ArgumentError if it is no engine
 *
 * @example
 * memory().bytes; // bytes of all computed tensors
 */
export function memory(engine: IEngine = getEngine()): MemoryInfo {
  if (typeof engine?.submit !== 'function')
    throw new ArgumentError('memory', say`not an engine: ${shown(engine)}; give one, or leave it out`);
  const { numBuffers, bytes, peakBytes, pooledBytes } = poolOf(engine).memory();
  return { numTensors: graph.live, numBuffers, bytes, peakBytes, pooledBytes };
}
