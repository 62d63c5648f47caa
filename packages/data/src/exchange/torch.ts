/**
 * Files of `torch.save`: the arrays and plain values in them, read without running anything of the file. Both forms are read, the zip archive of
 * PyTorch from 1.6 on and the pickles before. Source: torch/serialization.py and torch/_utils.py.
 */
import { bytesOf, HOST_BYTES, type HostArray, type HostDType, sizeOf } from '../arrays.ts';
import { DataError, shown } from '../errors.ts';
import { PickleGlobal, PickleReader, type PickleRules, type PickleValue } from './pickle.ts';
import { lastOf, rowMajor } from './strided.ts';
import { storageNames } from './torch-storages.ts';
import { isZip, readZip, storedBytes, type ZipEntry } from './zip.ts';

/** What a file of `torch.save` holds, by names with dots: `model.fc.weight` of `{'model': net.state_dict()}`. */
export interface TorchContent {
  readonly tensors: ReadonlyMap<string, HostArray>;
  /** Numbers, texts and other plain values beside the tensors, such as `epoch`. */
  readonly values: ReadonlyMap<string, null | boolean | number | bigint | string>;
}

const op = 'decodeTorch';

/** Element types by the classes of PyTorch's storages. */
const storages: ReadonlyMap<string | undefined, HostDType> = /* @__PURE__ */ new Map(
  (Object.keys(storageNames) as HostDType[]).map((dtype) => [storageNames[dtype], dtype]),
);

/** What a file names a storage by. Its bytes are looked for when a tensor is made of it. */
class Storage {
  /** Undefined for bytes of any type, which the tensor names. */
  readonly dtype: HostDType | undefined;
  readonly key: string;
  /** Elements. */
  readonly size: number;
  constructor(dtype: HostDType | undefined, key: string, size: number) {
    this.dtype = dtype;
    this.key = key;
    this.size = size;
  }
}

/** A view of a storage. */
class TorchTensor {
  readonly storage: Storage;
  readonly dtype: HostDType;
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  constructor(
    storage: Storage,
    dtype: HostDType,
    offset: number,
    shape: readonly number[],
    strides: readonly number[],
  ) {
    this.storage = storage;
    this.dtype = dtype;
    this.offset = offset;
    this.shape = shape;
    this.strides = strides;
  }
}

/** Most names that are found: a file may hold one dictionary in many places of another, which holds it in many places of a third. */
const mostNames = 2 ** 20;

/** Most axes, as in safetensors files. */
const mostAxes = 32;

function damaged(source: string, what: string): DataError {
  return new DataError('format', source, `[${op}] ${source} is damaged: ${what}; get the file again`);
}

function refused(source: string, what: string, remedy: string): DataError {
  return new DataError('format', source, `[${op}] ${source} holds ${what}: ${remedy}`);
}

const isCount = (value: PickleValue | undefined): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

const isSizes = (value: PickleValue | undefined): value is number[] =>
  Array.isArray(value) && value.length <= mostAxes && value.every(isCount);

/** The bytes of the storage with a key, and whether the lowest byte of an element is the first. */
interface Stored {
  readonly find: (storage: Storage) => Uint8Array;
  readonly littleEndian: boolean;
}

/** What the names in a file of weights mean. Nothing else is known, so nothing else can happen. */
function rulesOf(source: string, storagesOf: Map<string, Storage>): PickleRules {
  const tensorOf = (args: readonly PickleValue[], named?: PickleValue): TorchTensor => {
    const [storage, offset, shape, strides] = args;
    if (!(storage instanceof Storage) || !isCount(offset) || !isSizes(shape) || !isSizes(strides))
      throw damaged(source, 'a tensor has no storage, offset, shape and strides');
    const dtype = storage.dtype ?? (named instanceof PickleGlobal ? named.name.replace('torch.', '') : undefined);
    if (dtype === undefined || !Object.hasOwn(HOST_BYTES, dtype))
      throw refused(source, `a tensor of ${shown(dtype)}`, 'convert it in Python, by tensor.float() for example');
    if (shape.length !== strides.length || (lastOf(shape, strides) >= 0 && !Number.isSafeInteger(sizeOf(shape))))
      throw damaged(source, `a tensor has shape (${shape.join(', ')}) and strides (${strides.join(', ')})`);
    return new TorchTensor(storage, dtype as HostDType, offset, shape, strides);
  };
  const calls: Readonly<Record<string, (args: readonly PickleValue[]) => PickleValue>> = {
    'collections.OrderedDict': ([pairs]) =>
      new Map(Array.isArray(pairs) ? (pairs.filter(Array.isArray) as [PickleValue, PickleValue][]) : []),
    'torch._utils._rebuild_tensor': (args) => tensorOf(args),
    'torch._utils._rebuild_tensor_v2': (args) => tensorOf(args),
    'torch._utils._rebuild_tensor_v3': (args) => tensorOf(args, args[6]),
    'torch._utils._rebuild_parameter': ([data]) => data ?? null,
    'torch._utils._rebuild_parameter_with_state': ([data]) => data ?? null,
    'torch.Size': ([sizes]) => sizes ?? [],
    'torch.device': ([kind]) => kind ?? '',
  };
  const object = (name: string): DataError =>
    refused(
      source,
      `an object of ${shown(name)}`,
      'only tensors and plain values are read, and nothing in a file is run; in Python, torch.save(model.state_dict(), path) writes these alone',
    );
  return {
    call(name, args) {
      const call = Object.hasOwn(calls, name) ? calls[name] : undefined;
      if (call !== undefined) return call(args);
      throw object(name);
    },
    outside(reference) {
      const [kind, type, key, , size, part = null] = Array.isArray(reference) ? reference : [];
      if (kind === 'module' && type instanceof PickleGlobal) throw object(type.name);
      if (kind !== 'storage' || !(type instanceof PickleGlobal) || typeof key !== 'string' || !isCount(size))
        throw damaged(source, 'a storage is not named as PyTorch does');
      if (part !== null)
        throw refused(source, 'parts of storages, as PyTorch before 0.4 wrote them', 'write it anew in Python');
      const name = type.name.replace(/^torch\.(storage\.)?/, '');
      const dtype = storages.get(name);
      if (dtype === undefined && name !== 'UntypedStorage')
        throw refused(source, `a ${shown(type.name)}`, 'no dtype here is that of its elements; convert it in Python');
      const storage = new Storage(dtype, key, size);
      storagesOf.set(key, storage);
      return storage;
    },
  };
}

/** The parts of an archive, which are all in one folder. */
function fromZip(bytes: Uint8Array, source: string): [PickleValue, Stored] {
  const entries = readZip(op, bytes, source);
  const entry = [...entries.values()].find(({ name }) => /^[^/]+\/data\.pkl$/.test(name));
  if (entry === undefined)
    throw new DataError(
      'format',
      source,
      `[${op}] ${source} is a zip archive without data.pkl: torch.save wrote none such; arrays of NumPy (.npz) are read by decodeNpz`,
    );
  const folder = entry.name.slice(0, -'data.pkl'.length);
  const order = entries.get(`${folder}byteorder`);
  const reader = new PickleReader(op, storedBytes(op, entry, source), source, rulesOf(source, new Map()));
  const content = reader.read();
  const checked = new Map<ZipEntry, Uint8Array>(); // several tensors may share a storage
  const find = ({ key }: Storage): Uint8Array => {
    const stored = entries.get(`${folder}data/${key}`);
    if (stored === undefined) throw damaged(source, `it lacks the storage ${shown(key)}`);
    const found = checked.get(stored) ?? storedBytes(op, stored, source);
    checked.set(stored, found);
    return found;
  };
  const littleEndian = order === undefined || new TextDecoder().decode(storedBytes(op, order, source)) !== 'big';
  return [content, { find, littleEndian }];
}

/** Of PyTorch before 1.6: pickles of a magic number, a version, the machine, the content and the keys of its storages, which follow. */
function fromPickles(bytes: Uint8Array, source: string): [PickleValue, Stored] {
  const named = new Map<string, Storage>();
  const reader = new PickleReader(op, bytes, source, rulesOf(source, named));
  const magic = reader.read();
  if (magic !== 0x1950a86a20f9469cfc6cn)
    throw new DataError('format', source, `[${op}] ${source} is no file of torch.save: it begins with ${shown(magic)}`);
  reader.read();
  const system = reader.read();
  const content = reader.read();
  const keys = reader.read();
  if (!Array.isArray(keys)) throw damaged(source, 'it has no list of storages');
  const stored = new Map<string, Uint8Array>();
  let at = reader.at;
  for (const key of keys) {
    const storage = typeof key === 'string' ? named.get(key) : undefined;
    if (storage === undefined) throw damaged(source, `the storage ${shown(key)} is not named in it`);
    const length = storage.size * HOST_BYTES[storage.dtype ?? 'uint8'];
    // Before its elements each storage has their number once more.
    const end = at + 8 + length;
    if (end > bytes.length)
      throw new DataError(
        'truncated',
        source,
        `[${op}] ${source} is truncated: ${bytes.length} bytes, its storages end behind ${end}; get the file again`,
      );
    stored.set(storage.key, bytes.subarray(at + 8, end));
    at = end;
  }
  const find = ({ key }: Storage): Uint8Array => {
    const found = stored.get(key);
    if (found === undefined) throw damaged(source, `it lacks the storage ${shown(key)}`);
    return found;
  };
  const littleEndian = !(system instanceof Map) || system.get('little_endian') !== false;
  return [content, { find, littleEndian }];
}

/** Gives tensors and plain values names: the keys of dictionaries and places in lists, with dots between. */
function named(
  content: PickleValue,
  source: string,
  visit: (name: string, value: TorchTensor | null | boolean | number | bigint | string) => void,
): void {
  const above = new Set<object>();
  let count = 0;
  const walk = (name: string, value: PickleValue): void => {
    if (++count > mostNames) throw damaged(source, `it has more than ${mostNames} names`);
    const entries = value instanceof Map ? value.entries() : Array.isArray(value) ? value.entries() : null;
    if (entries === null) {
      // Names of types, storages and bytes stand beside weights at times, and are nothing to anybody.
      if (value instanceof TorchTensor || typeof value !== 'object' || value === null) visit(name, value);
      return;
    }
    if (above.size > 100 || above.has(value as object))
      throw damaged(source, `${shown(name)} holds itself, or lists in lists in lists without an end`);
    above.add(value as object);
    for (const [key, part] of entries)
      walk(`${name === '' ? '' : `${name}.`}${typeof key === 'string' ? key : shown(key)}`, part);
    above.delete(value as object);
  };
  walk('', content);
}

/**
 * Reads a file that PyTorch's `torch.save` wrote: a state dictionary, or dictionaries and lists of them with plain values beside (a checkpoint). The arrays
 * are copies, row by row, whatever their strides were; shared ones are each a copy of their own. Nothing in the file is run.
 *
 * @param file the whole file: a Uint8Array, or an ArrayBuffer as `response.arrayBuffer()` gives it
 * @param source what to call the file in errors
 * @returns tensors and values by name; a file of one tensor alone has it under the name ''
 * @throws DataError `format` for other files, damaged ones, and those that hold objects of classes, such as whole models; `truncated` and `checksum` for
 *   files that were cut off or changed; `argument` for what is no bytes
 * @example
 * const file = encodeTorch({ 'fc.bias': { dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) } });
 * decodeTorch(file).tensors.get('fc.bias')?.data; // Float32Array [1, 2]
 */
export function decodeTorch(file: Uint8Array | ArrayBufferLike, source = 'torch data'): TorchContent {
  const bytes = bytesOf(op, file, source);
  const [content, { find, littleEndian }] = isZip(bytes) ? fromZip(bytes, source) : fromPickles(bytes, source);
  const tensors = new Map<string, HostArray>();
  const values = new Map<string, null | boolean | number | bigint | string>();
  // A tensor may stretch one element over an axis of any length: the memory that all take together is bounded by that of the file.
  let left = 2 ** 26 + 4 * bytes.length;
  named(content, source, (name, value) => {
    if (tensors.has(name) || values.has(name)) throw damaged(source, `two values have the name ${shown(name)}`);
    if (!(value instanceof TorchTensor)) return void values.set(name, value);
    const { storage, dtype, offset, shape, strides } = value;
    const [width, last] = [HOST_BYTES[dtype], lastOf(shape, strides)];
    const stored = find(storage);
    if (last >= 0 && (offset + last + 1) * width > stored.length)
      throw damaged(
        source,
        `${shown(name)} needs ${(offset + last + 1) * width} bytes of a storage of ${stored.length}`,
      );
    left -= sizeOf(shape) * width;
    if (left < 0)
      throw refused(
        source,
        `tensors of far more elements than the file has, ${shown(name)} the last`,
        'write them by tensor.clone()',
      );
    const data = rowMajor({ dtype, bytes: stored, littleEndian }, offset, shape, strides);
    tensors.set(name, { dtype, shape, data } as HostArray);
  });
  return { tensors, values };
}
