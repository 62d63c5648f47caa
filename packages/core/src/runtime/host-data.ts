/** Host arrays and how an engine stores their elements: the same bytes, except where an engine keeps small ones in words. */
import type { IEngine } from '../engine/engine.ts';
import { type DType, dtypeInfo, type TypedArray } from '../shape/dtype.ts';
import { hostArrays } from '../shape/host.ts';

/** Bytes of one element in the engine's memory. */
export function storageBytes(engine: IEngine, dtype: DType): number {
  return engine.caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
}

/** Elements as the engine stores them: in words, a small integer is extended by its sign, which nobody looks at. */
export function toDevice(engine: IEngine, dtype: DType, data: TypedArray): ArrayBufferView {
  if (storageBytes(engine, dtype) === dtypeInfo[dtype].bytes) return data;
  return Uint32Array.from(data as Int32Array);
}

/** A host array from bytes of the engine's memory; takes the bytes over where it can. */
export function fromDevice(engine: IEngine, dtype: DType, bytes: Uint8Array, length: number): TypedArray {
  const own = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  if (storageBytes(engine, dtype) === dtypeInfo[dtype].bytes)
    return new hostArrays[dtype](own.buffer, own.byteOffset, length);
  const host = new hostArrays[dtype](length) as Int32Array;
  host.set(new Uint32Array(own.buffer, own.byteOffset, length));
  return host;
}
