/** `to`: a tensor's value on another engine. */
import type { IEngine } from '../engine/engine.ts';
import { EngineMissingError } from '../engine/errors.ts';
import { checkEngine, cpuEngine, getEngine } from '../engine/registry.ts';
import { beginOp } from '../graph/scope.ts';
import { makeNode } from '../graph/primitives.ts';
import { toPrimitive } from '../primitives/leaves.ts';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { quiet } from '../runtime/late.ts';
import { load } from '../runtime/queue.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { placerInUse } from './placer.ts';

/**
 * The same values on another engine. The result belongs there: what is computed from it is computed there too, whatever the current engine and the
 * policy are. Operands that belong on several engines meet where most of their bytes are. Gradients go back to where x belongs.
 *
 * Nothing is copied before the values are needed, and a copy that exists is reused: it stays with x as long as its values do.
 *
 * @param x a tensor of any shape and dtype
 * @param engine an engine, or the name of one in use: the current one, the CPU engine, or one given to `to` before
 * @returns a tensor of the same shape and dtype
 * @throws EngineMissingError for the name of an engine that is not in use; ArgumentError for anything else
 * @example
 * import { ones, to } from '@polygrad/core';
 * import { createReferenceEngine } from '@polygrad/testing';
 * import '@polygrad/backend-cpu';
 * const other = createReferenceEngine({ name: 'other' });
 * const x = to(ones([2]), other);
 * console.log(x.device, x.add(1).device); //=> other other
 */
export function to(x: Tensor, engine: IEngine | string): Tensor {
  beginOp('to');
  const node = nodeOf(x);
  const place = named(engine);
  quiet(load());
  const placer = placerInUse();
  const from = placer.homeOf(node) ?? (placer.rules === null ? getEngine() : null);
  const moved = makeNode(toPrimitive, [node], { engine: place, from });
  placer.commit(moved, place);
  return wrap(moved);
}

function named(engine: IEngine | string): IEngine {
  if (typeof engine !== 'string') {
    if (typeof engine !== 'object' || engine === null)
      throw new ArgumentError('to', say`not an engine: ${shown(engine)}; give an engine, or the name of one in use`);
    checkEngine('to', engine);
    return engine;
  }
  const current = getEngine();
  if (current.name === engine) return current;
  const { rules, named: known } = placerInUse();
  const cpu = engine === 'cpu' ? cpuEngine() : null;
  if (cpu !== null && !('then' in cpu)) return cpu;
  const all = [...(rules === null ? [] : [rules.cpu, ...rules.devices]), ...known];
  const found = all.find(({ name }) => name === engine);
  if (found !== undefined) return found;
  const names = [...new Set([current, ...all].map(({ name }) => `'${name}'`))].join(', ');
  throw new EngineMissingError(
    'to',
    say`no engine '${engine}' is in use, only ${names}; give the engine itself, as setEngine() returns it`,
  );
}
