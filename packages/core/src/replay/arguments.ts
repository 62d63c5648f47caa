/**
 * Arguments of a compiled function as one flat list: tensors, other values, and marks for the lists and plain objects around them.
 * Two calls share recordings if their lists match: tensors by shape and dtype, everything else by value.
 */
import { isHandle } from '../graph/scope.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { mapNested } from '@polygrad/compiler/shape/nested';
import { say, shown } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import type { TensorHandle } from '../tensor/handle.ts';

/** A mark for structure in a flat list. */
class Mark {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The form of a tensor argument. */
class Form {
  readonly shape: readonly number[];
  readonly dtype: string;

  constructor({ shape, dtype }: TensorHandle) {
    this.shape = shape;
    this.dtype = dtype;
  }
}

/** Arguments of a call, flat. */
export function flatten(args: readonly unknown[]): readonly unknown[] {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (typeof arg === 'object' && arg !== null && !isHandle(arg)) return flattenNested(args);
  }
  return args;
}

function flattenNested(args: readonly unknown[]): unknown[] {
  const flat: unknown[] = [];
  const structure = mapNested(
    'compile',
    args,
    null,
    (value) => {
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
        throw new ArgumentError(
          'compile',
          say`an argument is ${shown(value)}, whose contents may change without a call seeing it; pass a tensor of it`,
        );
      flat.push(value);
      return 0;
    },
    () => null,
  );
  flat.push(new Mark(JSON.stringify(structure)));
  return flat;
}

/** A number made of the form of a call's arguments: the same for calls that match. */
export function hashOf(flat: readonly unknown[]): number {
  let hash = flat.length;
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    if (isHandle(value)) {
      const { shape, dtype } = value as unknown as TensorHandle;
      hash = mixed(hash, dtypeInfo[dtype].id);
      for (let axis = 0; axis < shape.length; axis++) hash = mixed(hash, shape[axis]!);
    } else if (typeof value === 'number') hash = mixed(mixed(hash, value | 0), Math.fround(value % 1) * 2 ** 32);
    else {
      const text = value instanceof Mark ? value.text : String(typeof value === 'string' ? value : typeof value);
      for (let at = 0; at < text.length; at++) hash = mixed(hash, text.charCodeAt(at));
    }
  }
  // A small integer for V8.
  return hash & 0x3fffffff;
}

function mixed(hash: number, x: number): number {
  const mixed = Math.imul(hash ^ x, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/** The forms of a call's arguments, for comparison with later calls. */
export function formsOf(flat: readonly unknown[]): readonly unknown[] {
  return flat.map((value) => (isHandle(value) ? new Form(value as unknown as TensorHandle) : value));
}

/** True if the arguments of a call match the forms of an earlier one. */
export function isLike(flat: readonly unknown[], forms: readonly unknown[]): boolean {
  if (flat.length !== forms.length) return false;
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    const form = forms[i];
    if (form instanceof Form) {
      if (!isHandle(value)) return false;
      const { shape, dtype } = value as unknown as TensorHandle;
      if (dtype !== form.dtype || !sameShape(shape, form.shape)) return false;
    } else if (form instanceof Mark) {
      if (!(value instanceof Mark) || value.text !== form.text) return false;
    } else if (!Object.is(value, form)) return false;
  }
  return true;
}

/** What in the arguments of a call does not match the forms of an earlier one, as a phrase for messages. */
export function whatDiffers(flat: readonly unknown[], forms: readonly unknown[]): string {
  for (let i = 0; i < Math.min(flat.length, forms.length); i++) {
    const value = flat[i];
    const form = forms[i];
    if (form instanceof Form && isHandle(value)) {
      const { shape, dtype } = value as unknown as TensorHandle;
      if (dtype !== form.dtype) return `the dtypes of its arguments change (${form.dtype}, then ${dtype})`;
      if (!sameShape(shape, form.shape))
        return `the shapes of its arguments change ([${form.shape.join(', ')}], then [${shape.join(', ')}])`;
    } else if (!(value instanceof Mark) && !Object.is(value, form))
      return say`values among its arguments change (${shown(form)}, then ${shown(value)})`;
  }
  return 'its arguments change';
}
