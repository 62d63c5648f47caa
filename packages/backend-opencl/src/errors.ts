/** What OpenCL's error codes mean to the library. */
import { DeviceLostError, OutOfMemoryError, PolygradError } from '@polygrad/core/engine';
import { isNativeError, type MemoryFigures } from '@polygrad/addon';

// biome-ignore format: a table of codes reads better grouped
const names: Readonly<Record<number, string>> = {
  [-1]: 'CL_DEVICE_NOT_FOUND', [-2]: 'CL_DEVICE_NOT_AVAILABLE', [-3]: 'CL_COMPILER_NOT_AVAILABLE',
  [-4]: 'CL_MEM_OBJECT_ALLOCATION_FAILURE', [-5]: 'CL_OUT_OF_RESOURCES', [-6]: 'CL_OUT_OF_HOST_MEMORY',
  [-11]: 'CL_BUILD_PROGRAM_FAILURE', [-14]: 'CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST',
  [-30]: 'CL_INVALID_VALUE', [-33]: 'CL_INVALID_DEVICE', [-34]: 'CL_INVALID_CONTEXT', [-36]: 'CL_INVALID_COMMAND_QUEUE',
  [-38]: 'CL_INVALID_MEM_OBJECT', [-42]: 'CL_INVALID_BINARY', [-44]: 'CL_INVALID_PROGRAM', [-45]: 'CL_INVALID_PROGRAM_EXECUTABLE',
  [-46]: 'CL_INVALID_KERNEL_NAME', [-48]: 'CL_INVALID_KERNEL', [-49]: 'CL_INVALID_ARG_INDEX', [-50]: 'CL_INVALID_ARG_VALUE',
  [-51]: 'CL_INVALID_ARG_SIZE', [-52]: 'CL_INVALID_KERNEL_ARGS', [-54]: 'CL_INVALID_WORK_GROUP_SIZE',
  [-55]: 'CL_INVALID_WORK_ITEM_SIZE', [-58]: 'CL_INVALID_EVENT', [-61]: 'CL_INVALID_BUFFER_SIZE',
  [-63]: 'CL_INVALID_GLOBAL_WORK_SIZE', [-1001]: 'CL_PLATFORM_NOT_FOUND_KHR',
};

/** Name of an OpenCL error code. */
export function codeName(code: number): string {
  return names[code] ?? `error ${code}`;
}

const shortages: ReadonlySet<number> = new Set([-4, -5, -6, -61]);
/** -9999 is NVIDIA's for a kernel that ended in a fault. */
const losses: ReadonlySet<number> = new Set([-2, -14, -33, -34, -36, -9999]);

/** Converts an error of the addon to the library's; anything else is returned unchanged. */
export function translate(error: unknown, action: string, device: string, memory: MemoryFigures): unknown {
  if (!isNativeError(error)) return error;
  const { code, call } = error;
  const what = `${call} says ${codeName(code)}`;
  if (shortages.has(code)) {
    const { requested, live, limit } = memory;
    return new OutOfMemoryError(
      'opencl',
      { requested, live, reserved: live, limit },
      `${action}: ${what}; dispose tensors you no longer need, or use a smaller batch`,
    );
  }
  if (losses.has(code)) return new DeviceLostError('opencl', device, `${action}: ${what}`, { cause: error });
  return new PolygradError(
    'UNSUPPORTED',
    `opencl.${action}`,
    `${what}: the driver refuses the call; please report this`,
    {
      cause: error,
    },
  );
}
