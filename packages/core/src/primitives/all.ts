/** All definitions besides the common ones: tests register them before they record nodes by name. */
import type { BinaryAttrs, UnaryAttrs } from '../graph/node.ts';
import type { AnyDefinition, BinaryOperation, DefinedPrimitive, UnaryOperation } from '../graph/definition.ts';
import * as attention from './attention.ts';
import * as custom from './custom.ts';
import * as elementary from './elementary.ts';
import * as indexing from './indexing.ts';
import * as loop from './loop.ts';
import { toPrimitive } from './leaves.ts';

const all = { ...attention, ...custom, ...elementary, ...indexing, ...loop, toPrimitive };

/** All definitions of the files above. If a file of definitions is not imported here, this line is a type error. */
export const definitions: readonly AnyDefinition[] = Object.values(all) satisfies readonly Complete[];

type Listed = (typeof all)[keyof typeof all]['op'];
type Complete = [Exclude<DefinedPrimitive, Listed>] extends [never] ? AnyDefinition : never;

const byName = new Map<string, AnyDefinition>(definitions.map((definition) => [definition.op, definition]));

/** A primitive given by its name, as `unary` and `binary` take it. */
export function unaryByName(op: keyof UnaryAttrs): UnaryOperation {
  return (byName.get(op) ?? op) as UnaryOperation;
}

export function binaryByName(op: keyof BinaryAttrs): BinaryOperation {
  return (byName.get(op) ?? op) as BinaryOperation;
}
