/** For tests: data on an engine and back. */
import type { Binding, IEngine } from '@polygrad/core/engine';

/** A new buffer that holds the data. */
export function put(engine: IEngine, data: ArrayBufferView): Binding {
  const binding = { buffer: engine.alloc(data.byteLength), offset: 0, bytes: data.byteLength };
  engine.upload(binding, data);
  return binding;
}
/** The elements of a binding. */
export const floats = (engine: IEngine, b: Binding): number[] => [
  ...new Float32Array(engine.downloadSync!(b, new Uint8Array(b.bytes)).buffer),
];
/** A part of a binding's buffer. */
export const part = ({ buffer }: Binding, offset: number, bytes: number): Binding => ({ buffer, offset, bytes });
