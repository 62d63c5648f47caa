/**
 * What a safetensors file may hold: the types, names, shapes and free text. Reading and writing ask the same questions here, so that
 * what is written can be read.
 */
import { HOST_BYTES, type HostDType } from './arrays.ts';

/** Most bytes of a header. Source: the reference implementation. */
export const headerLimit = 100_000_000;

/** The name in the header under which the free text is. */
export const metadataName = '__metadata__';

/** Most axes: as many as arrays of NumPy had before 2.0. */
const mostAxes = 32;

/** How the types are called in files. */
export const typeNames: Readonly<Record<HostDType, string>> = {
  float64: 'F64',
  float32: 'F32',
  float16: 'F16',
  bfloat16: 'BF16',
  int64: 'I64',
  int32: 'I32',
  int16: 'I16',
  int8: 'I8',
  uint64: 'U64',
  uint32: 'U32',
  uint16: 'U16',
  uint8: 'U8',
  bool: 'BOOL',
};

/** How a value is shown in messages. */
export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return `[${Array.from(value.slice(0, 40), shownElement).join(', ')}]`;
  return shownElement(value);
}

function shownElement(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return typeof value === 'function' || typeof value === 'symbol' ? `a ${typeof value}` : String(value);
}

/** What is wrong with the name of a tensor; undefined if nothing is. */
export function wrongName(name: unknown): string | undefined {
  if (typeof name !== 'string') return `a name is ${shownValue(name)}; names are strings`;
  if (name === metadataName) return `no tensor may have the name '${metadataName}'; rename it`;
  if (!isText(name)) return `the name ${shownValue(name)} has half of a surrogate pair; rename it`;
  return undefined;
}

/** What is wrong with a shape; undefined if nothing is. */
export function wrongShape(shape: unknown, dtype: HostDType): string | undefined {
  if (!Array.isArray(shape)) return `has shape ${shownValue(shape)}; a shape is an array of whole numbers, 0 or more`;
  if (shape.length > mostAxes) return `has a shape of ${shape.length} axes; at most ${mostAxes} are read`;
  let bytes = HOST_BYTES[dtype];
  for (let axis = 0; axis < shape.length; axis++) {
    const extent: unknown = shape[axis];
    if (typeof extent !== 'number' || !Number.isSafeInteger(extent) || extent < 0)
      return `has shape ${shownValue(shape)}; a shape is an array of whole numbers, 0 or more`;
    bytes *= extent;
    if (bytes > Number.MAX_SAFE_INTEGER)
      return `has shape ${shownValue(shape)}, which is more bytes than can be counted`;
  }
  return undefined;
}

/** What is wrong with the free text; undefined if nothing is. */
export function wrongMetadata(metadata: unknown): string | undefined {
  const prototype: unknown =
    typeof metadata === 'object' && metadata !== null ? Object.getPrototypeOf(metadata) : undefined;
  // Objects of another realm have another Object.prototype, which has no prototype itself.
  const isPlain = prototype === null || (prototype !== undefined && Object.getPrototypeOf(prototype) === null);
  if (!isPlain || Array.isArray(metadata))
    return `${metadataName} is not a map of strings: it is ${shownValue(metadata)}`;
  for (const [name, text] of Object.entries(metadata as object)) {
    if (typeof text !== 'string')
      return `${metadataName} is not a map of strings: '${name}' is ${shownValue(text)}; give its text`;
    if (!isText(name) || !isText(text)) return `${metadataName}: '${name}' has half of a surrogate pair`;
  }
  return undefined;
}

/** False for a string with half of a surrogate pair, which UTF-8 cannot hold. */
function isText(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}
