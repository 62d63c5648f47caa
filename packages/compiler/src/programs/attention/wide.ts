/**
 * Operands of 16 bits for programs that compute in float32: copies, of the queries with the scale in them. Programs read keys and values once for
 * every block of queries, so that conversions are done beforehand.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import type { ProgramSet } from '../program-set.ts';
import { rowMajor } from '../program-set.ts';
import { type AttentionSpec, isDistance, type Operand, Operands, placeOf } from './operands.ts';

/** Elements that are converted together. */
const lanes = 4;

/** The spec with operands in the dtype that is computed in, the scale in the queries. */
export function widened<S extends AttentionSpec>(set: ProgramSet, spec: S, caps: CodegenCaps): S {
  const { out, q, k, v, scale } = spec;
  if ([q, k, v].every(({ view }) => view.dtype === out.dtype) && scale === 1) return spec;
  const copy = (name: string, from: Operand, by: number): Operand => copied(set, spec, caps, name, from, by);
  return { ...spec, q: copy('queries', q, scale), k: copy('keys', k, 1), v: copy('values', v, 1), scale: 1 };
}

function copied(
  set: ProgramSet,
  spec: AttentionSpec,
  caps: CodegenCaps,
  name: string,
  from: Operand,
  by: number,
): Operand {
  const view = rowMajor(spec.out.dtype, from.view.shape);
  const temp = set.temp(view.dtype, view.span);
  const to: Operand = { slot: -1 - temp.at, view, temp };
  const [count, width] = from.view.shape.slice(-2) as [number, number];
  const heads = from.view.shape.slice(0, -2).reduce((n, x) => n * x, 1);
  set.add(`_wide_${name}`, heads * count, (w) => {
    const { b, e } = w;
    const o = new Operands(w, spec, caps);
    const [head, row] = [e.idiv(w.group, count), e.irem(w.group, count)];
    o.ifThere(from, head, row, count, () => {
      const memory = w.temp(temp, 'write');
      const [source, target] = [o.matrix(from, head), { ...o.placeOfHead(to, head), memory }];
      const inVectors = isDistance(source.column, 1) && width % lanes === 0;
      const some = inVectors ? lanes : 1;
      b.loop(width / some, (i) => {
        const column = e.mul(i, some);
        const value = o.read(source.memory, placeOf(e, source, row, column), some);
        const scaled: KNode = by === 1 ? value : e.mul(value, e.splat(o.number(by), some));
        b.store(memory, placeOf(e, target, row, column), scaled);
      });
    });
  });
  return to;
}
