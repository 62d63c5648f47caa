/** Arrays by name as users give them to what writes a file. */
import { type HostArray, sizeOf, wrongArray } from './arrays.ts';
import { DataError } from './errors.ts';
import { shownValue, wrongShape } from './safetensors-rules.ts';

/** Arrays by name. */
export type NamedArrays = Readonly<Record<string, HostArray>> | ReadonlyMap<string, HostArray>;

export interface NamedArray {
  readonly name: string;
  readonly array: HostArray;
}

/**
 * The given arrays with their names, in the order given, after asking whether a file may hold them.
 *
 * @param wrongName says what is wrong with a name, of any kind
 * @throws DataError `argument` for names, dtypes, data and shapes that are none; `mismatch` if an array does not fill its shape
 */
export function namedArrays(
  op: string,
  tensors: unknown,
  wrongName: (name: unknown) => string | undefined,
): NamedArray[] {
  const fail = (code: 'argument' | 'mismatch', name: string, text: string): DataError =>
    new DataError(code, name, `[${op}] ${text}`);
  if (typeof tensors !== 'object' || tensors === null || Array.isArray(tensors))
    throw fail('argument', 'tensors', `tensors are ${shownValue(tensors)}; give a Map or an object of arrays by name`);
  const given: [unknown, HostArray | undefined][] = tensors instanceof Map ? [...tensors] : Object.entries(tensors);
  return given.map(([name, array]): NamedArray => {
    const wrong = wrongName(name);
    if (wrong !== undefined) throw fail('argument', shownValue(name), wrong);
    const label = name as string;
    if (typeof array !== 'object' || array === null)
      throw fail('argument', label, `'${label}' is ${shownValue(array)}; give { dtype, shape, data }`);
    const { dtype, shape, data } = array;
    const unfit = wrongArray(dtype, data);
    if (unfit !== undefined) throw fail('argument', label, `'${label}': ${unfit}`);
    const misshapen = wrongShape(shape, dtype);
    if (misshapen !== undefined) throw fail('argument', label, `'${label}' ${misshapen}`);
    const size = sizeOf(shape);
    if (size !== data.length)
      throw fail(
        'mismatch',
        label,
        `'${label}': shape (${shape.join(', ')}) has ${size} elements, the data ${data.length}`,
      );
    return { name: label, array: { dtype, shape: [...shape], data } as HostArray };
  });
}
