/**
 * Vectors whose lanes lie at steps in memory, as one LOAD: columns of a matrix, rows shorter than a vector, squares of weights for panels. Lane by lane
 * they are two nodes a lane, and a quarter of the programs of networks. For targets whose emitter takes apart what it reads (`stepped` of their lowering).
 */
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import type { Address } from './scope.ts';

/** The vector of elements of four or eight bytes that are only read, and lie so many elements apart, two or more; null: another one. */
export function steppedLoad(
  e: Exprs,
  memory: KNode,
  address: Address,
  lanes: number,
  at: (lane: number) => KNode,
): KNode | null {
  if (memory.op !== 'PARAM' || memory.arg.access !== 'read' || dtypeInfo[memory.dtype as DType].bytes < 4) return null;
  const step = stepOf(e, address, lanes);
  return step < 2 ? null : e.load(memory, at(0), undefined, undefined, lanes, { step });
}

/** How many elements the lanes lie apart; 0: differently, or as the size says. */
function stepOf(e: Exprs, address: Address, lanes: number): number {
  if (address.kind === 'steps') return address.step.op === 'CONST' ? Number(address.step.arg.value) : 0;
  if (address.kind !== 'lanes') return 0;
  const { each } = address;
  const first = each[0]!;
  const step = linearOf(each[1]!).offset - linearOf(first).offset;
  for (let k = 1; k < lanes; k++) if (each[k] !== e.add(first, step * k)) return 0;
  return step;
}
