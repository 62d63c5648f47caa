/** Polygrad's public operations one by one, for the suite `operations`. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { rowOf } from '../operations/rows.ts';
import type { OperationRow } from '../operations/row.ts';
import type { Operand, OperationWork } from '../work/cases.ts';
import type { Tools } from '../work/tools.ts';
import { settled } from './polygrad-input.ts';
import { type Prepared, Unsupported } from './runner.ts';

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, n) => size * n, 1);

function drawn(tools: Tools, { kind, shape, low, high, sorted }: Operand, at: number): Tensor {
  const values = tools.fill(at + 1, sizeOf(shape), low, high);
  if (sorted) values.sort();
  const given = { shape };
  if (kind === 'float') return pg.tensor(values, given);
  const whole = Int32Array.from(values, (x) => Math.min(Math.floor(x), high - 1));
  return kind === 'integer' ? pg.tensor(whole, given) : pg.scope(() => pg.tensor(whole, given).cast('bool'));
}

const bytesOf = (tensors: readonly Tensor[]): number =>
  tensors.reduce((sum, { size, dtype }) => sum + size * (dtype === 'bool' ? 1 : Number(/\d+$/.exec(dtype)) / 8), 0);

const listOf = (result: Tensor | readonly Tensor[]): readonly Tensor[] =>
  Array.isArray(result) ? result : [result as Tensor];

function plain(
  { call }: OperationRow,
  operands: readonly Tensor[],
): () => Promise<readonly Tensor[]> | readonly Tensor[] {
  return () => {
    const result = pg.scope(() => {
      const found = call(pg, ...operands);
      return found instanceof Promise ? { later: found } : found;
    });
    return 'later' in result ? result.later.then(listOf) : listOf(result);
  };
}

/** The operation and its gradients by all floats that take one, of a sum with weights. */
function withGradients(tools: Tools, { call }: OperationRow, work: OperationWork, operands: readonly Tensor[]) {
  const followed = operands.filter((_, i) => work.operands[i]?.gradient === true);
  const value = (...inputs: Tensor[]): Tensor => {
    const given = [...inputs];
    const all = operands.map((t, i) => (work.operands[i]?.gradient === true ? (given.shift() as Tensor) : t));
    return listOf(call(pg, ...all) as Tensor | readonly Tensor[])[0]!;
  };
  const { shape } = pg.scope(() => value(...followed));
  const weights = pg.tensor(tools.fill(9, sizeOf(shape), -1, 1), { shape });
  return () => {
    const [result, gradients] = pg.vjp(value, followed, weights);
    return [...gradients, result];
  };
}

export function prepareOperation(tools: Tools, work: OperationWork): Prepared {
  const row = rowOf(work.name);
  if (row === undefined) throw new Unsupported(`has no row '${work.name}'`);
  const operands = work.operands.map((one, at) => drawn(tools, one, at));
  let least = 0;
  const compute = work.backward ? withGradients(tools, row, work, operands) : plain(row, operands);
  return {
    run: async (count) => {
      for (let i = 0; i < count; i++) {
        const pending = compute();
        const results = pending instanceof Promise ? await pending : pending;
        pg.flush();
        for (const result of results) result.dispose();
      }
      await settled();
    },
    probe: async () => {
      const results = await compute();
      const first = results[0]!;
      // 16-bit floats are read as bits.
      const wide = first.dtype === 'float16' ? first.cast('float32') : first;
      const values = await wide.data();
      if (wide !== first) wide.dispose();
      least = bytesOf(operands) + bytesOf(results);
      for (const result of results) result.dispose();
      if (work.random) return [values.length];
      const at = values.length === 1 ? [0] : tools.probePositions(values.length);
      return at.map((position) => Number(values[position]));
    },
    peakBytes: () => pg.memory().peakBytes,
    leastBytes: () => least,
    dispose: () => {
      for (const operand of operands) operand.dispose();
    },
  };
}
