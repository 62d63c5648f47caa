/** What CUDA's error codes mean to the library. */
import { isNativeError, type MemoryFigures } from '@polygrad/addon';
import { DeviceFaultError, DeviceLostError, OutOfMemoryError, PolygradError } from '@polygrad/core/engine';

// biome-ignore format: a table of codes reads better grouped
const names: Readonly<Record<number, string>> = {
  1: 'CUDA_ERROR_INVALID_VALUE', 2: 'CUDA_ERROR_OUT_OF_MEMORY', 3: 'CUDA_ERROR_NOT_INITIALIZED', 4: 'CUDA_ERROR_DEINITIALIZED',
  34: 'CUDA_ERROR_STUB_LIBRARY', 36: 'CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER', 46: 'CUDA_ERROR_DEVICE_UNAVAILABLE',
  100: 'CUDA_ERROR_NO_DEVICE', 101: 'CUDA_ERROR_INVALID_DEVICE', 102: 'CUDA_ERROR_DEVICE_NOT_LICENSED', 200: 'CUDA_ERROR_INVALID_IMAGE',
  201: 'CUDA_ERROR_INVALID_CONTEXT', 209: 'CUDA_ERROR_NO_BINARY_FOR_GPU', 214: 'CUDA_ERROR_ECC_UNCORRECTABLE',
  218: 'CUDA_ERROR_INVALID_PTX', 220: 'CUDA_ERROR_NVLINK_UNCORRECTABLE', 221: 'CUDA_ERROR_JIT_COMPILER_NOT_FOUND',
  222: 'CUDA_ERROR_UNSUPPORTED_PTX_VERSION', 223: 'CUDA_ERROR_JIT_COMPILATION_DISABLED', 226: 'CUDA_ERROR_CONTAINED',
  304: 'CUDA_ERROR_OPERATING_SYSTEM', 400: 'CUDA_ERROR_INVALID_HANDLE', 500: 'CUDA_ERROR_NOT_FOUND', 600: 'CUDA_ERROR_NOT_READY',
  700: 'CUDA_ERROR_ILLEGAL_ADDRESS', 701: 'CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES', 702: 'CUDA_ERROR_LAUNCH_TIMEOUT',
  709: 'CUDA_ERROR_CONTEXT_IS_DESTROYED', 710: 'CUDA_ERROR_ASSERT', 714: 'CUDA_ERROR_HARDWARE_STACK_ERROR',
  715: 'CUDA_ERROR_ILLEGAL_INSTRUCTION', 716: 'CUDA_ERROR_MISALIGNED_ADDRESS', 717: 'CUDA_ERROR_INVALID_ADDRESS_SPACE',
  718: 'CUDA_ERROR_INVALID_PC', 719: 'CUDA_ERROR_LAUNCH_FAILED', 721: 'CUDA_ERROR_TENSOR_MEMORY_LEAK',
  801: 'CUDA_ERROR_NOT_SUPPORTED', 802: 'CUDA_ERROR_SYSTEM_NOT_READY', 803: 'CUDA_ERROR_SYSTEM_DRIVER_MISMATCH', 804: 'CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE',
  999: 'CUDA_ERROR_UNKNOWN',
};

/** Name of a CUDA error code. */
export function codeName(code: number): string {
  return names[code] ?? `error ${code}`;
}

/** After these NVIDIA wants the process to be started anew: no call of it does anything on the device any more. */
export const fatalCodes: ReadonlySet<number> = new Set([700, 702, 710, 714, 715, 716, 717, 718, 719, 721]);
/** The device or the context is gone, for another reason. */
const losses: ReadonlySet<number> = new Set([4, 46, 100, 101, 201, 214, 220, 226, 709, 999]);

/** The compiler of the driver refuses a text. */
export const refusals: ReadonlySet<number> = new Set([200, 209, 218, 221, 222, 223]);

/** Converts an error of the addon to the library's; anything else is returned unchanged. */
export function translate(error: unknown, action: string, device: string, memory: MemoryFigures): unknown {
  if (!isNativeError(error)) return error;
  const { code, call, log } = error;
  const what = `${call} says ${codeName(code)} (${code})${log === '' || refusals.has(code) ? '' : `: ${log}`}`;
  if (code === 2) {
    const { requested, live, limit } = memory;
    return new OutOfMemoryError(
      'cuda',
      { requested, live, reserved: live, limit },
      `${action}: ${what}; dispose tensors you no longer need, or use a smaller batch`,
    );
  }
  if (fatalCodes.has(code)) return new DeviceFaultError('cuda', device, `${action}: ${what}`, code, { cause: error });
  if (losses.has(code)) return new DeviceLostError('cuda', device, `${action}: ${what}`, { cause: error });
  return new PolygradError(
    'UNSUPPORTED',
    `cuda.${action}`,
    `${what}: the driver refuses the call; please report this`,
    { cause: error },
  );
}

/** Why the driver, which is there, does not start: in words for a person. */
export function startText(code: number, call: string): string {
  const says = `${call} says ${codeName(code)} (${code})`;
  switch (code) {
    case 100:
      return (
        `the driver finds no card (${says}); in a container start it with --gpus all, look at CUDA_VISIBLE_DEVICES, and on a card in MIG ` +
        'mode make a slice and name its UUID (MIG-...) there'
      );
    case 46:
      return `the card is busy or not available (${says}): another process may hold it alone (nvidia-smi -c)`;
    case 34:
      return `the library is the stub that programs are linked with, not the driver (${says}): take it out of LD_LIBRARY_PATH`;
    case 802:
      return `the card is not ready (${says}): is the fabric manager running?`;
    case 803:
    case 804:
      return `driver and kernel module do not fit together (${says}): restart the machine, or install one version of both`;
    case 999:
      return `the driver cannot start (${says}): look at nvidia-smi, or restart the machine`;
    default:
      return `the driver cannot start: ${says}`;
  }
}
