/**
 * Arguments of a compiled function as one flat list: tensors, other values, and marks for the lists and plain objects around them.
 * Two calls share recordings if their lists match: tensors by shape and dtype, everything else by value.
 */
import { isHandle } from '../graph/scope.ts';
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
