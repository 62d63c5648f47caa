/**
 * Nested values, walked without recursion: lists of lists as data, and trees of lists and plain objects. A list that holds itself, or that
 * is nested or branches without an end, is refused before it costs anything.
 */
import { checkAttached } from './options.ts';
import { checkShape, mostAxes, mostParts } from './axes.ts';
import { ArgumentError, ShapeError, showShape } from './errors.ts';
import { isList, isPlain, shown, say } from './shown.ts';
import type { Shape } from './view.ts';

type Row = ArrayLike<unknown>;

/** True for what is a row of nested data: an array, plain or typed. */
export const isRow = (value: unknown): value is Row => isList(value) || ArrayBuffer.isView(value);

/** Shape of nested data, by the first entries of all levels. Throws ShapeError if it is nested too deeply or too large. */
export function nestedShape(op: string, data: unknown, row: (value: unknown) => boolean = isRow): number[] {
  const shape: number[] = [];
  for (let level = data; row(level); level = (level as Row)[0]) {
    if (shape.length === mostAxes)
      throw new ShapeError(op, say`nested arrays are too deep: more than ${mostAxes} levels; does one hold itself?`);
    shape.push((level as Row).length);
    if (shape.at(-1) === 0) break;
  }
  return checkShape(op, shape);
}

/** Calls `visit` for every element of nested data of a shape, in order. Throws ShapeError where the data has another shape, ArgumentError for a view without memory. */
export function eachNested(
  op: string,
  data: unknown,
  shape: Shape,
  visit: (element: unknown) => void,
  row: (value: unknown) => boolean = isRow,
): void {
  const check = (item: unknown, depth: number): void => {
    if (ArrayBuffer.isView(item)) checkAttached(op, 'data', item);
    const length = row(item) ? (item as Row).length : null;
    if (length === (shape[depth] ?? null)) return;
    const found = length === null ? `the value ${shown(item)}` : `length ${length}`;
    throw new ShapeError(
      op,
      say`nested arrays are ragged: ${found} at depth ${depth} where shape ${showShape(shape)} has ${depth < shape.length ? say`length ${shape[depth]}` : 'a number'}; make all rows equal`,
    );
  };
  // Rows last in, first out; elements of the innermost ones are visited without being listed.
  const items = [data];
  const depths = [0];
  while (items.length > 0) {
    const item = items.pop();
    const depth = depths.pop()!;
    check(item, depth);
    if (depth === shape.length) visit(item);
    else if (depth + 1 === shape.length)
      for (let i = 0; i < (item as Row).length; i++) {
        check((item as Row)[i], depth + 1);
        visit((item as Row)[i]);
      }
    else
      for (let i = (item as Row).length; i-- > 0; ) {
        items.push((item as Row)[i]);
        depths.push(depth + 1);
      }
  }
}

/** Most levels of lists and objects in each other. */
const mostLevels = 256;

/** The keys of an object, null for a list, and the values of either; null for what is neither. */
function entriesOf(source: unknown): { readonly keys: readonly string[] | null; readonly values: Row } | null {
  if (isList(source)) return { keys: null, values: source };
  return isPlain(source) ? { keys: Object.keys(source), values: Object.values(source) } : null;
}

/** A list or object in whose entries the walk is, and the one that replaces it; `keys` are null for lists. */
interface Level<C> {
  readonly source: unknown;
  readonly keys: readonly string[] | null;
  readonly values: Row;
  readonly made: Holder;
  readonly context: C;
  /** The entry that is next. */
  at: number;
}

/** A list or object that is being filled. */
type Holder = Record<string | number, unknown>;

/**
 * The same lists and plain objects with everything else in them replaced: lists in order, objects in the order of their keys. `step` gives
 * the context of an entry from that of what holds it. Throws ArgumentError if something holds itself, or there is no end to it: before
 * anything is replaced.
 */
export function mapNested<C>(
  op: string,
  value: unknown,
  context: C,
  leaf: (value: unknown, context: C) => unknown,
  step: (context: C, key: string | number) => C,
): unknown {
  const levels: Level<C>[] = [];
  const left: (() => void)[] = [];
  let count = 0;
  /** What replaces a value, if that has entries; they are next then. */
  const enter = (source: unknown, own: C): Holder | null => {
    const entries = entriesOf(source);
    if (entries === null) return null;
    count += entries.values.length + 1;
    if (levels.some((level) => level.source === source))
      throw new ArgumentError(op, 'argument holds itself: a list or object is among its own entries; pass a tree');
    if (levels.length === mostLevels || count > mostParts)
      throw new ArgumentError(
        op,
        say`argument is too large: more than ${levels.length === mostLevels ? say`${mostLevels} levels` : say`${mostParts} entries`}; pass fewer tensors`,
      );
    // All keys from the start: they keep their order, and `__proto__` is one as any other.
    const made = (entries.keys === null ? [] : Object.fromEntries(entries.keys.map((key) => [key]))) as Holder;
    levels.push({ source, ...entries, made, context: own, at: 0 });
    return made;
  };
  const root = enter(value, context);
  if (root === null) return leaf(value, context);
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const { keys, values, made, context: own } = level;
    const i = level.at++;
    if (i >= values.length) {
      levels.pop();
      continue;
    }
    const key = keys === null ? i : keys[i]!;
    const inner = step(own, key);
    made[key] =
      enter(values[i], inner) ??
      left.push(() => {
        made[key] = leaf(values[i], inner);
      });
  }
  for (const replace of left) replace();
  return root;
}

/** Calls `visit` once for every value in nested lists, Maps and plain objects that is none of these. They may hold themselves. */
export function eachInside(value: unknown, visit: (value: unknown) => void): void {
  const pending = [value];
  let seen: Set<unknown> | null = null;
  for (let i = 0; i < pending.length; i++) {
    const item = pending[i];
    if (typeof item !== 'object' || item === null) continue;
    const isMap = item instanceof Map;
    if (!isMap && !isList(item) && !isPlain(item)) {
      visit(item);
      continue;
    }
    // One list of tensors needs no set.
    if (i > 0) {
      seen ??= new Set([value]);
      if (seen.has(item)) continue;
      seen.add(item);
    }
    // A long list may be all gaps, which its values leave out.
    for (const each of isMap ? item.values() : Object.values(item)) if (typeof each === 'object') pending.push(each);
  }
}
