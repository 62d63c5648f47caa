/**
 * Help for people who write programs, put on Tensors in Node, and in pages while they are developed: it is `#help` of methods/own-methods.ts there
 * (no-help.ts is it in others). What it puts throws, with what to do instead, where JavaScript would give undefined or say little; or shows values.
 */
import type { Node } from '../graph/node.ts';
import { peek } from '../runtime/reading.ts';
import { ArgumentError } from '../shape/errors.ts';
import { say } from '../shape/shown.ts';
import { sizeOf } from '../shape/view.ts';
import { formatArray } from '../tensor/format.ts';
import { putMissing } from './missing-methods.ts';

/** Most elements that the console shows: of a tensor by itself, and of one inside something else. */
const [mostAlone, mostInside] = [1000, 16];

interface Shown {
  readonly node: Node;
  readonly disposed: boolean;
  toString(): string;
}

/** A tensor as Node's console shows it: with its values, if they are few and need neither computing nor a device. */
function inspected(this: Shown, depth: number): string {
  const { node, disposed } = this;
  const head = this.toString();
  const size = sizeOf(node.shape);
  // Inside of something, a console that goes two levels deep has one left.
  if (disposed || size > (depth < 2 ? mostInside : mostAlone)) return head;
  const values = peek(node);
  if (values === null) return depth < 2 ? head : `${head}, await t.print() shows its values`;
  const text = formatArray(values, node.shape, node.dtype);
  return text.includes('\n') ? `${head}\n${text}` : `${head} ${text}`;
}

function refuse(what: string, remedy: string): () => never {
  return function (this: Shown): never {
    throw new ArgumentError('tensor', say`${what} of a ${this.toString()}: ${remedy}`);
  };
}

/** Puts methods and members that help on the prototype of Tensors. */
export function putHelp(prototype: object): void {
  putMissing(prototype);
  const put = (key: PropertyKey, descriptor: PropertyDescriptor): unknown =>
    Object.defineProperty(prototype, key, { configurable: true, ...descriptor });
  put(Symbol.for('nodejs.util.inspect.custom'), { value: inspected });
  put(Symbol.iterator, {
    value: refuse(
      'no iteration',
      'unbind(t) gives its rows as tensors, await t.array() its values; tests compare with toBeCloseToTensor of @polygrad/core/matchers',
    ),
  });
  // Programs that take it for an array begin at one end or the other.
  for (let i = -1; i < 10; i++)
    put(String(i), {
      get: refuse(`no element [${i}]`, `select(t, 0, ${i}) is a row, (await t.array())[${i}] its values`),
    });
}
