/** Flags of WebGPU. Browsers have them as globals, Node does not. Source: the WebGPU specification, sections 5 and 9. */

export const usage = {
  mapRead: 0x01,
  mapWrite: 0x02,
  copySrc: 0x04,
  copyDst: 0x08,
  uniform: 0x40,
  storage: 0x80,
  queryResolve: 0x200,
} as const;

/** GPUShaderStage.COMPUTE */
export const computeStage = 0x4;
/** GPUMapMode.READ */
export const mapRead = 0x1;
/** GPUMapMode.WRITE */
export const mapWrite = 0x2;
/** Most groups along one axis of a dispatch: the limit every device has, and no known one raises. */
export const mostGroups = 65535;
