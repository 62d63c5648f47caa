/** What a device can do, in the words of core. */
import type { EngineCaps } from '@polygrad/core/engine';
import { threadLowering } from '@polygrad/core/engine/threads';
import type { DType } from '@polygrad/core';
import { wgslNativeOps } from '@polygrad/emit-c';

/**
 * A hint for choosing grids, not for results: GPUs do not tell how many compute units they have, and a few dozen groups
 * keep most of them busy.
 */
const computeUnits = 32;

export function capsOf(device: GPUDevice, maxBindings: number = Number.POSITIVE_INFINITY): EngineCaps {
  const { limits, features } = device;
  const dtypes = new Set<DType>(['float32', 'int32', 'uint32', 'bool']);
  if (features.has('shader-f16')) dtypes.add('float16');
  return {
    dtypes,
    computes: dtypes,
    storageBytes: { bool: 4 },
    nativeOps: wgslNativeOps,
    simt: true,
    lowering: threadLowering,
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
