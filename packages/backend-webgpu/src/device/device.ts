/** The device that is asked of an adapter. */
import { EngineMissingError } from '@polygrad/core/engine';
import { host } from '#host';
import type { Found } from './adapter.ts';

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
