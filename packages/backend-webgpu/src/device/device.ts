/** The device that is asked of an adapter: what it can do, in the words of core, and how its tiles are tuned. */
import { host } from '#host';
import type { DType } from '@polygrad/core';
import { defaultStore, type EngineCaps, EngineMissingError, type EngineTuning } from '@polygrad/core/engine';
import { wgslNativeOps } from '@polygrad/emit-c/wgsl-facts';
import type { Found } from './naming.ts';
import type { WebGpuEngineOptions } from '../options.ts';

/** Limits asked for as far as the adapter goes; the others stay at WebGPU's defaults. */
const wantedLimits = [
  'maxStorageBuffersPerShaderStage',
  'maxStorageBufferBindingSize',
  'maxBufferSize',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'minStorageBufferOffsetAlignment',
  'minUniformBufferOffsetAlignment',
] as const;

const wantedFeatures = ['shader-f16', 'subgroups', 'timestamp-query'] as const;

/** A device of the adapter with all it has to offer that kernels can use. */
export async function openDevice({ adapter, name }: Found): Promise<GPUDevice> {
  const requiredLimits: Record<string, number> = {};
  for (const limit of wantedLimits) requiredLimits[limit] = adapter.limits[limit];
  const requiredFeatures = wantedFeatures.filter((feature) => adapter.features.has(feature));
  try {
    return await host.paced(() => adapter.requestDevice({ label: 'polygrad', requiredLimits, requiredFeatures }));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new EngineMissingError('webgpu', `the adapter ${name} gives no device: ${why}; use another engine`, {
      cause,
    });
  }
}

/**
 * A hint for choosing grids, not for results: GPUs do not tell how many compute units they have, and a few dozen groups
 * keep most of them busy.
 */
const computeUnits = 32;

export function capsOf(
  device: GPUDevice,
  lowering: EngineCaps['lowering'],
  maxBindings: number = Number.POSITIVE_INFINITY,
): EngineCaps {
  const { limits, features } = device;
  const dtypes = new Set<DType>(['float32', 'int32', 'uint32', 'bool']);
  if (features.has('shader-f16')) dtypes.add('float16');
  return {
    dtypes,
    computes: dtypes,
    storageBytes: { bool: 4 },
    nativeOps: wgslNativeOps,
    simt: true,
    lowering,
    vectorBytes: 16,
    sharedBytes: limits.maxComputeWorkgroupStorageSize,
    maxGroup: Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
    maxBindings: Math.min(limits.maxStorageBuffersPerShaderStage, maxBindings),
    // WebGPU binds multiples of four bytes.
    maxBufferBytes: Math.floor(Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize) / 4) * 4,
    bindAlign: limits.minStorageBufferOffsetAlignment,
    arena: false,
    parallelism: computeUnits,
    atomics: new Set(['add', 'max', 'min', 'or'] as const),
  };
}

/** How the engine's tiles are tuned; undefined: they are not, unless `tune` is called. */
export function tuningOf({ tuning }: WebGpuEngineOptions, software: boolean): EngineTuning | undefined {
  if (typeof tuning === 'object') return tuning;
  return (tuning ?? !software) ? { store: defaultStore(), automatic: true } : undefined;
}
