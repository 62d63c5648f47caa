/**
 * Views whose memory is gone: after a transfer to a worker, growth of WebAssembly memory, or shrinking of a resizable buffer.
 *
 * Such a view says that it has no elements, as an empty one does, and would become an empty tensor.
 */
import { ArgumentError } from './errors.ts';

/**
 * Throws unless the memory of a view is there.
 *
 * @param op who asks
 * @param name what the view is, for the error
 * @throws ArgumentError where its ArrayBuffer was detached or shrunk
 * @example
 * const data = new Float32Array(4);
 * structuredClone(data.buffer, { transfer: [data.buffer] });
 * checkAttached('upload', 'data', data); // throws ArgumentError
 */
export function checkAttached(op: string, name: string, view: ArrayBufferView): void {
  try {
    // Methods ask for the memory, the length does not.
    if (view.byteLength === 0 && !(view instanceof DataView)) Uint8Array.prototype.keys.call(view as Uint8Array);
  } catch {
    throw new ArgumentError(
      op,
      `${name} has lost its memory: 0 elements are left of a view whose ArrayBuffer was detached or shrunk; copy it before that, or make it anew`,
    );
  }
}
