/** Writes arrays as a file that `torch.load` reads, with `weights_only=True` too. */
import { littleEndianBytes } from '../arrays.ts';
import { DataError, shown } from '../errors.ts';
import { type NamedArrays, namedArrays } from '../named-arrays.ts';
import { rowMajorStrides } from './strided.ts';
import { storageNames } from './torch-storages.ts';
import { writeZip } from './zip.ts';

const op = 'encodeTorch';

/** The codes of a pickle, of protocol 2. */
class PickleWriter {
  readonly #bytes: number[] = [0x80, 2];

  codes(text: string): this {
    for (const code of text) this.#bytes.push(code.charCodeAt(0));
    return this;
  }

  #number(bytes: number, value: number): void {
    for (let i = 0; i < bytes; i++) this.#bytes.push(Math.floor(value / 256 ** i) % 256);
  }

  /** A name of a module, which the reader knows. */
  global(module: string, name: string): this {
    return this.codes(`c${module}\n${name}\n`);
  }

  text(text: string): this {
    const bytes = new TextEncoder().encode(text);
    this.codes('X').#number(4, bytes.length);
    for (const byte of bytes) this.#bytes.push(byte);
    return this;
  }

  /** A whole number from 0 to 2^53. */
  count(value: number): this {
    if (value < 2 ** 31) this.codes('J').#number(4, value);
    else this.codes('\x8a\x08').#number(8, value);
    return this;
  }

  counts(values: readonly number[]): this {
    this.codes('(');
    for (const value of values) this.count(value);
    return this.codes('t');
  }

  done(): Uint8Array {
    this.codes('.');
    return Uint8Array.from(this.#bytes);
  }
}

/**
 * The bytes of a file that `torch.load(path, weights_only=True)` reads: a dictionary of tensors, for `load_state_dict`. Equal contents give equal bytes.
 *
 * @param tensors arrays by name, in the order of the file
 * @throws DataError `argument` for arrays and names that are none, for uint16, uint32 and uint64, which PyTorch's files have no common form for, and above
 *   4 GiB; `mismatch` if an array does not fill its shape
 * @example
 * const file = encodeTorch({ 'fc.bias': { dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) } });
 */
export function encodeTorch(tensors: NamedArrays): Uint8Array {
  const named = namedArrays(op, tensors, (name) =>
    typeof name === 'string' ? undefined : `a name is ${shown(name)}; names are strings`,
  );
  const pickle = new PickleWriter().global('collections', 'OrderedDict').codes(')R(');
  const files: [string, Uint8Array][] = [];
  for (const [key, { name, array }] of named.entries()) {
    const storage = storageNames[array.dtype];
    if (storage === undefined)
      throw new DataError(
        'argument',
        name,
        `[${op}] '${name}' is ${array.dtype}, which files of PyTorch have no storage for; cast it, or use encodeSafetensors`,
      );
    pickle.text(name).global('torch._utils', '_rebuild_tensor_v2').codes('((').text('storage').global('torch', storage);
    pickle.text(String(key)).text('cpu').count(array.data.length).codes('tQ').count(0);
    pickle.counts(array.shape).counts(rowMajorStrides(array.shape));
    pickle.codes('\x89').global('collections', 'OrderedDict').codes(')RtR'); // no gradient wanted, no hooks
    files.push([`archive/data/${key}`, littleEndianBytes(array)]);
  }
  const content: [string, Uint8Array] = ['archive/data.pkl', pickle.codes('u').done()];
  const text = (value: string): Uint8Array => new TextEncoder().encode(value);
  return writeZip(op, [content, ['archive/byteorder', text('little')], ...files, ['archive/version', text('3\n')]]);
}
